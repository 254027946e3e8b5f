"""The hotkeys of the label screen, and a person's changes to them.

Python, pages and scripts refer to an action by its slug. A person's changes are stored as a dict
from slugs to keys. To change a key for everybody, change it in ACTIONS.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """An action with a hotkey; `key` is the default key."""

    slug: str
    key: str
    title: str
    group: str


DIGITS = "1234567890"
ACTIONS = (
    *(Action(f"option-{digit}", digit, f"Choice or point {digit}", "Choose") for digit in DIGITS),
    Action("span", "q", "Mark the selected passage, or choose one by keyboard", "Say more"),
    Action("comment", "c", "Comment", "Say more"),
    Action("correct", "e", "Correct the text", "Say more"),
    Action("flag", "f", "Flag for a lead", "Say more"),
    Action("undo", "u", "Undo the last label", "Move on"),
    Action("skip", "s", "Skip for now", "Move on"),
    Action("difference", "d", "Next view of the difference", "Read"),
    Action("next", "n", "Next change; next item after an explanation", "Read"),
    Action("previous", "p", "Previous change", "Read"),
    Action("fold", "w", "Fold or show white space and formatting changes", "Read"),
    Action("guidelines", "g", "Guidelines", "Read"),
    Action("comments", "m", "Comments by others, after you have labelled the item", "Read"),
    Action("siblings", "b", "Siblings: other items of the same question", "Read"),
    Action("keys", "?", "All keys", "Read"),
)
DEFAULT_KEYS = {action.slug: action.key for action in ACTIONS}


def extract_changes(pressed: Mapping[str, str]) -> dict[str, str]:
    """Extract the keys that differ from the defaults from a dict of keys by action name. Keys are
    stripped and lower-cased; unknown actions and empty keys are dropped."""
    tidied = {slug: key.strip().lower() for slug, key in pressed.items() if slug in DEFAULT_KEYS}
    return {slug: key for slug, key in tidied.items() if key and key != DEFAULT_KEYS[slug]}


def hotkeys(changes: Mapping[str, str]) -> dict[str, str]:
    """The key that a person presses for each action, by slug.

    A new default may be a key that the person had already chosen for another action. Then the
    person keeps this choice, and the action with the new default gets the key that the choice left
    free.
    """
    pressed = _merge_keys(changes)
    left = [DEFAULT_KEYS[slug] for slug in pressed if pressed[slug] != DEFAULT_KEYS[slug]]
    free = [key for key in left if key not in pressed.values()]
    for slug in pressed:
        if slug not in changes and pressed[slug] in changes.values() and free:
            pressed[slug] = free.pop()
    return pressed


def _merge_keys(changes: Mapping[str, str]) -> dict[str, str]:
    return DEFAULT_KEYS | {slug: key for slug, key in changes.items() if slug in DEFAULT_KEYS}


def find_problems(changes: Mapping[str, str]) -> dict[str, str]:
    """Find the changed keys that are not a single character or are already in use; return the error
    messages by action."""
    found, pressed = {}, _merge_keys(changes)
    for slug, key in changes.items():
        taken = [one for one in ACTIONS if one.slug != slug and pressed[one.slug] == key]
        if len(key) != 1 or not key.isprintable() or key.isspace():
            found[slug] = "A key is one letter, digit or sign, without Ctrl or Alt."
        elif taken:
            found[slug] = (
                f"“{key}” is already the key of “{taken[0].title}”. Choose another key, or change "
                "the other one too."
            )
    return found
