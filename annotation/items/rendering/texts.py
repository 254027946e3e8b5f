"""Renders texts as safe HTML: as plain text, Markdown, or Markdown with formulas.

Every text is treated as hostile. HTML in Markdown is not accepted. Links open in a new tab and lead
only to web or mail addresses, images are shown by name instead of fetched, and the result is
sanitised again. Headings become paragraphs, so that an answer cannot change the outline of the
page. A formula becomes `<span class="math" data-tex="...">` which contains its source; a formula on
its own line also has the class `display`. The page draws the formulas.

Stretches of a text can be marked as changed: see `render_marked`.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import escape
from itertools import accumulate
from typing import Literal, get_args

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.dollarmath import dollarmath_plugin

from annotation.items.rendering import formulas, invisible_characters

# Markdown rewrites a text, so the changes cannot be found in the HTML by counting characters.
# Instead, each change is put between two private-use characters, which are found again after
# rendering. They are put where they do no harm: within one line and one table cell, and after the
# signs that make a list, a heading or emphasis. A pair that is not complete in the text of one
# block is dropped.
_START, _STOP, _END = "\U0010ff00", "\U0010ff01", "\U0010ff02"
_DIGITS = [chr(0x10FF10 + digit) for digit in range(10)]
_PRIVATE_SIGNS = re.compile("[\U0010ff00-\U0010ff1f]")
_SENTINEL = re.compile(f"[{_START}{_STOP}][{''.join(_DIGITS)}]+{_END}")
_SENTINEL_WHOLE = re.compile(f"({_SENTINEL.pattern})")
_TAG = re.compile(r'(<span [^<>"]*(?:"[^"]*"[^<>"]*)*>[^<]*</span>|<(?:[^<>"]|"[^"]*")*>)')
_BLOCK = re.compile(r"</?(?:blockquote|br|hr|li|ol|p|pre|table|tbody|td|th|thead|tr|ul)\b")

# The signs that make a line a list item, a heading, a quotation or code, and lines of only such
# signs. No row of signs is given back: otherwise the time for a long one would grow with its cube.
_PREFIX = re.compile(r"(?:[ \t]*(?:>|\|(?!\|)|(?:[-*+]|\d{1,9}[.)]|#{1,6})(?=[ \t]|$)))*[ \t]*")
_STRUCTURE = re.compile(
    r"[ \t>]*+(?:(?:```|~~~).*|([-=*_])(?>(?:[ \t]*\1)*)|[|:\-+ \t]*+|\$\$|\\[\[\]]|\[[^\]]*+\]:.*)"
    r"[ \t]*+\r?$"
)
_DELIMITERS = " \t\r*_~`|"

Draw = Callable[[int, str], str]
"""Makes the HTML element of a change from its number and its HTML, "" if this side has none."""


# Signs that people hardly type for another reason. Lists read well as they are, a "#" may begin a
# comment of a program, and a dollar sign may be money.
_MARKDOWN = re.compile(
    r"\*\*[^\s*](?:[^*\n]{0,300}[^\s*])?\*\*"
    r"|^ {0,3}(?:#{2,6} \S|```|\|?(?: *:?-{3,}:? *\|)+)",
    re.MULTILINE,
)
_FORMULA = re.compile(
    r"\\\([^\n]{1,300}?\\\)|\\\[[^\]]{1,500}?\\\]|\$\$[^$]{1,500}\$\$|\\begin\{"
    r"|\$(?=[^$\n]{0,200}[\\^_])[^$\s\d](?:[^$\n]{0,200}[^$\s])?\$(?!\d)"
)


def escape_markers(text: str) -> str:
    """Replace characters of a text that look like markers by U+FFFD."""
    return _PRIVATE_SIGNS.sub("\ufffd", text)


def strip_markers(text: str) -> str:
    """Remove the markers from a text, but keep the text between them."""
    return _PRIVATE_SIGNS.sub("", text)


def insert_markers(stretches: Sequence[tuple[str, int | None]]) -> str:
    """Join the stretches, with markers around those stretches that have a number."""
    parts = [escape_markers(part) for part, _ in stretches]
    text, ends = "".join(parts), [*accumulate(map(len, parts))]
    lines = _line_ends(text)
    begins: dict[int, int] = {}
    made: list[str] = []
    done = 0
    for (_, number), part, end in zip(stretches, parts, ends, strict=True):
        if number is None:
            continue
        for start, stop in _places(text, end - len(part), end, lines, begins):
            if start >= done:
                made += [text[done:start], _sign(_START, number), text[start:stop]]
                made.append(_sign(_STOP, number))
                done = stop
    return "".join([*made, text[done:]])


def extract_markers(source: str) -> tuple[str, str, str]:
    """The opening markers in a source, the source without markers, and the closing markers."""
    found = [match[0] for match in _SENTINEL.finditer(source)]
    starts = "".join(sign for sign in found if sign[0] == _START)
    stops = "".join(sign for sign in found if sign[0] == _STOP)
    return starts, strip_markers(source), stops


def draw_marked(markup: str, draw: Draw) -> str:
    """Draw the text between each pair of markers with `draw`, and remove all markers."""
    pieces = [*_pieces(markup)]
    pairs = _pairs(pieces)
    made: list[str] = []
    opened: list[tuple[int, int]] = []  # the numbers that are drawn now, and where each ends
    for at, piece in enumerate(pieces):
        opened = [(number, stop) for number, stop in opened if at < stop]
        if at in pairs:
            opened.append((_number(piece), pairs[at]))
            if pairs[at] == at + 1:
                made.append(draw(_number(piece), ""))
        elif not _SENTINEL.match(piece):
            if piece.startswith("<span ") or (piece.strip() and not piece.startswith("<")):
                for number, _ in reversed(opened):
                    piece = draw(number, piece)
            made.append(piece)
    return strip_markers("".join(made))


def _pieces(markup: str) -> Iterator[str]:
    """Split HTML into tags, whole formulas, markers and the text between these; no piece is
    empty."""
    for at, piece in enumerate(_TAG.split(markup)):
        yield from filter(None, [piece] if at % 2 else _SENTINEL_WHOLE.split(piece))


def _sign(kind: str, number: int) -> str:
    return kind + "".join(_DIGITS[int(digit)] for digit in str(number)) + _END


def _number(sign: str) -> int:
    return int("".join(str(_DIGITS.index(digit)) for digit in sign[1:-1]))


def _pairs(pieces: list[str]) -> dict[int, int]:
    """Map the index of each opening marker to that of its closing marker; pairs with a block
    between them are left out. A formula is within the pairs of all changes that it has."""
    pairs: dict[int, int] = {}
    opened: dict[int, int] = {}
    for at, piece in enumerate(pieces):
        if _BLOCK.match(piece):
            opened.clear()
        elif piece[:1] == _START:
            opened[_number(piece)] = at
        elif piece[:1] == _STOP:
            start = opened.pop(_number(piece), -1)
            if start >= 0:
                pairs[start] = at
    return pairs


def _line_ends(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)] + [len(text)]


def _places(
    text: str, start: int, end: int, lines: list[int], begins: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of text[start:end] that markers may enclose: one (start, end) per line and
    table cell. `begins` keeps where the text of each line begins, -1 if it has none: a line of many
    changes is looked at once."""
    for at in range(bisect_right(lines, start - 1), len(lines)):
        first = lines[at - 1] + 1 if at else 0
        if first > end or (first == end and start < end):
            return
        if at not in begins:
            line = text[first : lines[at]]
            begins[at] = -1 if _STRUCTURE.match(line) else first + _prefix(line)
        if begins[at] < 0:
            continue
        begin = max(start, begins[at])
        yield from _cells(text, begin, min(end, lines[at]), gap=start == end)


