"""Parts of a generated page as Markdown."""

import itertools
import re
from collections.abc import Iterable, Sequence

# Characters that would be read as marks in a text. An underscore inside a word is none.
_MARKS = re.compile(r"[\\`*\[\]<|~]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|^(?:#|[-+](?=\s))|^\d+(?=[.)]\s)")
_NO_TEXT = "—"


def page(title: str, about: str, *parts: str) -> str:
    """A page with its title, what is on it, and its parts, which are separated by blank lines."""
    said = f"{about} This page is generated from the code by `python manage.py write_docs`."
    return "\n\n".join([f"# {title}", said, *filter(None, parts)]) + "\n"


def plain(text: str) -> str:
    """A text in which nothing is marked, on one line."""
    return _MARKS.sub(_escape, " ".join(text.split()))


def _escape(found: re.Match[str]) -> str:
    return found[0] + "\\" if found[0].isdigit() else "\\" + found[0]


def code(text: object) -> str:
    """A text as code, on one line."""
    return f"`{text}`"


def codes(texts: Iterable[object]) -> str:
    """Several texts as code, with commas."""
    return ", ".join(map(code, texts))


def fence(text: str, language: str = "") -> str:
    """A text as a block of code, unchanged."""
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells in Markdown; an empty cell is a dash. "" without rows."""
    lines = [" | ".join(_cell(one) for one in row) for row in rows]
    if not lines:
        return ""
    return (
        "\n".join(
            f"| {line} |"
            for line in (" | ".join(headings), "|".join(["---"] * len(headings)), *lines)
        )
        .replace("| ---|", "|---|")
        .replace("--- |", "---|")
    )


def _cell(text: str) -> str:
    # A bar ends a cell even inside code.
    return re.sub(r"(?<!\\)\|", r"\\|", text) or _NO_TEXT


def bullets(lines: Iterable[str]) -> str:
    """A list; "" without lines."""
    return "\n".join(f"- {line}" for line in lines)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of named facts without those that are empty."""
    return bullets(f"**{name}**: {text}" for name, text in pairs if text)


def read_head(source: str) -> str:
    """The comment at the top of a TOML file, on one line; "" if there is none."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), source.splitlines())
    return " ".join(line.lstrip("# ") for line in lines)
