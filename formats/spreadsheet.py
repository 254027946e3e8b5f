"""Excel workbooks (XLSX): the first sheet, as CSV whose rows have the numbers of the sheet."""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.utils import get_column_letter
from openpyxl.utils.escape import unescape

from formats import archives
from formats.rows import FormatError, Limits

_READ_BYTES = 1 << 20
# Merged cells, as the file of a sheet names them, and the largest number of bytes of such a name.
_MERGED = re.compile(rb"<(?:\w{1,20}:)?mergeCell\s[^<>]{0,100}?ref\s?=\s?[\"']([A-Z0-9:$]+)")
_MERGED_BYTES = 200


def convert(path: Path, limits: Limits, add_note: Callable[[str], object]) -> Iterator[str]:
    """Yield the first visible sheet as CSV: one record for each row of the sheet, blank rows too.
    `add_note` gets the names of the sheets that were not read, if there are any.

    The first row that is not blank names the columns. Numbers are written as they are stored, with
    leading zeros if the format of the cell asks for them; dates in ISO format. A formula becomes
    its stored result, which is blank if the program that wrote the file stored none. Raises
    FormatError for a file that is no workbook or unpacks to more than the limits allow, for an
    empty sheet, for a value in a column without a name, for the error of a formula, and for merged
    cells: the file has their value once, so that the other rows would lack it.
    """
    if not zipfile.is_zipfile(path):
        raise FormatError(
            f"{path.name}: is not an XLSX workbook, or has a password. Remove the password, or "
            "save it as XLSX again."
        )
    _check_unpacked_size(path, limits)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    if not shown:
        raise FormatError(f"{path.name}: has no visible sheet. Show the sheet to import.")
    sheet, *others = shown
    if others:
        unread = ", ".join(f"“{other.title}”" for other in others)
        add_note(
            f"The first sheet, “{sheet.title}”, was read. Not read: {unread}. To import another "
            "sheet, move it to the front of the workbook."
        )
    # Files often state a size that is too small, and rows beyond it would be left out.
    sheet.reset_dimensions()
    width = 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        _check_no_error(path, row)
        cells = [_text(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            yield "\r\n"
        elif not width:
            width = len(cells)
            yield _record([" ".join(cell.split()) for cell in cells], csv.QUOTE_ALL)
        elif len(cells) > width:
            raise FormatError(
                f"{path.name}, row {number}: has a value in column "
                f"{get_column_letter(len(cells))}, which has no name. If the names of the columns "
                "stand here, delete the rows above. Otherwise name this column, or clear it."
            )
        else:
            yield _record([*cells, *[""] * (width - len(cells))])
    if not width:
        raise FormatError(
            f"{path.name}: the first sheet, “{sheet.title}”, is empty. Move the sheet with the "
            "items to the front."
        )
    _check_not_merged(path, sheet)


def _check_no_error(path: Path, row: Iterable[Any]) -> None:
    if failed := next((cell for cell in row if cell.data_type == "e"), None):
        raise FormatError(
            f"{path.name}, row {failed.row}: has the error {failed.value} in column "
            f"{get_column_letter(failed.column)}. Correct or clear this cell, and all others like "
            "it."
        )


def _check_not_merged(path: Path, sheet: Any) -> None:
    before = b""
    with sheet._get_source() as stream:  # openpyxl skips them when it reads row by row
        while part := stream.read(_READ_BYTES):
            if merged := _MERGED.search(before + part):
                raise FormatError(
                    f"{path.name}: has merged cells ({merged[1].decode()}), of which only the "
                    "first has a value. Unmerge them, and fill in each cell."
                )
            before = part[-_MERGED_BYTES:]


def _check_unpacked_size(path: Path, limits: Limits) -> None:
    """Unpack every part once, so that a zip bomb is refused before it is parsed."""
    with archives.open_archive(path, limits) as files:
        for opener in files.values():
            with opener() as stream:
                while stream.read(_READ_BYTES):
                    pass


def _text(cell: Any) -> str:
    """Return the text of a cell."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return _unescape(value) if "_x" in value else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    zeros = cell.number_format
    return str(value).zfill(len(zeros)) if set(zeros) == {"0"} else str(value)


def _unescape(text: str) -> str:
    """Decode characters that XML cannot hold, such as _x0007_."""
    decoded: str = unescape(text)
    # Half of a surrogate pair is no text.
    return text if any("\ud800" <= one <= "\udfff" for one in decoded) else decoded


def _record(cells: list[str], quoting: Any = csv.QUOTE_MINIMAL) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=quoting).writerow(cells)
    return written.getvalue()
