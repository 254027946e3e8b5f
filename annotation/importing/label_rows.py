"""Parse rows into labels that were given elsewhere, or say why a row cannot be used; pure.

A number off its scale is not an answer: it is stored as missing, with this cause and the given
value. The other answers of the row still form a label, as in recorded replies.
"""

import hashlib
import json
import math
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling.correct_answers import off_scale, off_scale_in_words
from annotation.tasktypes import fields
from formats.rows import BadRow, Row

REQUIRED_COLUMNS = ("item", "rater", "time")
OPTIONAL_COLUMNS = ("comment", "seconds", "revision", "stage", "informed", "diff", "first_shown")
COLUMNS = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
# A field of a task type may have the name of a column; its column then has this prefix.
ANSWER_PREFIX = "answers."
# The current name, the name in older files, or no name.
_IMPORTED_STAGES = {"", "label", "work"}
ALIAS_LENGTH = 80
COMMENT_LENGTH = 10_000
LARGEST_REVISION = 2_147_483_647
YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}


@dataclass(frozen=True)
class ParsedLabel:
    """A valid row, parsed into a label. `revision` is None for the current one.

    `missing` maps fields to values that are not answers: the "cause" and the given value ("said").
    `diff` is the algorithm of the diff by which answers number the changes, "" if none does; files
    from before there was a second algorithm do not name it. `first_shown` is the text of a pair
    that the rater saw as A, "" if that is unknown.
    """

    row: Row
    item: str
    rater: str
    time: datetime
    answers: dict[str, Any]
    choice: str
    comment: str
    seconds: float | None
    revision: int | None
    informed: bool
    missing: dict[str, dict[str, Any]]
    diff: str = ""
    first_shown: str = ""

    def digest(self, project: str) -> str:
        """A digest of the row: equal rows become the same label, however often they are
        imported."""
        parts = [project, self.item, self.rater, self.time.isoformat(), self.answers]
        parts += [self.missing] if self.missing else []
        canonical = json.dumps(parts, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def bad(self, field: str, reason: str) -> BadRow:
        """Return a BadRow that rejects this statement after parsing."""
        return self.row.bad(field, reason)

    def off_scale(self) -> Iterator[BadRow]:
        """A report for each missing answer of the row."""
        for name, lacking in self.missing.items():
            yield self.bad(name, off_scale_in_words(lacking["said"]))


class _LabelFault(ValueError):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def parse_labels(
    rows: Iterable[Row | BadRow],
    task: tasktypes.TaskType,
    *,
    now: datetime,
    ignored: Sequence[str] = (),
) -> Iterator[ParsedLabel | BadRow]:
    """Yield each row as a parsed label, or as a BadRow with the reason.

    `ignored` names columns to skip. A row with any other unknown column is bad; otherwise a
    misspelt field would be dropped silently.
    """
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            yield _parse_label(row, task, now, frozenset(ignored))
        except _LabelFault as fault:
            yield row.bad(fault.field, str(fault))


def label_columns(task: tasktypes.TaskType) -> tuple[str, ...]:
    """Return all columns that a file of labels may have."""
    return (*COLUMNS, *(field.name for field in task.fields))


def _parse_label(
    row: Row, task: tasktypes.TaskType, now: datetime, ignored: frozenset[str]
) -> ParsedLabel:
    told = {name: value for name, value in row.values.items() if name not in ignored}
    _check_columns(told, task)
    if _text_value(told, "stage").strip() not in _IMPORTED_STAGES:
        raise _LabelFault(
            "stage", f"is {told['stage']!r}; only labels of stage label are imported."
        )
    answers, missing = _split_missing(task, _answers(told, task))
    return ParsedLabel(
        row=row,
        item=_required_value(told, "item"),
        rater=_rater(_required_value(told, "rater")),
        time=_time(_required_value(told, "time"), now),
        answers=answers,
        choice=task.choice_of(answers),
        comment=_comment(_text_value(told, "comment")),
        seconds=_seconds(told.get("seconds")),
        revision=_revision(told.get("revision")),
        informed=_informed(told.get("informed")),
        missing=missing,
        diff=(_text_value(told, "diff") or FORMER_ALGORITHM) if task.names_changes(answers) else "",
        first_shown=_first_shown(_text_value(told, "first_shown").strip(), task),
    )


def _check_columns(told: dict[str, Any], task: tasktypes.TaskType) -> None:
    known = label_columns(task)
    for name, value in told.items():
        if name.removeprefix(ANSWER_PREFIX) not in known and value not in (None, ""):
            raise _LabelFault(name, f"is not a known column; use {', '.join(known)}. Rename it.")


def _answers(told: dict[str, Any], task: tasktypes.TaskType) -> dict[str, object]:
    found: dict[str, object] = {}
    for field in task.fields:
        plain = None if field.name in COLUMNS else told.get(field.name)
        value = told.get(ANSWER_PREFIX + field.name, plain)
        found[field.name] = _cell_answer(field, value) if isinstance(value, str) else value
    return found


def _cell_answer(field: fields.Field, cell: str) -> object:
    """Convert a cell of a text table to the form of its field; several values are given as JSON or
    as a;b."""
    cell = cell if field.is_written else cell.strip()
    if not field.has_several or not cell:
        return cell
    if cell[0] in "[{":
        try:
            return json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise _LabelFault(field.name, "looks like JSON but is not valid JSON.") from error
    return [part.strip() for part in cell.split(";") if part.strip()]


def _split_missing(
    task: tasktypes.TaskType, given: dict[str, object]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the answers, and the missing answers of the fields that were asked."""
    off = off_scale(task, given)
    answers = _cleaned(_task_without(task, off), {**given, **dict.fromkeys(off)})
    if off and not any(one.name in answers for one in task.fields if one.is_number):
        _cleaned(task, given)  # raises, since no number is left
    said = {
        one.name: one.answer_values(answers[one.name]) for one in task.fields if one.name in answers
    }
    unasked = {one.name for one in task.fields if one.when and not one.when.holds(said)}
    return answers, {name: one for name, one in off.items() if name not in unasked}


def _task_without(task: tasktypes.TaskType, missing: Collection[str]) -> tasktypes.TaskType:
    """Return the task with these fields made optional, because their answers are missing."""
    asked = (replace(one, required=False) if one.name in missing else one for one in task.fields)
    return replace(task, fields=tuple(asked))


def _cleaned(task: tasktypes.TaskType, answers: dict[str, object]) -> dict[str, Any]:
    try:
        return task.clean(answers)
    except FieldError as error:
        missing = fields.is_empty(answers.get(error.field))
        instead = next((f.unless for f in task.fields if f.name == error.field), "")
        told = str(error)
        if instead and missing:
            told = f"{told.removesuffix('.')} (column {instead})."
        raise _LabelFault(error.field, told) from error


def _text_value(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _LabelFault(name, "is not text. Put it in quotes.")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise _LabelFault(
            name, ("contains a character that cannot be saved (NUL or half of a pair).")
        )
    return value


def _required_value(told: dict[str, Any], name: str) -> str:
    value = _text_value(told, name).strip()
    if not value:
        raise _LabelFault(name, "is empty or missing; every label needs it.")
    return value


def _rater(name: str) -> str:
    if len(name) > ALIAS_LENGTH:
        raise _LabelFault("rater", f"is longer than {ALIAS_LENGTH} characters.")
    if any(unicodedata.category(character).startswith("C") for character in name):
        raise _LabelFault("rater", "contains control characters. Remove them.")
    return name


def _time(written: str, now: datetime) -> datetime:
    """Parse ISO 8601; without a time zone it is UTC."""
    try:
        time = datetime.fromisoformat(written)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _LabelFault("time", f"is {written!r}; write it as 2026-01-31T14:05:00Z.") from error
    if time > now:
        raise _LabelFault("time", f"is {written!r}, which is in the future. Correct it.")
    return time


def _comment(text: str) -> str:
    if len(text) > COMMENT_LENGTH:
        raise _LabelFault("comment", f"is longer than {COMMENT_LENGTH:,} characters.")
    return text


def _seconds(value: object) -> float | None:
    if value in (None, ""):
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise _LabelFault("seconds", f"is {value!r}; write a number, 0 or more, or leave it out.")
    return seconds


def _revision(value: object) -> int | None:
    if value in (None, ""):
        return None
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and len(text) < 11):
        raise _LabelFault("revision", f"is {value!r}; write the number of a revision.")
    if not 1 <= int(text) <= LARGEST_REVISION:
        raise _LabelFault("revision", f"is {value!r}; revisions are numbered from 1.")
    return int(text)


def _first_shown(name: str, task: tasktypes.TaskType) -> str:
    known = task.pair.texts if task.pair else ()
    if name and name not in known:
        names = " or ".join(known)
        told = f"write {names}, or leave it out" if known else "this task has no pair; leave it out"
        raise _LabelFault("first_shown", f"is {name!r}; {told}.")
    return name


def _informed(value: object) -> bool:
    known = YES_NO.get("" if value is None else str(value).strip().lower())
    if known is None:
        raise _LabelFault("informed", f"is {value!r}; write yes or no.")
    return known
