"""CSV and TSV. Quoted fields may contain line breaks, and the first row names the columns.

The columns of a CSV file may also be separated by semicolons or tabs; the first row shows which.
"""

import csv
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import chain, count
from textwrap import shorten
from typing import BinaryIO

from formats.lines import Lines
from formats.rows import BadRow, FormatError, Limits, Row, Rows, check_size

# A character that no text contains, for a reader that needs a delimiter although there is only one
# column.
_UNUSED_DELIMITER = "\x1f"
_QUOTED = re.compile('"[^"]*"')


def read_rows(
    stream: BinaryIO, file: str, delimiter: str, limits: Limits, required: Sequence[str] = ()
) -> Rows:
    """Yield each record as Row. A record of the wrong length or with a NUL character is yielded as
    BadRow.

    Raises FormatError if the file has no header or no records, if a column has no name or occurs
    twice, if a `required` column is missing, and for broken quoting.
    """
    _allow_long_fields(limits)
    records = _records(Lines(stream, file, limits), file, delimiter)
    header = _header(next(records, None), file, required, limits)
    line = 0
    for line, number, fields in records:
        yield _row(file, line, number, header, fields, limits)
    if not line:
        raise FormatError(f"{file}: has column names but no rows. Give a file with rows.")


def pick_rows(
    stream: BinaryIO, file: str, delimiter: str, limits: Limits, starts: Container[int]
) -> Iterator[str]:
    """Return the header and the records that start at these lines, unchanged."""
    _allow_long_fields(limits)
    source = _RecordingLines(stream, file, limits)
    is_header = True
    for line, *_ in _records(source, file, delimiter):
        if is_header or line in starts:
            yield source.record()
        is_header = False


class _RecordingLines(Lines):
    """Yields lines and keeps the text of the current record as it was read."""

    def __init__(self, stream: BinaryIO, file: str, limits: Limits) -> None:
        super().__init__(stream, file, limits)
        self._kept: list[str] = []

    def start_row(self) -> int:
        self._kept.clear()
        return super().start_row()

    def __next__(self) -> str:
        line = super().__next__()
        self._kept.append(line)
        return line

    def record(self) -> str:
        record = "".join(self._kept)
        return record if record.endswith(("\n", "\r")) else f"{record}\n"


def _allow_long_fields(limits: Limits) -> None:
    # The csv module has one limit per process, which is only ever increased here. This module
    # checks the limits of rows and fields itself.
    if csv.field_size_limit() < limits.row_bytes:
        csv.field_size_limit(limits.row_bytes)


def _records(lines: Lines, file: str, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the line where each record starts, its number in a spreadsheet, and its fields."""
    # Blank rows may stand before the column names; spreadsheets count them.
    begin = 0
    while True:
        begin += 1
        line, first = lines.start_row(), next(lines, "")
        if first.strip() or not first:
            break
        lines.skip_blank()
    # The name of a column may have a line break.
    parts, is_open = [first], first.count('"') % 2
    while is_open and (more := next(lines, "")):
        parts.append(more)
        is_open ^= more.count('"') % 2
    first = "".join(parts)
    told = _detect_delimiter(first, delimiter)
    reader = csv.reader(chain([first] if first else [], lines), delimiter=told, strict=True)
    for number in count(begin):
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FormatError(
                f"{file}, line {line}: the row that starts here cannot be read ({error}). Put "
                "fields that contain quotation marks or line breaks in quotation marks, double "
                "the quotation marks inside, and end every row with a line feed."
            ) from error
        if fields:
            yield line, number, fields
        else:
            lines.skip_blank()
        line = lines.start_row()


def _detect_delimiter(header: str, usual: str) -> str:
    """Return the delimiter of the columns. Spreadsheets write semicolons where numbers have decimal
    commas.

    If the header has no delimiter, the file has one column. Its texts, one per line, may contain
    commas.
    """
    bare = _QUOTED.sub("", header)
    if usual != ",":
        return usual
    told = max((usual, ";", "\t"), key=bare.count)
    return told if told in bare else _UNUSED_DELIMITER


def _header(
    record: tuple[int, int, list[str]] | None, file: str, required: Sequence[str], limits: Limits
) -> list[str]:
    if record is None:
        raise FormatError(f"{file}: the file is empty. Give a file with a header and rows.")
    line, _, fields = record
    if len(fields) > limits.columns:
        raise FormatError(
            f"{file}, line {line}: names more than {limits.columns:,} columns. Leave some out."
        )
    names = [name.strip() for name in fields]
    if not all(names) or any("\0" in name for name in names):
        raise FormatError(
            f"{file}, line {line}: a column has no usable name (found: "
            f"{_join_names(names)!r}). "
            "The first row must name every column."
        )
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise FormatError(
            f"{file}, line {line}: columns named twice: {_join_names(twice)}. Rename them."
        )
    _require(names, file, required)
    return names


def _require(names: list[str], file: str, required: Sequence[str]) -> None:
    missing = [name for name in required if name not in names]
    if missing:
        raise FormatError(
            f"{file}: wrong columns, missing: {', '.join(missing)}; found: {_join_names(names)}. "
            f"Required are {', '.join(required)}, in any order."
        )


def _join_names(names: list[str]) -> str:
    # Names may have millions of characters, which take long to shorten.
    return shorten(", ".join(names)[:1_000], 300, placeholder=" ...")


def _row(
    file: str, line: int, number: int, header: list[str], fields: list[str], limits: Limits
) -> Row | BadRow:
    for name, value in zip(header, fields, strict=False):
        check_size(value, limits, file, line, name)
    if len(fields) != len(header):
        reason = f"the row has {len(fields)} fields, the header {len(header)}"
        return BadRow(file, line, "", reason, number=number)
    for name, value in zip(header, fields, strict=True):
        if "\0" in value:
            reason = "a NUL character cannot be stored"
            return BadRow(file, line, name, reason, number=number)
    return Row(file, line, dict(zip(header, fields, strict=True)), number)
