"""Checks that the parts of a task type fit together, beyond the format of its file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from annotation.tasktypes import ItemText, TaskType
from annotation.tasktypes.fields import FIELD_KINDS, Edit, Field
from annotation.tasktypes.toml_tables import Place

_SLUG = re.compile(r"[a-z0-9]+(-{1,2}[a-z0-9_]+)*")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Columns of an import that are not texts.
RESERVED_NAMES = {
    "key",
    "category",
    "ability",
    "source_ability",
    "origin",
    "cluster",
    "repeats",
    "purpose",
}
# Fields of these names would stand in a browser's form for what the form itself has by them.
FORM_PROPERTIES = {
    "action",
    "attributes",
    "children",
    "closest",
    "constructor",
    "contains",
    "dataset",
    "elements",
    "hidden",
    "id",
    "matches",
    "remove",
    "submit",
}
NUMBER_RULES = {"median", "three"}
TEXT_RULES = {"", "first", "adjudicated"}


@dataclass(frozen=True)
class FitProblem:
    """An inconsistency in a task type, and what to do about it. `place` is the path to it in the
    file."""

    place: Place
    text: str


def find_problems(task: TaskType) -> list[FitProblem]:
    """Find all inconsistencies of a task type, from texts to fields; [] if it is valid."""
    found = [
        *_text_problems(task),
        *_pair_problems(task),
        *_awaited_problems(task),
        *_response_pair_problems(task),
        *_fields_problems(task),
    ]
    if not task.fields:
        return [*found, FitProblem(("fields",), "asks nothing; it needs a field that decides.")]
    return [
        *found,
        *_main_field_problems(task),
        *_blind_problems(task),
        *_preference_problems(task),
    ]


def _text_problems(task: TaskType) -> Iterator[FitProblem]:
    if not _SLUG.fullmatch(task.slug):
        yield FitProblem(
            ("slug",), f"{task.slug!r} is not a valid slug; use a-z, 0-9 and single hyphens."
        )
    if not any(text.required for text in task.texts):
        yield FitProblem(("texts",), "has no required text; add [[texts]] with required = true.")
    seen: set[str] = set()
    for number, text in enumerate(task.texts):
        place: Place = ("texts", number, "name")
        if not _NAME.fullmatch(text.name) or text.name in RESERVED_NAMES:
            yield FitProblem(
                place,
                f"{text.name!r} cannot be the name of a text; use another name of a-z, 0-9 and _.",
            )
        if text.name in seen:
            yield FitProblem(place, f"{text.name!r} appears twice; rename one.")
        seen.add(text.name)


def _pair_problems(task: TaskType) -> Iterator[FitProblem]:
    single = {text.name for text in task.texts if text.required and not text.many}
    if missing := set(task.diff or ()) - single:
        names = ", ".join(sorted(missing))
        yield FitProblem(
            ("diff",), f"compares {names}, but needs required texts that an item has only once."
        )
    # An item is shown only once the text that it waits for is there.
    awaited = {task.awaits} if task.awaited and not task.awaited.many else set()
    if task.correctable and task.correctable not in single | awaited:
        yield FitProblem(
            ("correctable",), f"corrects {task.correctable!r}, which is not a required single text."
        )


def _awaited_problems(task: TaskType) -> Iterator[FitProblem]:
    if task.awaits and task.awaited is None:
        yield FitProblem(
            ("awaits",), f"{task.awaits!r} is not a text of the item; use the name of one."
        )
    elif task.awaited and task.awaited.required:
        said = "which every item has from the start; write required = false there."
        yield FitProblem(("awaits",), f"waits for {task.awaits!r}, {said}")


def _response_pair_problems(task: TaskType) -> Iterator[FitProblem]:
    if task.pair is None:
        return
    place: Place = ("pair", "texts")
    apart = {*(task.diff or ()), task.correctable}
    fit = {
        text.name
        for text in task.texts
        if text.required and not text.many and text.place == "main" and text.name not in apart
    }
    if missing := [name for name in task.pair.texts if name not in fit]:
        yield FitProblem(
            place,
            f"{', '.join(missing)}: use required texts that an item has only once, next to each "
            "other in the main column, which are neither compared by [diff] nor correctable.",
        )
        return
    names = [text.name for text in task.texts if text.place == "main"]
    one, other = sorted(map(names.index, task.pair.texts))
    if other != one + 1:
        yield FitProblem(place, "must follow each other; move one of the [[texts]].")
    if clashing := [name for name in task.pair.systems if name in {*_names(task.texts)}]:
        said = f"{', '.join(clashing)} is a text, which annotators see; use another name."
        yield FitProblem(("pair", "systems"), said)


def _preference_problems(task: TaskType) -> Iterator[FitProblem]:
    """The deciding field of a pair must have an option for each text, so that reports can count who
    won."""
    if task.pair is None:
        return
    values = {str(option.value) for option in task.deciding.options}
    if missing := [name for name in task.pair.texts if name not in values]:
        place: Place = ("fields", task.fields.index(task.deciding), "choices")
        said = f"the field that decides needs a choice with the value {missing[0]!r}."
        yield FitProblem(place, said)


def _fields_problems(task: TaskType) -> Iterator[FitProblem]:
    seen: set[str] = set()
    for place, asked in field_groups(task):
        above: dict[str, Field] = {}
        for number, field in enumerate(asked):
            if field.name in seen:
                yield FitProblem(
                    (*place, number, "name"), f"{field.name!r} appears twice; rename one."
                )
            if field.name in FORM_PROPERTIES:
                said = f"is {field.name!r}, which forms of a browser use; choose another name."
                yield FitProblem((*place, number, "name"), said)
            seen.add(field.name)
            yield from _field_problems(task, field, above, asked, (*place, number))
            above[field.name] = field


def field_groups(task: TaskType) -> list[tuple[Place, tuple[Field, ...]]]:
    """Return the fields of the task and of its blind view, each group with its place."""
    blind = [(("blind", "fields"), task.blind.fields)] if task.blind else []
    return [(("fields",), task.fields), *blind]


def _field_problems(
    task: TaskType,
    field: Field,
    above: dict[str, Field],
    asked: tuple[Field, ...],
    place: Place,
) -> Iterator[FitProblem]:
    yield from _condition_problems(field, above, (*place, "when"))
    texts = {other.name for other in asked if other.in_own_words}
    if field.unless and field.unless not in texts:
        yield FitProblem(
            (*place, "unless"),
            f"{field.unless!r} is not a text field of this form; use the name of one.",
        )
    if field.per_change and not task.diff:
        yield FitProblem(
            (*place, "kind"), "checks changes, but the task compares no texts; add [diff]."
        )
    if isinstance(field, Edit) and field.text not in _names(task.texts):
        yield FitProblem(
            (*place, "text"), f"{field.text!r} is not a text of the item; use the name of one."
        )
    if not _rule_suits(field):
        yield FitProblem(
            (*place, "rule"), f"the rule {field.rule!r} cannot be used for a {field.kind} field."
        )


def _condition_problems(
    field: Field, above: dict[str, Field], place: Place
) -> Iterator[FitProblem]:
    if field.when is None:
        return
    other = above.get(field.when.field)
    if other is None:
        yield FitProblem(
            place, f"{field.when.field!r} is not a field above this one; use the name of one above."
        )
        return
    known = {str(option.value) for option in other.options}
    if unknown := [value for value in field.when.values if value not in known]:
        values = ", ".join(sorted(known))
        yield FitProblem(place, f"{unknown[0]!r} is not an answer of {other.name}; use {values}.")


def _rule_suits(field: Field) -> bool:
    if field.marks_texts:  # passages of several people have no majority, and are not resolved
        return field.rule == ""
    if field.rule in NUMBER_RULES:
        return field.is_number
    return (bool(field.options) and not field.per_change) or field.rule in TEXT_RULES


def _main_field_problems(task: TaskType) -> Iterator[FitProblem]:
    names = [field.name for field in task.fields]
    if task.decides and task.decides not in names:
        yield FitProblem(("decides",), f"{task.decides!r} is not a field; use {', '.join(names)}.")
        return
    deciding = task.deciding
    place: Place = ("fields", names.index(deciding.name))
    if not type(deciding).decides:
        kinds = ", ".join(name for name, kind in FIELD_KINDS.items() if kind.decides)
        yield FitProblem(
            (*place, "kind"), f"a {deciding.kind} field cannot decide; use one of {kinds}."
        )
    if deciding.when or deciding.option or not deciding.required:
        yield FitProblem(
            place, "decides, so it must always be asked; remove when, option, required."
        )
    if task.quick and (deciding is not task.fields[0] or not deciding.is_word):
        yield FitProblem(("quick",), "needs a first field of kind choice or yesno that decides.")


def _blind_problems(task: TaskType) -> Iterator[FitProblem]:
    if task.blind is None:
        return
    if unknown := set(task.blind.shows) - _names(task.texts):
        yield FitProblem(
            ("blind", "shows"), f"{', '.join(sorted(unknown))}: not a text of the item."
        )
    if not task.blind.fields:
        yield FitProblem(("blind", "fields"), "asks nothing; add [[blind.fields]].")
    elif not type(task.blind.fields[0]).decides:
        yield FitProblem(("blind", "fields", 0, "kind"), "the first blind field must be a choice.")


def _names(texts: tuple[ItemText, ...]) -> set[str]:
    return {text.name for text in texts}
