"""Validate and compare correct answers that are known before labelling; pure functions."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation import tasktypes
from annotation.errors import FieldError
from annotation.tasktypes import fields

PRACTICE, PROBE = "practice", "probe"
PURPOSES = (PRACTICE, PROBE)
MAX_EXPLANATION_LENGTH = 10_000
LARGEST_NUMBER = 10**15
OFF_SCALE = "off_scale"


@dataclass(frozen=True)
class CorrectAnswer:
    """The correct answers by field; `value` is the answer to the deciding field. `missing` has the
    answers outside their field's scale, as returned by `off_scale`."""

    value: str
    values: dict[str, Any]
    explanation: str
    missing: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


def clean_correct_answer(
    task: tasktypes.TaskType, purpose: str, answers: Mapping[str, object], explanation: str
) -> CorrectAnswer:
    """Validate the correct answers, and return them by field, as the task type stores them. Raises
    `FieldError`.

    Only the resolved fields are kept, since free text is neither right nor wrong. All fields except
    the deciding field may be left out; a field that is left out is not compared.
    """
    if purpose not in PURPOSES:
        raise FieldError(f"A correct answer needs the purpose {' or '.join(PURPOSES)}.", "purpose")
    cleaned = _clean_given(task, answers)
    explanation = explanation.strip()
    if purpose == PRACTICE and not explanation:
        raise FieldError("Explain why this is correct. Annotators read it.", "explanation")
    if len(explanation) > MAX_EXPLANATION_LENGTH:
        raise FieldError(
            f"The explanation is longer than {MAX_EXPLANATION_LENGTH} characters.", "explanation"
        )
    compared = {field.name for field in task.resolved}
    values = {name: value for name, value in cleaned.items() if name in compared}
    return CorrectAnswer(task.choice_of(cleaned), values, explanation)


def parse_row(
    task: tasktypes.TaskType, purpose: str, values: Mapping[str, Any]
) -> CorrectAnswer | None:
    """Parse the correct answer in a row of a qualification or control item; None for a row of
    another purpose.

    The row has the columns in `answer_columns`: the deciding answer or an object of answers by
    field, and the explanation. Raises `FieldError`.
    """
    if purpose not in PURPOSES:
        return None
    known, explanation = answer_columns(task)
    told = values.get(explanation) or ""
    if not isinstance(told, str):
        raise FieldError("is not text. Put it in quotes.", explanation)
    try:
        return clean_correct_answer(task, purpose, _parse_fields(task, values.get(known)), told)
    except FieldError as error:
        raise FieldError(
            str(error), explanation if error.field == "explanation" else known
        ) from error


def parse_decided_row(task: tasktypes.TaskType, values: Mapping[str, Any]) -> CorrectAnswer:
    """Parse the final label in a row that was decided elsewhere; the columns have the names of the
    task's fields.

    All fields except the deciding field may be empty. Contradictory answers are kept as they are,
    since they were decided elsewhere. Text fields that are not resolved become the explanation. A
    number outside its scale counts as missing, provided that another number is left. Raises
    `FieldError`.
    """
    cleaned: dict[str, Any] = {}
    missing = off_scale(task, values)
    numbers = {one.name for one in task.fields if one.is_number}
    if not any(name not in missing and not fields.is_empty(values.get(name)) for name in numbers):
        missing = {}  # then the number outside its scale is an error
    for field in task.fields:
        if fields.is_empty(answer := values.get(field.name)) or field.name in missing:
            continue
        try:
            cleaned[field.name] = field.clean(answer)
        except FieldError as error:
            raise FieldError(str(error), field.name) from error
    if task.deciding.name not in {*cleaned, *missing}:
        raise FieldError(f"is empty or missing. {task.deciding.takes}", task.deciding.name)
    compared = {field.name for field in task.resolved}
    told = [str(value) for name, value in cleaned.items() if name not in compared]
    kept = {name: value for name, value in cleaned.items() if name in compared}
    return CorrectAnswer(task.choice_of(cleaned), kept, "\n".join(told), missing)


def off_scale(task: tasktypes.TaskType, given: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The numbers that are not among the options of their field, by field, each with "cause" and
    "said"."""
    found: dict[str, dict[str, Any]] = {}
    for one in task.fields:
        number = _number(given.get(one.name)) if one.is_number else None
        if number is not None and number not in [option.value for option in one.options]:
            found[one.name] = {"cause": OFF_SCALE, "said": number}
    return found


def off_scale_in_words(said: object) -> str:
    """Explain why the answer `said` counts as missing."""
    return f"{said} is outside the scale, so this answer is missing."


def answer_columns(task: tasktypes.TaskType) -> tuple[str, str]:
    """The columns with the correct answer and its explanation; their names never clash with a text
    of the task."""
    texts = {text.name for text in task.texts}
    return (
        "known_answer" if "known" in texts else "known",
        "known_explanation" if "explanation" in texts else "explanation",
    )


def matches_answer(said: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """True if the answers match all known values."""
    return all(_comparable(said.get(name)) == _comparable(value) for name, value in values.items())


def describe_answers(task: tasktypes.TaskType, said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Answers as (title of the field, chosen options), in the order of the fields.

    Fields that the task type no longer has are last, with their names as titles.
    """
    asked = {field.name: field for field in task.fields}
    known = [
        (asked[name].title, asked[name].describe(said[name])) for name in asked if name in said
    ]
    return known + [(name, str(said[name])) for name in said if name not in asked]


def describe_missing(
    task: tasktypes.TaskType, missing: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Missing answers as (title of the field, original value and cause)."""
    titles = {field.name: field.title for field in task.fields}
    return [
        (titles.get(name, name), f"missing: {one['said']} is off its scale")
        for name, one in missing.items()
    ]


def _clean_given(task: tasktypes.TaskType, answers: Mapping[str, object]) -> dict[str, Any]:
    """Clean the given answers, and leave out fields whose condition is not met. Raises
    `FieldError`."""
    if unknown := sorted(set(answers) - {field.name for field in task.fields}):
        raise FieldError(f"This task does not ask for {', '.join(unknown)}.", "known")
    cleaned: dict[str, Any] = {}
    said: dict[str, frozenset[str]] = {}
    for field in task.fields:
        answer = answers.get(field.name)
        if fields.is_empty(answer) or (field.when and not field.when.holds(said)):
            continue
        try:
            cleaned[field.name] = field.clean(answer)
        except FieldError as error:
            raise FieldError(str(error), "known") from error
        said[field.name] = field.answer_values(cleaned[field.name])
    if task.deciding.name not in cleaned:
        raise FieldError(f"Say what is right: {task.deciding.takes}", "known")
    return cleaned


def _number(value: object) -> int | float | None:
    """Convert the value to a number; None if it is not a number, or too large for any scale."""
    try:
        number = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        return None
    if not abs(number) < LARGEST_NUMBER:
        return None
    return int(number) if number.is_integer() else number


def _parse_fields(task: tasktypes.TaskType, told: Any) -> dict[str, Any]:
    """Parse the answers by field, which tables of text contain as JSON."""
    if isinstance(told, str) and told.lstrip().startswith("{"):
        try:
            told = json.loads(told)
        except json.JSONDecodeError as error:
            raise FieldError("looks like JSON but is not valid JSON.", "known") from error
    return told if isinstance(told, dict) else {task.deciding.name: told}


def _comparable(value: Any) -> Any:
    """Sort the lists, since the order of several answers does not matter."""
    return sorted(value, key=str) if isinstance(value, list) else value
