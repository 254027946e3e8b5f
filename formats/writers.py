"""The formats that can be written, by name; rows are written one at a time."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from io import BufferedWriter, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, TextIO
from uuid import UUID

from formats import fbi
from formats.dataset_card import CardBuilder, empty_card
from formats.sealed import ArchiveWriter
from formats.typeset import write_latex, write_markdown

Values = dict[str, Any]
Writer = Callable[[Iterable[dict[str, Any]], Sequence[str], TextIO], int]

# Spreadsheets also take the full-width forms of these signs for the start of a formula.
_FORMULA = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"
# Some programs skip these at the beginning of a cell.
_SKIPPED = "\n\ufeff\u200b"
_ESCAPED_STARTS = "'" + _FORMULA + _SKIPPED
# Spreadsheets may split a cell at any of these, whatever separates the columns. What follows would
# be a cell of its own, and could be a formula.
_QUOTED = ",;\t\n\r"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def write_csv(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write a header and the rows as CSV; return the number of rows.

    Open the stream with newline="". None is written as empty, as is a column that a row lacks;
    lists and objects are written as JSON. Text that a spreadsheet would run as a formula gets a
    leading apostrophe, so CSV is for reading; JSON Lines keeps every text unchanged. Raises
    ValueError for text that is not valid Unicode and for numbers that are not finite; the message
    names row and column.
    """
    return _write_delimited(rows, columns, stream, ",")


