"""Tables of figures as text for a paper or a web page: LaTeX and Markdown.

Names can be any text, so characters that would act as commands are escaped. Numbers are rounded to
three decimals, very small numbers to two significant digits; CSV and JSON have them in full. None
is written as a dash, never as 0.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, TextIO

_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
    # At the start of a cell, these characters would be an argument of the rule or line break before
    # it. Two hyphens would become a dash, and two apostrophes a quotation mark.
    **{sign: f"{{{sign}}}" for sign in "[]*-'"},
}
_MARKDOWN = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    **{sign: f"\\{sign}" for sign in "\\`*_{}[]()#+!|~$^="},
    # Anything that looks like an address would become a link, and a name after @ a mention.
    ":": "&#58;",
    "@": "&#64;",
    ".": "&#46;",
}
# In sentences, all special characters, except where they end a word or are between digits.
_HARMLESS = re.compile(r"[.:](?=[^\s0-9])|(?<![0-9])[.:](?=[0-9])|[^\s\w.,:;()%–—−/’-]+|_")
_PLAIN = re.compile(r"[0-9A-Za-z ,-]*")
_LEAST = 0.0005


def write_latex(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write a `tabular` with the rules of booktabs, and return the number of rows.

    Numeric columns are right-aligned. The preamble needs booktabs, textcomp and the font encoding
    T1.
    """
    made = list(rows)
    places = "".join("r" if _is_numeric(made, name) else "l" for name in columns)
    stream.write(f"\\begin{{tabular}}{{{places}}}\n\\toprule\n")
    stream.write(_latex_row([escape_latex(name) for name in columns]))
    stream.write("\\midrule\n")
    for row in made:
        stream.write(_latex_row([_cell(row.get(name), escape_latex, "--") for name in columns]))
    stream.write("\\bottomrule\n\\end{tabular}\n")
    return len(made)


def write_markdown(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    """Write a table in GitHub Markdown, with numbers right-aligned; return the number of rows."""
    made = list(rows)
    places = ["---:" if _is_numeric(made, name) else "---" for name in columns]
    stream.write(_markdown_row([escape_markdown(name) for name in columns]))
    stream.write(_markdown_row(places))
    for row in made:
        cells = [_cell(row.get(name), escape_markdown, "–") for name in columns]
        stream.write(_markdown_row(cells))
    return len(made)


def _is_numeric(rows: Sequence[dict[str, Any]], name: str) -> bool:
    there = [row[name] for row in rows if row.get(name) is not None]
    return bool(there) and all(_is_number(value) for value in there)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(value: Any, text: Callable[[str], str], dash: str) -> str:
    if value is None:
        return dash
    if isinstance(value, bool):
        return "yes" if value else "no"
    if _is_number(value):
        return _number(value).replace("-", "$-$" if dash == "--" else "−")
    if isinstance(value, list | dict):
        return text(json.dumps(value, ensure_ascii=False, default=str))
    return text(str(value))


def _number(value: float | Decimal) -> str:
    if isinstance(value, int):
        return str(value)
    small = 0 < abs(float(value)) < _LEAST
    return f"{value:.1e}" if small else f"{value:.3f}"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def escape_latex(text: str) -> str:
    """Return the text on one line, with all characters escaped that have a meaning in LaTeX."""
    return _replace_signs(text, _LATEX)


def escape_markdown(text: str) -> str:
    """Return the text on one line, with all characters escaped that have a meaning in Markdown."""
    if _PLAIN.fullmatch(text):
        return text
    return _replace_signs(text, _MARKDOWN)


def escape_markdown_prose(text: str) -> str:
    """Escape sentences like `escape_markdown`, but leave characters that have no effect at their
    position."""
    return _HARMLESS.sub(lambda found: _replace_signs(found[0], _MARKDOWN), _one_line(text))


def _replace_signs(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(sign, sign) for sign in _one_line(text))


def _one_line(text: str) -> str:
    """Return the text without line breaks, control characters and characters that change
    direction."""
    spaced = re.sub(r"\s+", " ", text)
    return "".join(sign for sign in spaced if unicodedata.category(sign) not in {"Cc", "Cf", "Cs"})
