"""The how-to pages name buttons, pages and messages as the screens have them."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from operation.docs import pages

ROOT = Path(settings.BASE_DIR)
PAGES = ("leads", "researchers", "admins", "rag-judge", "troubleshooting")
# Words of Django's administration, and of the sentence that explains the italics.
NOT_OURS = {"italics", "Users", "Active", "Staff status", "Superuser status", "Reset password"}
ITALICS = re.compile(r"(?<![*\w])\*([^*\s][^*]*?)\*(?![*\w])")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"\{[{%#].*?[}%#]\}|<[^>]+>", re.DOTALL)
QUOTED = re.compile(r'"([^"]+)"')
CODE = re.compile(r"`([^`]+)`")


@cache
def words_of_screens() -> str:
    """All that templates, code and definitions can show, in small letters."""
    found = []
    for path in ROOT.glob("templates/**/*.html"):
        text = path.read_text(encoding="utf-8")
        found += [TAG.sub(" ", text), *QUOTED.findall(" ".join(TAG.findall(text)))]
    found += [path.read_text("utf-8") for path in ROOT.glob("annotation/**/*.toml")]
    found += [path.read_text("utf-8") for path in ROOT.glob("judging/strategies/*.toml")]
    found += [path.read_text("utf-8") for path in ROOT.glob("judging/evaluators/**/*.toml")]
    for package in ("annotation", "judging", "config", "operation"):
        for path in ROOT.glob(f"{package}/**/*.py"):
            found += strings_of(path)
    text = " ".join(" ".join(found).split()).lower()
    return f"{text} {text.replace('_', ' ')}"


def strings_of(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def is_shown(words: str) -> bool:
    """True if each part of the words between dots or numbers is on a screen; "items" may be "item"
    and an s that the number adds."""
    parts = [part.strip(" .?").lower() for part in re.split(r"…|\b\d+\b", words)]
    return all(part in words_of_screens() or part.removesuffix("s") in words_of_screens()
               for part in parts if part)  # fmt: skip


@pytest.mark.parametrize("slug", PAGES)
def test_words_in_italics_are_on_a_screen(slug: str) -> None:
    """Some seconds: every template and every string of the code is read, once."""
    text = FENCE.sub("", pages.pages_by_slug()[slug].source)
    words = {" ".join(one.split()) for one in ITALICS.findall(text)} - NOT_OURS
    words -= {*CODE.findall(text)}  # what the reader has typed
    assert len(words) > 20
    assert sorted(one for one in words if not is_shown(one)) == []


def test_a_word_that_no_screen_has_is_found() -> None:
    assert is_shown("New project")
    assert is_shown("Import … items")
    assert not is_shown("Brew the coffee")


@pytest.mark.parametrize("slug", ["leads", "researchers", "admins", "rag-judge"])
def test_steps_are_numbered_throughout(slug: str) -> None:
    text = FENCE.sub("", pages.pages_by_slug()[slug].source)
    numbers = [int(one) for one in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
