"""Restore items from the rows of an exported table of items; pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotation import tasktypes
from annotation.importing import flags
from annotation.labelling import correct_answers
from formats.rows import BadRow, Row
from formats.writers import undo_formula_escape

# Columns that occur together only in an export of items.
EXPORT_COLUMNS = frozenset({"duplicate_of", "flags", "revision", "digest", "other_texts", "fields"})
# The columns of an item itself; other exported columns are derived from the item or from a
# resolution.
ITEM_COLUMNS = ("key", "category", "source_ability", "origin", "purpose", "cluster")
RESOLUTION_COLUMN = "resolution"
SOURCES = ("labels", "adjudicated", "imported")
MAX_SHORT_LENGTH = 40
# Flags are kept as exported; the rules never give more than MAX_FLAGS.
_FLAG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_FLAGS = 20


@dataclass(frozen=True)
class ExportedResolution:
    """The exported resolution of an item, with its rule and source."""

    value: str
    values: dict[str, Any]
    reason: str
    comment: str
    source: str
    rule: str


@dataclass(frozen=True, slots=True)
class DerivedRow(Row):
    """A row of an item that was made from another item: the key of this parent ("" if there is
    none), the number of inserted errors (None if unknown), and the flags that only a comparison
    with the other item finds."""

    parent: str = ""
    dose: int | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportedRow(DerivedRow):
    """An exported row in the form of a new row, with all its flags, its revision number and its
    resolution (None if it had no resolution)."""

    revision: int = 1
    held: ExportedResolution | None = None


def restore_rows(rows: Iterable[Row | BadRow], task: tasktypes.TaskType) -> Iterator[Row | BadRow]:
    """Convert exported rows to the form of new rows; other rows are passed on unchanged."""
    for row in rows:
        if isinstance(row, BadRow) or not row.values.keys() >= EXPORT_COLUMNS:
            yield row
            continue
        try:
            yield _restore_row(row, task)
        except _ExportFault as fault:
            yield row.bad(str(fault), "does not match the export format.")


def row_flags(
    row: Row, texts: Mapping[str, Any], task: tasktypes.TaskType, category: str
) -> tuple[str, ...]:
    """Return the flags of a row. An exported row keeps its flags, and a generated row gets the
    flags of all rules. Other rows, which may be a million, are only checked for identical texts."""
    if isinstance(row, ExportedRow):
        return row.flags
    if row.values.get("repeats"):
        return ()
    if isinstance(row, DerivedRow):
        return (*flags.flag_generated(texts, task.diff, category), *row.flags)
    return flags.flag_texts(texts, task.diff)


class _ExportFault(ValueError):
    """Raised for a bad exported value; the message is the name of its column."""


def _restore_row(row: Row, task: tasktypes.TaskType) -> ExportedRow:
    told = _Cells(row.values)
    names = {text.name: text.many for text in task.texts}
    texts = {name: told.text_or_list(name) if many else told.plain(name)
             for name, many in names.items()}  # fmt: skip
    values = told.object("fields") | told.object("other_texts")
    values |= {name: text for name, text in texts.items() if text is not None}
    values |= {name: told.plain(name) for name in ITEM_COLUMNS if told.plain(name) is not None}
    values["repeats"] = told.plain("duplicate_of")
    if not task.categories:
        values["ability"] = told.plain("ability")
    held = _parse_resolution(told, task) if told.plain(RESOLUTION_COLUMN) else None
    purpose = told.plain("purpose")
    if purpose in correct_answers.PURPOSES:
        known, why = correct_answers.answer_columns(task)
        values |= {known: told.object("values"), why: told.plain("comment")}
        held = None
    elif held and held.source not in SOURCES:
        raise _ExportFault("source")
    dose = told.number("dose") if told.plain("dose") is not None else None
    parent = told.plain("parent") or ""
    if not isinstance(parent, str):
        raise _ExportFault("parent")
    flags, revision = told.slugs("flags"), told.number("revision")
    made = (parent, dose, flags, revision, held)
    return ExportedRow(row.file, row.line, values, row.number, *made)


def _parse_resolution(told: "_Cells", task: tasktypes.TaskType) -> ExportedResolution:
    short = {
        name: told.plain(name) or "" for name in (RESOLUTION_COLUMN, "reason", "source", "rule")
    }
    if wrong := [name for name, value in short.items() if len(value) > MAX_SHORT_LENGTH]:
        raise _ExportFault(wrong[0])
    values = told.object("values")
    # Figures calculate with them.
    numbers = values.keys() & {field.name for field in task.fields if field.is_number}
    if not all(_is_number(values[name]) for name in numbers):
        raise _ExportFault("values")
    return ExportedResolution(
        value=short[RESOLUTION_COLUMN],
        values=values,
        reason=short["reason"],
        comment=told.plain("comment") or "",
        source=short["source"],
        rule=short["rule"],
    )


class _Cells:
    """The values of a row: JSON values from JSON Lines, or cells of a table that contain JSON as
    text."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        # If a list is stored as text, this is a table and all values are texts.
        self._is_table = isinstance(values["flags"], str)

    def plain(self, name: str) -> Any:
        """Return a text value; None if it is missing. In a table "" also gives None, because an
        empty cell can mean a missing value."""
        value = self._values.get(name)
        if self._is_table and isinstance(value, str):
            return undo_formula_escape(value) or None
        return value

    def text_or_list(self, name: str) -> Any:
        value = self.plain(name)
        is_list = isinstance(value, str) and value.startswith("[")
        return self._json(name, list, value) if is_list else value

    def object(self, name: str) -> dict[str, Any]:
        value = self._values.get(name)
        if value in (None, ""):
            return {}
        found = self._json(name, dict, value) if self._is_table else value
        if not isinstance(found, dict):
            raise _ExportFault(name)
        return found

    def slugs(self, name: str) -> tuple[str, ...]:
        value = self._values[name]
        found = self._json(name, list, value or "[]") if self._is_table else value
        if not isinstance(found, list) or len(found) > MAX_FLAGS or not all(map(_is_slug, found)):
            raise _ExportFault(name)
        return tuple(dict.fromkeys(found))

    def number(self, name: str) -> int:
        value = self._values[name]
        digits = str(value)
        is_number = not isinstance(value, bool) and digits.isascii() and digits.isdecimal()
        if not is_number or not 1 <= int(digits[:10]) <= 1_000_000:
            raise _ExportFault(name)
        return int(digits)

    def _json(self, name: str, kind: type, text: str) -> Any:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _ExportFault(name) from error
        if not isinstance(found, kind):
            raise _ExportFault(name)
        return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < correct_answers.LARGEST_NUMBER


def _is_slug(value: Any) -> bool:
    return (
        isinstance(value, str) and len(value) <= MAX_SHORT_LENGTH and bool(_FLAG.fullmatch(value))
    )
