"""Previews a file: its columns, the probable meaning of each, and its first items."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from threading import BoundedSemaphore
from typing import Any

from annotation import importing, tasktypes
from annotation.importing import column_mapping, sources
from annotation.importing.item_rows import ParsedItem, required_columns
from annotation.importing.sources import Source
from annotation.items.diffing import difference as diffing_difference
from annotation.items.taxonomy import Taxonomy
from formats.readers import FORMATS
from formats.rows import BadRow, FormatError, Row

# Rows inspected for columns and for the first valid items.
MAX_ROWS = 200
# A web request waits while a file is inspected.
LOOK_SECONDS = 30.0
# So many files are read at once in a process. One that must be converted may take two minutes, and
# if all threads of the server read files, nobody else would get an answer. A further request waits
# so many seconds, and is then refused.
_READINGS = BoundedSemaphore(2)
WAIT_SECONDS = 3.0
MAX_SHOWN = 5
# Columns of JSON may differ from row to row, so their number is limited. A longer name is a text.
MAX_COLUMNS, MAX_NAME_LENGTH = 200, 200
# Longer texts are shown side by side without a diff, because computing a diff would delay the page.
MAX_COMPARED_LENGTH = 20_000


@dataclass(frozen=True)
class PreviewItem:
    """An item as annotators would see it; `difference` is None if no texts are compared."""

    draft: ParsedItem
    difference: diffing_difference.Difference | None


@contextmanager
def take_turn(name: str) -> Iterator[None]:
    """Let a web request read a file of this name when fewer than two others of the process do.
    Raises FormatError if they take longer than `WAIT_SECONDS`."""
    if not _READINGS.acquire(timeout=WAIT_SECONDS):
        raise FormatError(f"{name}: other large files are being read. Try again in a minute.")
    try:
        yield
    finally:
        _READINGS.release()


def detect_columns(source: Source) -> list[str]:
    """Return the columns of the first rows; the names of values inside objects contain a dot.
    Names longer than `MAX_NAME_LENGTH` are left out. Raises FormatError."""
    found: dict[str, None] = {}
    rows = sources.stream_rows(replace(source, columns={}))
    for row in islice(_stop_in_time(rows, source), MAX_ROWS):
        for name in _names(row.values) if isinstance(row, Row) else ():
            found[name] = None
            if len(found) == MAX_COLUMNS:
                return list(found)
    return list(found)


def suggest_columns(task: tasktypes.TaskType, found: list[str]) -> dict[str, str]:
    """Suggest a file column for each item column: the one with the same name, otherwise a probable
    one, otherwise ""."""
    guessed = column_mapping.guess_columns(task, found)
    return {
        name: name if name in found else guessed.get(name, "")
        for name in column_mapping.item_columns(task)
    }


def missing_columns(
    task: tasktypes.TaskType, source: Source, chosen: Mapping[str, str]
) -> list[str]:
    """Return the required item columns for which no file column was chosen."""
    if FORMATS[source.form].is_fixed:
        return []
    return [name for name in required_columns(task) if not chosen.get(name)]


def preview_items(
    task: tasktypes.TaskType, known: Taxonomy, source: Source
) -> list[PreviewItem] | None:
    """Return the first items that the file would give, or only the items before an error in the
    file; None while too many files are being read."""
    rows = islice(_stop_in_time(sources.stream_rows(source), source), MAX_ROWS)
    found = importing.parse_items(_skip_fault(rows), task, known, accept=source.accept)
    good = (draft for draft in found if isinstance(draft, ParsedItem))
    try:
        with take_turn(source.path.name):
            drafts = list(islice(good, MAX_SHOWN))
    except FormatError:
        return None
    return [PreviewItem(draft, _difference(task, draft.texts)) for draft in drafts]


def _stop_in_time(rows: Iterator[Row | BadRow], source: Source) -> Iterator[Row | BadRow]:
    """Yield the rows. Raises FormatError when they take longer than `LOOK_SECONDS`, for example in
    an archive of many files that each take long to unpack."""
    until = time.monotonic() + LOOK_SECONDS
    for row in rows:
        yield row
        if time.monotonic() > until:
            raise FormatError(
                f"{source.path.name}: the first rows take longer than {LOOK_SECONDS:.0f} seconds "
                "to read. Split the file, or save it as CSV."
            )


def _names(values: Mapping[str, Any]) -> Iterator[str]:
    for name in filter(_is_short, values):
        yield name
        if isinstance(inside := values[name], dict):
            yield from (f"{name}.{inner}" for inner in filter(_is_short, inside))


def _is_short(name: str) -> bool:
    return len(name) <= MAX_NAME_LENGTH


def _skip_fault(rows: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from rows
    except FormatError:
        return


def _difference(
    task: tasktypes.TaskType, texts: Mapping[str, Any]
) -> diffing_difference.Difference | None:
    pair = [texts.get(name) for name in task.diff or ()]
    if len(pair) < 2 or not all(isinstance(one, str) for one in pair):
        return None
    before, after = map(str, pair)
    return (
        diffing_difference.compare(before, after)
        if len(before) + len(after) < MAX_COMPARED_LENGTH
        else None
    )