def _prefix(line: str) -> int:
    match = _PREFIX.match(line)
    return match.end() if match else 0


def _cells(text: str, start: int, end: int, *, gap: bool) -> Iterator[tuple[int, int]]:
    if gap:
        place = start - 1 if text[start - 1 : start] == "\\" else start
        yield place, place
        return
    for cell in re.finditer(r"[^|]+", text[start:end]):
        first, last = start + cell.start(), start + cell.end()
        while first < last and text[first] in _DELIMITERS:
            first += 1
        while last > first and text[last - 1] in _DELIMITERS:
            last -= 1
        first -= text[first - 1 : first] == "\\" and first > start
        last -= text[last - 1 : last] == "\\"
        if first < last:
            yield first, last


Format = Literal["plain", "markdown", "math"]
FORMATS: tuple[Format, ...] = get_args(Format)

FORMAT_LENGTH = 10_000
"""Characters in which `find_format` looks."""

MAX_LENGTH = 200_000
"""Maximum length of a text that is parsed as Markdown; a longer one stays plain."""

MAX_BRACKETS = 20_000
"""Opening brackets of a text that is parsed as Markdown. Each of them may begin a link, and is
looked at many times as long as other characters."""

MAX_LINES = 20_000
"""Lines of such a text. Each is tried for everything that a line can begin."""

MAX_QUOTED_LINES = 100_000
"""Lines of such a text, times its deepest quotation. Each line may go on in each of the quotations,
so that each of them looks at all lines."""

Stretch = tuple[str, int | None]
"""A piece of a text and the number of the change that it belongs to, if any."""


