"""A source of items (a file or an archive), and its rows with the column names of items."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotation.importing.column_mapping import rename_columns
from formats import realmistake
from formats.readers import READERS, preview_rows, with_password
from formats.rows import DEFAULT_LIMITS, BadRow, Limits, Row


@dataclass(frozen=True)
class Source:
    """A source of rows: its format in `READERS`, and the file column for each item column. With
    `accept`, the file's labels are imported as decided."""

    path: Path
    form: str
    columns: Mapping[str, str] = field(default_factory=dict)
    password: str = ""
    accept: bool = False


def read_rows(source: Source, limits: Limits = DEFAULT_LIMITS) -> Iterator[Row | BadRow]:
    """Return the rows with the column names of items. Raises any FormatError before the first
    row."""
    read = with_password(READERS[source.form], source.password)
    return _rename_rows(read(source.path, limits), source)


def stream_rows(source: Source, limits: Limits = DEFAULT_LIMITS) -> Iterator[Row | BadRow]:
    """Like `read_rows`, but without checking the whole file first: a FormatError may follow good
    rows."""
    return _rename_rows(preview_rows(source.form, source.path, limits, source.password), source)


def _rename_rows(found: Iterator[Row | BadRow], source: Source) -> Iterator[Row | BadRow]:
    if source.columns:
        found = rename_columns(found, source.columns)
    if source.form == "realmistake" and not source.accept:
        return _drop_columns(found, realmistake.LABELS)
    return found


def _drop_columns(found: Iterator[Row | BadRow], names: tuple[str, ...]) -> Iterator[Row | BadRow]:
    """Remove the columns with human labels from the rows, because annotators must not see these
    labels."""
    for row in found:
        if isinstance(row, Row):
            kept = {name: value for name, value in row.values.items() if name not in names}
            row = replace(row, values=kept)
        yield row
