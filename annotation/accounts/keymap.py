"""The hotkeys of the label screen, and a person's changes to them.

The name of an action is its default key. A person's changes are a dict from action names to the
keys that they press instead. Pages and scripts use only the names.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """An action with a hotkey; `name` is its default key."""

    name: str
    title: str
    group: str


DIGITS = "1234567890"
ACTIONS = (
    *(Action(digit, f"Choice or point {digit}", "Choose") for digit in DIGITS),
    Action("c", "Comment", "Say more"),
    Action("e", "Correct the text", "Say more"),
    Action("f", "Flag for a lead", "Say more"),
    Action("u", "Undo the last label", "Move on"),
    Action("s", "Skip for now", "Move on"),
    Action("d", "Next way to show the difference", "Read"),
    Action("n", "Next change; next item after an explanation", "Read"),
    Action("p", "Previous change", "Read"),
    Action("w", "Fold or show white space and formatting changes", "Read"),
    Action("g", "Guidelines", "Read"),
    Action("m", "Comments by others, after you have labelled the item", "Read"),
    Action("b", "Siblings: other items of the same question", "Read"),
    Action("?", "All keys", "Read"),
)
ACTIONS_BY_NAME = {action.name: action for action in ACTIONS}


def extract_changes(pressed: Mapping[str, str]) -> dict[str, str]:
    """The keys that differ from the defaults, from a dict of keys by action name; keys are stripped
    and lower-cased, unknown actions and empty keys are dropped."""
    tidied = {name: key.strip().lower() for name, key in pressed.items() if name in ACTIONS_BY_NAME}
    return {name: key for name, key in tidied.items() if key and key != name}


def key_for_action(changes: Mapping[str, str], name: str) -> str:
    """The person's key for an action."""
    return changes.get(name, name)


def find_problems(changes: Mapping[str, str]) -> dict[str, str]:
    """Error messages for changed keys, by action: not a single character, or already in use."""
    found = {}
    for name, key in changes.items():
        others = [other for other in ACTIONS if other.name != name]
        taken = [other for other in others if key_for_action(changes, other.name) == key]
        if len(key) != 1 or not key.isprintable() or key.isspace():
            found[name] = "A key is one letter, digit or sign, without Ctrl or Alt."
        elif taken:
            found[name] = (
                f"“{key}” is already the key of “{taken[0].title}”. Choose another here, or "
                "change that one too."
            )
    return found