_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "hr", "li", "ol", "p", "pre", "s", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_CLASSES = {
    "p": {f"h{level}" for level in range(1, 7)},
    "span": {"math", "display"},
    "td": {"left", "center", "right"},
    "th": {"left", "center", "right"},
}


def find_format(texts: Iterable[str]) -> Format:
    """Return the format that shows the signs in these texts: "math" if one of them holds a
    formula, "markdown" for bold words, headings, tables or fenced code, otherwise "plain"."""
    begins = [text[:FORMAT_LENGTH] for text in texts]
    if any(map(_FORMULA.search, begins)):
        return "math"
    return "markdown" if any(map(_MARKDOWN.search, begins)) else "plain"


def render_text(text: str, form: Format) -> str:
    """Safe HTML of a text; plain text keeps its white space, which the style sheet shows."""
    if form == "plain" or _takes_too_long(text):
        return invisible_characters.escape_text(text)
    return invisible_characters.name_in_html(_sanitised(_parser(form).render(escape_markers(text))))


def render_marked(stretches: Sequence[Stretch], form: Format, draw: Draw) -> str:
    """Safe HTML of the joined stretches; `draw` draws those that belong to a change.

    In Markdown, a change that spans several elements is drawn in pieces. A change in an invisible
    place (a link address, a list mark) is not drawn.
    """
    if form == "plain" or _takes_too_long("".join(text for text, _ in stretches)):
        return "".join(_plain(stretches, draw))
    markup = _sanitised(_parser(form).render(insert_markers(stretches)))
    return invisible_characters.name_in_html(draw_marked(markup, draw))


def _takes_too_long(text: str) -> bool:
    """True for a text that would take seconds as Markdown; nobody writes one to be read so."""
    if len(text) > MAX_LENGTH or text.count("[") > MAX_BRACKETS:
        return True
    lines = re.split("[\r\n]", text)
    if len(lines) > MAX_LINES:
        return True
    if len(lines) * text.count(">") <= MAX_QUOTED_LINES:
        return False
    deepest = max(line.count(">", 0, _prefix(line)) for line in lines)
    return len(lines) * deepest > MAX_QUOTED_LINES


def _plain(stretches: Iterable[Stretch], draw: Draw) -> Iterable[str]:
    names = invisible_characters.SignNamer()
    for text, number in stretches:
        safe = names.escape(text)
        yield safe if number is None else draw(number, safe)


def _sanitised(markup: str) -> str:
    return nh3.clean(
        markup,
        tags=_TAGS,
        attributes={"*": set(), "a": {"href"}, "ol": {"start"}, "span": {"data-tex"}},
        allowed_classes=_CLASSES,
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer nofollow",
        url_schemes={"http", "https", "mailto"},
    )


@cache
def _parser(form: Format) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    normalise = parser.normalizeLink
    parser.validateLink = _is_external  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: normalise(strip_markers(url))  # type: ignore[method-assign]
    parser.core.ruler.push("tame", _simplify_tokens)
    parser.add_render_rule("image", _image)
    if form == "math":
        _add_formulas(parser)
    return parser


def _is_external(url: str) -> bool:
    """True if a link leads to another site; links in texts must not lead to this site."""
    return strip_markers(url).lower().startswith(("http://", "https://", "mailto:"))


def _simplify_tokens(state: StateCore) -> None:
    """Turn headings into paragraphs and the alignment of table cells into classes."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            if token.nesting == 1:
                token.attrSet("class", token.tag)
            token.tag = "p"
        style = token.attrs.pop("style", "")
        if style:
            token.attrSet("class", str(style).removeprefix("text-align:"))


def _image(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    at: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    """Render an image as a link with its name, because the image itself would be loaded from
    another server."""
    name = renderer.renderInlineAsText(tokens[at].children or [], options, env)  # type: ignore[attr-defined]
    address = escape(str(tokens[at].attrGet("src") or ""))
    return f'<a href="{address}">[image: {escape(name) or address}]</a>'


def _add_formulas(parser: MarkdownIt) -> None:
    dollarmath_plugin(
        parser,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,
        allow_blank_lines=False,
        double_inline=True,
    )
    formulas.limit_dollars(parser)
    formulas.environments_plugin(parser)
    formulas.brackets_plugin(parser)
    for kind in formulas.DELIMITERS:
        parser.add_render_rule(kind, _formula)


def _formula(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    at: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[at]
    starts, source, stops = extract_markers(token.content)
    source = escape(source.strip())
    opening, closing = formulas.DELIMITERS[token.type]
    kind = "math display" if token.block or token.type in formulas.DISPLAY_TOKENS else "math"
    span = f'<span class="{kind}" data-tex="{source}">{opening}{source}{closing}</span>'
    return f"<p>{starts}{span}{stops}</p>\n" if token.block else f"{starts}{span}{stops}"
