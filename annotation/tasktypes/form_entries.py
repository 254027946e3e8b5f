"""A task type as a form: the entries that people edit without TOML, and the changes of their lists.

An entry is named by its path in the definition, such as `fields.1.choices.0.title`. What the form
does not show stays as it is in the definition.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields import FIELD_KINDS

Definition = dict[str, Any]

# The kinds that can be added in the form, each with the choices of a new field.
NEW_KINDS: dict[str, list[Any]] = {
    "choice": ["one", "two"],
    "choices": ["one", "two"],
    "scale": [1, 2, 3],
    "points": [0, 1],
    "yesno": [],
    "text": [],
    "span": [],
}
LISTS = ("choices", "severities")
_PLACE = re.compile(r"fields\.[0-9]{1,4}(\.(choices|severities)\.[0-9]{1,4})?")
STEPS = {"up": -1, "down": 1}


@dataclass(frozen=True)
class Entry:
    """One input of the form. `kind` is line, lines, text, number, key or check."""

    path: str
    label: str
    kind: str
    value: Any
    help: str = ""


def without_criteria(definition: Definition) -> Definition:
    """Return a rubric with one criterion of 0 or 1 points instead of its own, to be edited."""
    one: Definition = {
        "name": "criterion_1",
        "kind": "points",
        "title": "Criterion 1",
        "rule": "median",
        "choices": [{"value": 0, "title": "Not met"}, {"value": 1, "title": "Met"}],
    }
    kept = {name: value for name, value in definition.items() if name != "decides"}
    return {**deepcopy(kept), "fields": [one]}


def is_rubric(definition: Definition) -> bool:
    """True if all questions of a task type are criteria with points."""
    kinds = {field.get("kind") for field in definition.get("fields", [])}
    return kinds == {"points"}


def list_head(definition: Definition) -> Iterator[Entry]:
    """The entries of the task type itself, and the titles of its texts."""
    yield Entry("title", "Title", "line", definition.get("title", ""))
    yield Entry("question", "Question above the form", "line", definition.get("question", ""))
    yield Entry(
        "quick", "One key is a complete label", "check", bool(definition.get("quick")),
        "In the first field, if nothing else is asked.",
    )  # fmt: skip
    for number, text in enumerate(definition.get("texts", [])):
        path, name = f"texts.{number}.title", text.get("name", "")
        yield Entry(path, f"Title of the text {name}", "line", text.get("title", ""))


def list_field(number: int, field: Definition) -> Iterator[Entry]:
    """The entries of a field, without its choices."""
    path = f"fields.{number}"
    yield Entry(f"{path}.title", "Title", "line", field.get("title", ""))
    yield Entry(f"{path}.help", "Explanation", "text", field.get("help", ""))
    yield Entry(f"{path}.name", "Name in exports", "line", field.get("name", ""), "a-z, 0-9 and _.")
    kind = FIELD_KINDS.get(field.get("kind", ""))
    needed = field.get("required", kind.needed if kind else True)
    yield Entry(f"{path}.required", "An answer is required", "check", bool(needed))


def list_choice(path: str, choice: Definition) -> Iterator[Entry]:
    """The entries of a choice; `path` leads to it."""
    is_number = isinstance(choice.get("value"), int | float)
    yield Entry(f"{path}.title", "Title", "line", choice.get("title", ""))
    yield Entry(f"{path}.help", "Explanation", "text", choice.get("help", ""))
    yield Entry(
        f"{path}.value", "Value in exports", "number" if is_number else "line",
        choice.get("value", ""),
        "" if is_number else "Letters, digits, _ . -",
    )  # fmt: skip
    yield Entry(f"{path}.key", "Key", "key", choice.get("key", ""), "Empty: the next free digit.")
    yield Entry(f"{path}.examples", "Examples, one per line", "lines", choice.get("examples", []))


def list_choices(number: int, field: Definition) -> Iterator[tuple[str, Definition]]:
    """The choices of a field, each with its path."""
    for name in LISTS:
        for place, choice in enumerate(field.get(name, [])):
            yield f"fields.{number}.{name}.{place}", choice


def read_entries(definition: Definition, said: Mapping[str, str]) -> Definition:
    """Return the definition with what was typed in the form. What is left empty is left out, but
    for titles and names, which the check of the task type then misses."""
    changed = deepcopy(definition)
    for entry in _list_all(changed):
        if entry.path not in said:
            continue
        *above, name = entry.path.split(".")
        value = _read(entry, said[entry.path].replace("\r\n", "\n"))
        if value == entry.value:
            continue
        inner = _find(changed, above)
        if value or entry.kind in ("check", "number") or name in ("title", "name", "value"):
            inner[name] = value
        else:
            inner.pop(name, None)
    return changed


def change_lists(definition: Definition, action: str) -> Definition:
    """Return the definition after a change of its lists: "add field KIND", "add choice PLACE",
    "remove PLACE", "up PLACE" or "down PLACE". What cannot be done changes nothing."""
    changed = deepcopy(definition)
    verb, _, rest = action.partition(" ")
    what, _, where = rest.partition(" ")
    if verb == "add" and what == "field" and where in NEW_KINDS:
        changed.setdefault("fields", []).append(_new_field(changed, where))
    elif verb == "add" and what == "choice" and _PLACE.fullmatch(where):
        field = _find(changed, where.split("."))
        name = next((name for name in LISTS if name in field), "choices")
        if isinstance(field, dict):
            field.setdefault(name, []).append(_new_choice(field[name]))
    elif verb in ("remove", *STEPS) and _PLACE.fullmatch(rest):
        *above, place = rest.split(".")
        entries, at = _find(changed, above), int(place)
        if not isinstance(entries, list) or at >= len(entries):
            return definition
        entry = entries.pop(at)
        if verb in STEPS:
            entries.insert(max(0, at + STEPS[verb]), entry)
    return changed


def _list_all(definition: Definition) -> Iterator[Entry]:
    yield from list_head(definition)
    for number, field in enumerate(definition.get("fields", [])):
        yield from list_field(number, field)
        for path, choice in list_choices(number, field):
            yield from list_choice(path, choice)


def _find(definition: Any, path: list[str]) -> Any:
    """What is at this path; {} if there is nothing."""
    found = definition
    for step in path:
        if isinstance(found, list):
            found = found[int(step)] if int(step) < len(found) else {}
        else:
            found = found.get(step, {})
    return found


def _read(entry: Entry, text: str) -> Any:
    if entry.kind == "check":
        return text == "1"
    if entry.kind == "lines":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if entry.kind == "number":
        try:
            number = float(text)
        except ValueError:
            return text.strip()
        return int(number) if number.is_integer() else number
    return text.strip()


def _new_field(definition: Definition, kind: str) -> Definition:
    names = {field.get("name") for field in definition["fields"]}
    number = next(n for n in range(1, 1_000) if f"question_{n}" not in names)
    field: Definition = {"name": f"question_{number}", "kind": kind, "title": "New question"}
    if values := NEW_KINDS[kind]:
        field["choices"] = [{"value": one, "title": str(one).capitalize()} for one in values]
    return field


def _new_choice(choices: list[Definition]) -> Definition:
    values = [choice.get("value") for choice in choices]
    numbers = [one for one in values if isinstance(one, int | float)]
    if values and len(numbers) == len(values):
        value: Any = max(numbers) + 1
    else:
        value = next(f"choice-{n}" for n in range(1, 1_000) if f"choice-{n}" not in values)
    return {"value": value, "title": "New choice" if isinstance(value, str) else str(value)}