def write_tsv(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write the same as `write_csv`, with tabs between the columns."""
    return _write_delimited(rows, columns, stream, "\t")


def write_jsonl(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write one JSON object per line with exactly these columns; return the number of rows.

    A column that a row lacks is null. Raises the same ValueError as `write_csv`.
    """
    count = 0
    for line in _objects(rows, columns):
        stream.write(line + "\n")
        count += 1
    return count


def write_table(
    table: str, rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO
) -> int:
    """Write one JSON document {"table", "columns", "rows": [...]}; return the number of rows."""
    head = json.dumps({"table": table, "columns": list(columns)}, ensure_ascii=False)
    stream.write(head.removesuffix("}") + ', "rows": [')
    count = 0
    for line in _objects(rows, columns):
        stream.write((",\n" if count else "\n") + line)
        count += 1
    stream.write("\n]}\n")
    return count


WRITERS: dict[str, Writer] = {"csv": write_csv, "tsv": write_tsv, "jsonl": write_jsonl}
# Tables of rows can also be written as Parquet. Items can also be written in the layout of study
# 000's archive, or as a folder for the Hugging Face hub.
PARQUET, FBI, HUB = "parquet", "fbi", "hub"
ZIP_FORMATS = (FBI, HUB)
FILE_FORMATS = (*WRITERS, PARQUET, *ZIP_FORMATS)


class FigureFormat(NamedTuple):
    """A format of tables of figures, with the ending of its files. `write` is None for one JSON
    document that contains the name of the table."""

    write: Writer | None
    content_type: str
    ending: str


FIGURE_FORMATS: dict[str, FigureFormat] = {
    "csv": FigureFormat(write_csv, "text/csv; charset=utf-8", "csv"),
    "tsv": FigureFormat(write_tsv, "text/tab-separated-values; charset=utf-8", "tsv"),
    "json": FigureFormat(None, "application/json", "json"),
    "jsonl": FigureFormat(write_jsonl, "application/jsonl", "jsonl"),
    "latex": FigureFormat(write_latex, "text/x-tex; charset=utf-8", "tex"),
    "markdown": FigureFormat(write_markdown, "text/markdown; charset=utf-8", "md"),
}


@dataclass(frozen=True)
class PackingOptions:
    """Options for a file that is written as a zip.

    `name` is the name of the file with the rows, `password` encrypts the zip, and `card` builds the
    dataset card of a folder for the hub. `alive` is called repeatedly while files are added to the
    zip, which goes on after the last row has been read.
    """

    name: str = "rows"
    password: str = ""
    card: CardBuilder = empty_card
    alive: Callable[[], object] = bool


def write_file(
    form: str,
    rows: Iterable[dict[str, Any]],
    columns: Sequence[str],
    path: Path,
    kinds: Mapping[str, str],
    packed: PackingOptions = PackingOptions(),
) -> int:
    """Write rows to a file in one of `FILE_FORMATS`; return the number of rows.

    `kinds` gives the kinds of the columns that are not texts, as for `parquet.write_file`; only
    formats with typed columns use it. With a password, the file is an encrypted zip. If the program
    is killed halfway, temporary files remain next to the file; their names start with
    `temporary_prefix(path)`.
    """
    given = _FileRequest(form, rows, columns, kinds)
    with path.open("wb") as stream:
        if form not in ZIP_FORMATS and not packed.password:
            return _write(given, stream)
        with closing(ArchiveWriter(stream, packed.password, packed.alive)) as sealing:
            if form not in ZIP_FORMATS:
                return _seal(given, packed.name, sealing)
            with TemporaryDirectory(dir=path.parent, prefix=temporary_prefix(path)) as folder:
                return _fill(given, packed.card, sealing, Path(folder))


def temporary_prefix(path: Path) -> str:
    """Return the prefix of the temporary files that are next to a file while it is written."""
    return f"{path.stem}-part-"


@dataclass(frozen=True)
class _FileRequest:
    form: str
    rows: Iterable[dict[str, Any]]
    columns: Sequence[str]
    kinds: Mapping[str, str]


def _write(given: _FileRequest, stream: IO[bytes]) -> int:
    if given.form == PARQUET:
        # Imported only when needed, since it takes as much memory as everything else here.
        from formats import parquet

        return parquet.write_file(given.rows, given.columns, stream, given.kinds)
    text = TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        return WRITERS[given.form](given.rows, given.columns, text)
    finally:
        text.detach()


def _seal(given: _FileRequest, name: str, sealing: ArchiveWriter) -> int:
    """Write the rows as the only file of a zip archive."""
    with sealing.member(f"{name}.{given.form}") as member, BufferedWriter(member) as stream:
        count = _write(given, stream)
    sealing.seal({})
    return count


def _fill(given: _FileRequest, card: CardBuilder, sealing: ArchiveWriter, folder: Path) -> int:
    """Write all files of an archive from the rows, using a temporary folder."""
    if given.form == FBI:
        names = [name for name in given.columns if name == "canary"]
        return fbi.write_archive(given.rows, sealing, folder, names)
    from formats import hub

    return hub.write_folder(given.rows, given.columns, given.kinds, card, sealing, folder)


def file_ending(form: str, *, encrypted: bool = False) -> str:
    """Return the suffix, without the dot, of a file in one of `FILE_FORMATS`."""
    return "zip" if form in ZIP_FORMATS or encrypted else form


def write_figures(
    form: str,
    table: str,
    rows: Iterable[dict[str, Any]],
    columns: Sequence[str],
    stream: TextIO,
) -> int:
    """Write a table of figures in one of `FIGURE_FORMATS`; return the number of rows."""
    write = FIGURE_FORMATS[form].write
    if write is None:
        return write_table(table, rows, columns, stream)
    return write(rows, columns, stream)


def _write_delimited(
    rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO, delimiter: str
) -> int:
    # The csv module inspects every character, which took most of the time of an export.
    def line(cells: list[str]) -> str:
        quoted = [_quoted(cell) for cell in cells]
        return (delimiter.join(quoted) if quoted != [""] else '""') + "\r\n"

    stream.write(line([_escape_formula(name) for name in columns]))
    count = 0
    for cells in _convert_rows(rows, columns, _csv_cells):
        stream.write(line(cells))
        count += 1
    return count


def _quoted(cell: str) -> str:
    if '"' in cell:
        return '"' + cell.replace('"', '""') + '"'
    return f'"{cell}"' if any(sign in cell for sign in _QUOTED) else cell


def _objects(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    for [line] in _convert_rows(rows, columns, _json_line):
        yield line


def _convert_rows(
    rows: Iterable[dict[str, Any]], columns: Sequence[str], form: Callable[[Values], list[str]]
) -> Iterator[list[str]]:
    """Yield the chosen columns of each row, converted by `form` and checked to be valid Unicode."""
    wanted = list(columns)
    for number, row in enumerate(rows, start=1):
        values = row if list(row) == wanted else {name: row.get(name) for name in wanted}
        try:
            texts = form(values)
            "".join(texts).encode("utf-8")
        except (ValueError, TypeError) as error:
            raise ValueError(_describe_fault(values, form, number)) from error
        yield texts


def _describe_fault(values: Values, form: Callable[[Values], list[str]], number: int) -> str:
    """Say which of a row's columns cannot be written, and why."""
    for column, value in values.items():
        try:
            "".join(form({column: value})).encode("utf-8")
        except (ValueError, TypeError) as error:
            return f"row {number}, column '{column}' cannot be written: {error}"
    return f"row {number} cannot be written"


def _json_line(values: Values) -> list[str]:
    return [_json(values)]


def _csv_cells(values: Values) -> list[str]:
    return [
        _escape_formula(value) if type(value) is str else "" if value is None else _csv_cell(value)
        for value in values.values()
    ]


def _csv_cell(value: Any) -> str:
    if isinstance(value, str):
        return _escape_formula(value)
    return str(_plain(value)) if isinstance(value, date | UUID) else _json(value)


def _escape_formula(text: str) -> str:
    return "'" + text if text[:1] in _ESCAPED_STARTS and text and _is_dangerous(text) else text


def undo_formula_escape(text: str) -> str:
    """Return the original of a text that `write_csv` wrote."""
    return text[1:] if text[:1] == "'" and _is_dangerous(text[1:]) else text


def _is_dangerous(text: str) -> bool:
    # A text that already starts with an apostrophe gets another one, so that the escape can be
    # undone without doubt.
    bare = text.lstrip("'").lstrip(_SKIPPED)
    return bare[:1] in _FORMULA and bool(bare) and not _NUMBER.fullmatch(bare)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be written in this format")


# One encoder for all cells, since creating an encoder takes longer than writing a cell.
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain).encode
