"""Excel workbooks (XLSX): the first sheet, as CSV whose rows have the numbers of the sheet."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.utils import get_column_letter
from openpyxl.utils.escape import unescape

from formats import archives
from formats.rows import FormatError, Limits

_READ_BYTES = 1 << 20


def convert(path: Path, limits: Limits, tell: Callable[[str], object]) -> Iterator[str]:
    """Yield the first visible sheet as CSV: one record for each row of the sheet, blank rows too.
    `tell` gets the names of the sheets if there are others.

    Every cell becomes the text that it would have in CSV; a formula becomes its stored result. The
    first row that is not blank names the columns. Raises FormatError for a file that unpacks to
    more than the limits allow, for a sheet without rows, and for columns with values that have no
    name or the same name.
    """
    _check_unpacked_size(path, limits)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    if not shown:
        raise FormatError(f"{path.name}: has no sheet that is shown. Show the sheet to import.")
    sheet, *others = shown
    if others:
        unread = ", ".join(f"“{other.title}”" for other in others)
        tell(
            f"The first sheet, “{sheet.title}”, was read. Not read: {unread}. To import another "
            "sheet, move it to the front of the workbook."
        )
    # Files often state a size that is too small, and rows beyond it would be left out.
    sheet.reset_dimensions()
    names: list[str] = []
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells, place = [_text(value) for value in row], f"{path.name}, row {number}"
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            yield "\r\n"
        elif not names:
            names = _check_names([cell.strip() for cell in cells], place, limits)
            yield _record(names, csv.QUOTE_ALL)
        elif len(cells) > len(names):
            raise FormatError(
                f"{place}: has a value in column {get_column_letter(len(cells))}, which has no "
                "name. Name the column in the first row, or clear it."
            )
        else:
            yield _record([*cells, *[""] * (len(names) - len(cells))])
    if not names:
        raise FormatError(
            f"{path.name}: the first sheet, “{sheet.title}”, is empty. Move the sheet with the "
            "items to the front."
        )


def _check_unpacked_size(path: Path, limits: Limits) -> None:
    """Unpack every part once, so that a file with a bomb is refused before it is parsed."""
    with archives.open_archive(path, limits) as files:
        for opener in files.values():
            with opener() as stream:
                while stream.read(_READ_BYTES):
                    pass


def _check_names(names: list[str], place: str, limits: Limits) -> list[str]:
    if len(names) > limits.columns:
        raise FormatError(f"{place}: names more than {limits.columns:,} columns. Leave some out.")
    if not all(names):
        letter = get_column_letter(names.index("") + 1)
        raise FormatError(f"{place}: column {letter} has no name. Name it, or delete the column.")
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise FormatError(f"{place}: columns named twice: {', '.join(twice)[:300]}. Rename them.")
    return names


def _text(value: Any) -> str:
    """Return the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, str):
        # Characters that XML cannot hold are written as _x0007_.
        return unescape(value) if "_x" in value else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _record(cells: list[str], quoting: Any = csv.QUOTE_MINIMAL) -> str:
    written = io.StringIO()
    csv.writer(written, quoting=quoting).writerow(cells)
    return written.getvalue()
