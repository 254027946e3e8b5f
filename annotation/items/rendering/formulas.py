r"""Markdown rules for formulas in `\(..\)` and `\[..\]`; a plugin parses formulas between dollar
signs.

A formula that begins a line with `\[` may span several lines, up to the first blank line. These
lines are not parsed as Markdown: otherwise a line that begins with a minus would become a list.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.amsmath import ENVIRONMENTS, amsmath_block
from mdit_py_plugins.dollarmath.index import math_block_dollar

MAX_FORMULA_LENGTH = 3_000
"""Characters of a formula at most, which limits the search for its closing sign."""

MAX_ENVIRONMENT_LENGTH = 10_000
"""The same for a formula between \\begin and \\end."""

MAX_FORMULA_LINES = 100
"""The same in lines, for a formula between dollar signs that begins a line."""

DELIMITERS = {
    "math_inline": ("$", "$"),
    "math_inline_double": ("$$", "$$"),
    "math_block": ("$$", "$$"),
    "amsmath": ("", ""),
    "bracket_inline": (r"\(", r"\)"),
    "bracket_display": (r"\[", r"\]"),
    "bracket_block": (r"\[", r"\]"),
}
"""The signs around a formula by token type."""

DISPLAY_TOKENS = frozenset({"math_inline_double", "bracket_display"})
"""Token types inside a paragraph that are shown on a line of their own."""

_CLOSING = {"(": (r"\)", "bracket_inline"), "[": (r"\]", "bracket_display")}
_BEGIN = re.compile(rf"\\begin(\{{(?:{'|'.join(ENVIRONMENTS)})\*?\}})")
_MAY_OCCUR = re.compile(r"\$|\\[(\[]|\\begin")


def may_contain_formula(text: str) -> bool:
    """True if a text contains a sign that can begin a formula."""
    return _MAY_OCCUR.search(text) is not None


def brackets_plugin(parser: MarkdownIt) -> None:
    r"""Make the parser recognise formulas in `\(…\)` and `\[…\]`, before it treats the backslashes
    as escapes."""
    parser.inline.ruler.before("escape", "brackets", _inline)
    parser.block.ruler.before(
        "fence", "brackets", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def environments_plugin(parser: MarkdownIt) -> None:
    """Parse formulas between \\begin and \\end; the search for \\end is limited, so that a text
    with many \\begin but no \\end is not slow."""
    parser.block.ruler.before(
        "blockquote",
        "amsmath",
        _environment,
        {"alt": ["paragraph", "reference", "blockquote", "list"]},
    )


def limit_dollars(parser: MarkdownIt) -> None:
    """Limit the search for the end of a formula that begins a line with two dollar signs, so that a
    text with many beginnings is not slow."""
    find = math_block_dollar(allow_labels=False, allow_blank_lines=False)

    def find_near(state: StateBlock, line: int, last: int, silent: bool) -> bool:
        return find(state, line, min(last, line + MAX_FORMULA_LINES), silent)

    parser.block.ruler.at("math_block", find_near)


def _environment(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    start = state.bMarks[line] + state.tShift[line]
    begin = _BEGIN.match(state.src, start)
    if begin is None:
        return False
    end = re.compile(re.escape(rf"\end{begin[1]}") + r"\s*?$", re.MULTILINE)
    if end.search(state.src, start, start + MAX_ENVIRONMENT_LENGTH) is None:
        return False
    return amsmath_block(state, line, last, silent)


def _inline(state: StateInline, silent: bool) -> bool:
    start = state.pos
    if state.src[start] != "\\" or state.src[start + 1 : start + 2] not in _CLOSING:
        return False
    closing, kind = _CLOSING[state.src[start + 1]]
    end = state.src.find(closing, start + 2, start + MAX_FORMULA_LENGTH)
    if end < 0 or not state.src[start + 2 : end].strip():
        return False
    if not silent:
        token = state.push(kind, "math", 0)
        token.content = state.src[start + 2 : end]
    state.pos = end + 2
    return True


def _block(state: StateBlock, line: int, last: int, silent: bool) -> bool:
    start = state.bMarks[line] + state.tShift[line]
    if state.is_code_block(line) or not state.src.startswith(r"\[", start):
        return False
    closing = state.src.find(r"\]", start, start + MAX_FORMULA_LENGTH)
    if closing < 0 or r"\[" in state.src[start + 2 : closing]:
        return False
    lines = [_text(state, line)]
    while state.eMarks[line + len(lines) - 1] < closing and line + len(lines) < last:
        lines.append(_text(state, line + len(lines)))
    source = "\n".join(lines).strip()
    if not all(map(str.strip, lines)) or not source.endswith(r"\]") or not source[2:-2].strip():
        return False
    if not silent:
        token = state.push("bracket_block", "math", 0)
        token.block = True
        token.content = source[2:-2]
        token.map = [line, line + len(lines)]
        state.line = line + len(lines)
    return True


def _text(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
