"""Whether the parts of a task type fit together: what its file can say, but must not."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from annotation.declaring import Place
from annotation.fields import Edit, Field
from annotation.tasktypes import TaskType, Text

_SLUG = re.compile(r"[a-z0-9]+(-{1,2}[a-z0-9_]+)*")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# What a row of an import says of an item beside its texts.
TAKEN = {"key", "category", "ability", "source_ability", "origin", "cluster", "repeats", "purpose"}
NUMBERS = {"scale", "points"}
OF_NUMBERS = {"median", "three"}
OF_WORDS = {"", "first", "adjudicated"}


@dataclass(frozen=True)
class Problem:
    """What does not fit and what to do; `place` leads to it in the file."""

    place: Place
    text: str


def problems(task: TaskType) -> list[Problem]:
    """Everything in a task type that does not fit together, from its top down."""
    found = [*_of_texts(task), *_of_pairs(task), *_of_awaited(task), *_of_fields(task)]
    if not task.fields:
        return [*found, Problem(("fields",), "asks nothing; it needs a field that decides.")]
    return [*found, *_of_deciding(task), *_of_blind(task)]


def _of_texts(task: TaskType) -> Iterator[Problem]:
    if not _SLUG.fullmatch(task.slug):
        yield Problem(("slug",), f"{task.slug!r} is no slug; use a-z, 0-9 and single hyphens.")
    if not any(text.required for text in task.texts):
        yield Problem(("texts",), "has no required text; add [[texts]] with required = true.")
    seen: set[str] = set()
    for number, text in enumerate(task.texts):
        place: Place = ("texts", number, "name")
        if not _NAME.fullmatch(text.name) or text.name in TAKEN:
            yield Problem(
                place, f"{text.name!r} cannot name a text; choose another of a-z, 0-9, _."
            )
        if text.name in seen:
            yield Problem(place, f"{text.name!r} is there twice; rename one.")
        seen.add(text.name)


def _of_pairs(task: TaskType) -> Iterator[Problem]:
    single = {text.name for text in task.texts if text.required and not text.many}
    if missing := set(task.diff or ()) - single:
        names = ", ".join(sorted(missing))
        yield Problem(("diff",), f"compares {names}, not a required text that an item has once.")
    # Who is shown an item is shown the text that it waited for.
    awaited = {task.awaits} if task.awaited and not task.awaited.many else set()
    if task.correctable and task.correctable not in single | awaited:
        yield Problem(
            ("correctable",), f"corrects {task.correctable!r}, which is no required single text."
        )


def _of_awaited(task: TaskType) -> Iterator[Problem]:
    if task.awaits and task.awaited is None:
        yield Problem(("awaits",), f"{task.awaits!r} is no text of the item; name one.")
    elif task.awaited and task.awaited.required:
        said = "which every item has from the start; write required = false there."
        yield Problem(("awaits",), f"waits for {task.awaits!r}, {said}")


def _of_fields(task: TaskType) -> Iterator[Problem]:
    seen: set[str] = set()
    for place, asked in _groups(task):
        above: dict[str, Field] = {}
        for number, field in enumerate(asked):
            if field.name in seen:
                yield Problem(
                    (*place, number, "name"), f"{field.name!r} is there twice; rename it."
                )
            seen.add(field.name)
            yield from _of_field(task, field, above, asked, (*place, number))
            above[field.name] = field


def _groups(task: TaskType) -> list[tuple[Place, tuple[Field, ...]]]:
    blind = [(("blind", "fields"), task.blind.fields)] if task.blind else []
    return [(("fields",), task.fields), *blind]


def _of_field(
    task: TaskType,
    field: Field,
    above: dict[str, Field],
    asked: tuple[Field, ...],
    place: Place,
) -> Iterator[Problem]:
    yield from _of_condition(field, above, (*place, "when"))
    texts = {other.name for other in asked if other.kind == "text"}
    if field.unless and field.unless not in texts:
        yield Problem((*place, "unless"), f"{field.unless!r} is no text field here; name one.")
    if field.kind == "claim_check" and not task.diff:
        yield Problem((*place, "kind"), "checks changes, but nothing is compared; add [diff].")
    if isinstance(field, Edit) and field.text not in _names(task.texts):
        yield Problem((*place, "text"), f"{field.text!r} is no text of the item; name one.")
    if not _suits(field):
        yield Problem((*place, "rule"), f"{field.rule!r} cannot resolve a {field.kind} field.")


def _of_condition(field: Field, above: dict[str, Field], place: Place) -> Iterator[Problem]:
    if field.when is None:
        return
    other = above.get(field.when.field)
    if other is None:
        yield Problem(place, f"{field.when.field!r} is no field above this one; name one that is.")
        return
    known = {str(option.value) for option in other.options}
    if unknown := [value for value in field.when.values if value not in known]:
        values = ", ".join(sorted(known))
        yield Problem(place, f"{unknown[0]!r} is no answer of {other.name}; use {values}.")


def _suits(field: Field) -> bool:
    if field.rule in OF_NUMBERS:
        return field.kind in NUMBERS
    return (bool(field.options) and field.kind != "claim_check") or field.rule in OF_WORDS


def _of_deciding(task: TaskType) -> Iterator[Problem]:
    names = [field.name for field in task.fields]
    if task.decides and task.decides not in names:
        yield Problem(("decides",), f"{task.decides!r} is no field; use {', '.join(names)}.")
        return
    deciding = task.deciding
    place: Place = ("fields", names.index(deciding.name))
    if not type(deciding).decides:
        kinds = "choice, scale, points or yesno"
        yield Problem((*place, "kind"), f"a {deciding.kind} field cannot decide; use {kinds}.")
    if deciding.when or deciding.option or not deciding.required:
        yield Problem(place, "decides, so everybody must be asked it; drop when, option, required.")
    if task.quick and (deciding is not task.fields[0] or deciding.kind not in {"choice", "yesno"}):
        yield Problem(("quick",), "needs a choice or yesno field that comes first and decides.")


def _of_blind(task: TaskType) -> Iterator[Problem]:
    if task.blind is None:
        return
    if unknown := set(task.blind.shows) - _names(task.texts):
        yield Problem(("blind", "shows"), f"{', '.join(sorted(unknown))}: no text of the item.")
    if not task.blind.fields:
        yield Problem(("blind", "fields"), "asks nothing; add [[blind.fields]].")
    elif not type(task.blind.fields[0]).decides:
        yield Problem(("blind", "fields", 0, "kind"), "the first blind field must be a choice.")


def _names(texts: tuple[Text, ...]) -> set[str]:
    return {text.name for text in texts}
