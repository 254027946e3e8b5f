"""A source of items (a file or an archive), and its rows with the column names of items."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from annotation.importing.column_mapping import rename_columns
from formats.readers import FORMATS
from formats.rows import DEFAULT_LIMITS, BadRow, Limits, Row


@dataclass(frozen=True)
class Source:
    """A source of rows: its format in `FORMATS`, and the file column for each item column. With
    `accept`, the file's labels are imported as decided. `categories` has the category that is meant
    by a word in the file. `corrections` has values of rows, by file and line, that count in place
    of the ones in the file."""

    path: Path
    form: str
    columns: Mapping[str, str] = field(default_factory=dict)
    password: str = ""
    accept: bool = False
    categories: Mapping[str, str] = field(default_factory=dict)
    corrections: Mapping[tuple[str, int], Mapping[str, str]] = field(default_factory=dict)


def read_rows(source: Source, limits: Limits = DEFAULT_LIMITS) -> Iterator[Row | BadRow]:
    """Return the rows with the column names of items. Raises any FormatError before the first
    row."""
    return _rename_rows(FORMATS[source.form].read(source.path, limits, source.password), source)


def stream_rows(source: Source, limits: Limits = DEFAULT_LIMITS) -> Iterator[Row | BadRow]:
    """Like `read_rows`, but without checking the whole file first: a FormatError may follow good
    rows."""
    rows = FORMATS[source.form].preview(source.path, limits, source.password)
    return _rename_rows(rows, source)


def _rename_rows(found: Iterator[Row | BadRow], source: Source) -> Iterator[Row | BadRow]:
    if source.columns:
        found = rename_columns(found, source.columns)
    if source.categories:
        found = _name_categories(found, source.categories)
    if source.corrections:
        found = _correct_rows(found, source.corrections)
    labels = FORMATS[source.form].labels
    return _drop_columns(found, labels) if labels and not source.accept else found


def _name_categories(
    found: Iterator[Row | BadRow], meant: Mapping[str, str]
) -> Iterator[Row | BadRow]:
    """Replace the words of the category column by the categories that are meant."""
    for row in found:
        word = row.values.get("category") if isinstance(row, Row) else None
        if isinstance(row, Row) and isinstance(word, str) and word.strip() in meant:
            row = replace(row, values={**row.values, "category": meant[word.strip()]})
        yield row


def _correct_rows(
    found: Iterator[Row | BadRow], corrections: Mapping[tuple[str, int], Mapping[str, str]]
) -> Iterator[Row | BadRow]:
    """Replace the values of rows that were corrected."""
    for row in found:
        values = corrections.get((row.file, row.line))
        if isinstance(row, Row) and values:
            row = replace(row, values={**row.values, **values})
        yield row


def _drop_columns(found: Iterator[Row | BadRow], names: tuple[str, ...]) -> Iterator[Row | BadRow]:
    """Remove the columns with human labels from the rows, because annotators must not see these
    labels."""
    for row in found:
        if isinstance(row, Row):
            kept = {name: value for name, value in row.values.items() if name not in names}
            row = replace(row, values=kept)
        yield row
