"""What a file seems to hold: its columns, what they probably mean, and its first items."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from annotation import importing, tasktypes
from annotation.importing import column_mapping, sources
from annotation.importing.item_rows import ParsedItem, required_columns
from annotation.importing.sources import Source
from annotation.items.diffing import difference as diffing_difference
from formats.rows import FormatError, Row

# So many rows are looked at for columns and for the first good ones.
MAX_ROWS = 200
MAX_SHOWN = 5
# Columns of JSON may differ from row to row without end.
MAX_COLUMNS = 200
# Longer texts are shown beside each other, since a page should not wait for their differences.
MAX_COMPARED_LENGTH = 20_000
# Layouts that say themselves what their columns mean.
FIXED_FORMATS = ("fbi", "realmistake")


@dataclass(frozen=True)
class PreviewItem:
    """An item to be, as annotators would see it; `difference` None where nothing is compared."""

    draft: ParsedItem
    difference: diffing_difference.Difference | None


def detect_columns(source: Source) -> list[str]:
    """The columns of the first rows, those inside objects behind a dot. Raises FormatError."""
    found: dict[str, None] = {}
    for row in islice(sources.stream_rows(replace(source, columns={})), MAX_ROWS):
        if isinstance(row, Row):
            found |= dict.fromkeys(_names(row.values))
    return list(found)[:MAX_COLUMNS]


def suggest_columns(task: tasktypes.TaskType, found: list[str]) -> dict[str, str]:
    """By the name that an item has: the column that bears it, or is probably meant, or ""."""
    guessed = column_mapping.guess_columns(task, found)
    return {
        name: name if name in found else guessed.get(name, "")
        for name in column_mapping.item_columns(task)
    }


def missing_columns(
    task: tasktypes.TaskType, source: Source, chosen: Mapping[str, str]
) -> list[str]:
    """What every item needs and no column was chosen for."""
    if source.form in FIXED_FORMATS:
        return []
    return [name for name in required_columns(task) if not chosen.get(name)]


def preview_items(task: tasktypes.TaskType, source: Source) -> list[PreviewItem]:
    """The first items that the file would give; as many as could be read if it has a fault."""
    rows = islice(sources.stream_rows(source), MAX_ROWS)
    drafts = importing.parse_items(_skip_fault(rows), task, accept=source.accept)
    good = (draft for draft in drafts if isinstance(draft, ParsedItem))
    return [PreviewItem(draft, _difference(task, draft.texts)) for draft in islice(good, MAX_SHOWN)]


def _names(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value)


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
