"""What is right of an item whose answer is known beforehand: checked, and compared; pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annotation import fields, tasktypes

PRACTICE, PROBE = "practice", "probe"
PURPOSES = (PRACTICE, PROBE)
LONGEST = 10_000


class BadAnswer(ValueError):
    """What cannot be known of an item; `field` names what is wrong, the message says why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclass(frozen=True)
class Answer:
    """What is right, by field; `value` is what decides, `explanation` says why."""

    value: str
    values: dict[str, Any]
    explanation: str


def check(
    task: tasktypes.TaskType, purpose: str, answers: Mapping[str, object], explanation: str
) -> Answer:
    """The right answers by field, as the task type stores them. Raises `BadAnswer`.

    Only what decides and what is resolved is kept, since a text of one's own is neither right nor
    wrong. Fields beside the deciding one may be left out: then they are not compared.
    """
    if purpose not in PURPOSES:
        raise BadAnswer("purpose", f"An answer is known for {' or '.join(PURPOSES)}.")
    cleaned = _cleaned(task, answers)
    explanation = explanation.strip()
    if purpose == PRACTICE and not explanation:
        raise BadAnswer("explanation", "Say why this is right: it is shown after each answer.")
    if len(explanation) > LONGEST:
        raise BadAnswer("explanation", f"It is longer than {LONGEST} characters.")
    compared = {field.name for field in task.resolved}
    values = {name: value for name, value in cleaned.items() if name in compared}
    return Answer(task.choice_of(cleaned), values, explanation)


def from_row(task: tasktypes.TaskType, purpose: str, values: Mapping[str, Any]) -> Answer | None:
    """What a row of practice or probes says is right; None for a row of another purpose.

    Its columns are those of `columns`: the deciding answer, or an object of answers by field, and
    why. Raises `BadAnswer`.
    """
    if purpose not in PURPOSES:
        return None
    known, explanation = columns(task)
    told = values.get(explanation) or ""
    if not isinstance(told, str):
        raise BadAnswer(explanation, "is not text. Put it in quotes.")
    try:
        return check(task, purpose, _by_field(task, values.get(known)), told)
    except BadAnswer as error:
        raise BadAnswer(
            explanation if error.field == "explanation" else known, str(error)
        ) from error


def columns(task: tasktypes.TaskType) -> tuple[str, str]:
    """The columns of a row that say what is right and why; no text of the task has their names."""
    texts = {text.name for text in task.texts}
    return (
        "known_answer" if "known" in texts else "known",
        "known_explanation" if "explanation" in texts else "explanation",
    )


def agrees(said: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether the answers say what is known, in every field of which it is known."""
    return all(_plain(said.get(name)) == _plain(value) for name, value in values.items())


def in_words(task: tasktypes.TaskType, said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Answers as the titles of their fields and what was chosen, in the order of the fields.

    Fields that the task type no longer has keep their names.
    """
    asked = {field.name: field for field in task.fields}
    known = [(asked[name].title, asked[name].shown(said[name])) for name in asked if name in said]
    return known + [(name, str(said[name])) for name in said if name not in asked]


def _cleaned(task: tasktypes.TaskType, answers: Mapping[str, object]) -> dict[str, Any]:
    """The answers that are given, to fields that would be asked then."""
    if unknown := sorted(set(answers) - {field.name for field in task.fields}):
        raise BadAnswer("known", f"This task does not ask for {', '.join(unknown)}.")
    cleaned: dict[str, Any] = {}
    said: dict[str, frozenset[str]] = {}
    for field in task.fields:
        answer = answers.get(field.name)
        if fields.is_empty(answer) or (field.when and not field.when.holds(said)):
            continue
        try:
            cleaned[field.name] = field.clean(answer)
        except fields.FieldError as error:
            raise BadAnswer("known", str(error)) from error
        said[field.name] = field.said(cleaned[field.name])
    if task.deciding.name not in cleaned:
        raise BadAnswer("known", f"Say what is right: {task.deciding.takes}")
    return cleaned


def _by_field(task: tasktypes.TaskType, told: Any) -> dict[str, Any]:
    """Answers by field; a table of text holds them as JSON."""
    if isinstance(told, str) and told.lstrip().startswith("{"):
        try:
            told = json.loads(told)
        except json.JSONDecodeError as error:
            raise BadAnswer("known", "looks like JSON and cannot be read as such.") from error
    return told if isinstance(told, dict) else {task.deciding.name: told}


def _plain(value: Any) -> Any:
    """Several at once are right in any order."""
    return sorted(value, key=str) if isinstance(value, list) else value
