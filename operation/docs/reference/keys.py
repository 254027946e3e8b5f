"""The page of the keys, from `annotation/accounts/keymap.py` and the lists of keys that the screens
show."""

import re
from collections.abc import Iterator
from html import unescape

from django.template.loader import render_to_string

from annotation import tasktypes
from annotation.accounts import keymap
from annotation.items import taxonomy
from annotation.tasktypes import TaskType
from operation.docs.reference import markdown
from operation.docs.reference.markdown import code, plain

# The screens with fixed keys: title, template, and what else its list of keys depends on.
_SCREENS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("Label screen: fixed keys", "annotation/label/_keys.html", {}),
    ("Verification", "annotation/adjudicate/_keys.html", {"verifying": True}),
    ("Adjudication", "annotation/adjudicate/_keys.html", {}),
    ("Abilities of the template FBI", "annotation/_ability_keys.html", {}),
)
_ENTRY = re.compile(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", re.DOTALL)
_KEY = re.compile(r"<kbd>(.*?)</kbd>")


def write_page() -> str:
    """The page as Markdown."""
    return markdown.page(
        "Keys",
        "The keys of the screens on which people decide many items. A key is the character that "
        "you type, on any keyboard layout. Keys are off while you type text.",
        "## Label screen",
        "Everybody can change these keys for themselves on the page *Keys*. "
        f"{code(keymap.DEFAULT_KEYS['keys'])} shows all keys on every one of these screens.",
        *_actions(),
        *(part for title, file, more in _SCREENS for part in _screen(title, file, more)),
        "## Answers by task type",
        "The keys of the first question. Further questions have keys of the same kind, which "
        "stand beside each answer and in [Task types](task-types.md).",
        markdown.table(("task type", "keys"), _answers()),
    )


def _actions() -> Iterator[str]:
    for group in dict.fromkeys(action.group for action in keymap.ACTIONS):
        yield f"### {group}"
        yield markdown.table(
            ("key", "action"),
            ((code(one.key), plain(one.title)) for one in keymap.ACTIONS if one.group == group),
        )


def _screen(title: str, file: str, more: dict[str, object]) -> Iterator[str]:
    context = {
        "user": {"hotkeys": keymap.DEFAULT_KEYS},
        "task": _load_task("perturbation-vetting"),
        "counts": {"abilities": [(one, 0) for one in taxonomy.load_shipped().sorts]},
    }
    shown = render_to_string(file, context | more)
    yield f"## {title}"
    yield markdown.table(
        ("key", "action"), ((_marked(key), _marked(said)) for key, said in _ENTRY.findall(shown))
    )


def _marked(html: str) -> str:
    """The text of an entry, with its keys as code."""
    return _KEY.sub(lambda found: code(found[1]), plain(unescape(html)).replace("\\<", "<"))


def _answers() -> Iterator[tuple[str, str]]:
    for slug in tasktypes.load_definitions():
        task = _load_task(slug)
        shown = (f"{code(one.key)} {plain(one.title)}" for one in task.deciding.options if one.key)
        yield plain(task.title), ", ".join(shown)


def _load_task(slug: str) -> TaskType:
    return tasktypes.parse_definition(tasktypes.load_definitions()[slug])
