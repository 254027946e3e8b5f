"""Texts as safe HTML: plain, as Markdown, or as Markdown with formulas.

Every text is treated as hostile. Markdown accepts no HTML here, its links open in a new tab and
lead only to web or mail addresses, images are named instead of fetched, and the result is sanitised
again. Headings become paragraphs, so that an answer cannot change the outline of the page. A
formula becomes `<span class="math" data-tex="...">` with its source as text; one on a line of its
own also has the class `display`. The page draws the formulas.

Stretches of a text can be marked as changed: see `render_marked`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from typing import Literal, get_args

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.dollarmath import dollarmath_plugin

from annotation.items.rendering import change_markers, formulas, invisible_characters

Format = Literal["plain", "markdown", "math"]
FORMATS: tuple[Format, ...] = get_args(Format)

MAX_LENGTH = 400_000
"""Maximum length of a text that is parsed as Markdown; a longer one stays plain."""

Stretch = tuple[str, int | None]
"""A piece of a text and the number of the change that it belongs to, if any."""

Draw = Callable[[int, str], str]
"""Returns the element for a change's number and HTML; the HTML is "" where text is missing."""

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


def render_text(text: str, form: Format) -> str:
    """Safe HTML of a text; plain text keeps its white space, which the style sheet shows."""
    if form == "plain" or len(text) > MAX_LENGTH:
        return invisible_characters.escape_text(text)
    return invisible_characters.name_in_html(
        _sanitised(_parser(form).render(change_markers.escape_markers(text)))
    )


def render_marked(stretches: Sequence[Stretch], form: Format, draw: Draw) -> str:
    """Safe HTML of the joined stretches; `draw` draws those that belong to a change.

    In Markdown a change that spans several elements is drawn in pieces, and an invisible one (in a
    link address or a list mark) is not drawn.
    """
    if form == "plain" or sum(len(text) for text, _ in stretches) > MAX_LENGTH:
        return "".join(_plain(stretches, draw))
    markup = _sanitised(_parser(form).render(change_markers.insert_markers(stretches)))
    return invisible_characters.name_in_html(change_markers.draw_marked(markup, draw))


def _plain(stretches: Iterable[Stretch], draw: Draw) -> Iterable[str]:
    for text, number in stretches:
        safe = invisible_characters.escape_text(text)
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
    parser.normalizeLink = lambda url: normalise(change_markers.strip_markers(url))  # type: ignore[method-assign]
    parser.core.ruler.push("tame", _simplify_tokens)
    parser.add_render_rule("image", _image)
    if form == "math":
        _add_formulas(parser)
    return parser


def _is_external(url: str) -> bool:
    """Whether a link leads to another site; a link in a text must not lead into this one."""
    return change_markers.strip_markers(url).lower().startswith(("http://", "https://", "mailto:"))


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
    """An image as a link with its name; the image would be fetched from another server."""
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
    starts, source, stops = change_markers.extract_markers(token.content)
    source = escape(source.strip())
    opening, closing = formulas.DELIMITERS[token.type]
    kind = "math display" if token.block or token.type in formulas.DISPLAY_TOKENS else "math"
    span = f'<span class="{kind}" data-tex="{source}">{opening}{source}{closing}</span>'
    return f"<p>{starts}{span}{stops}</p>\n" if token.block else f"{starts}{span}{stops}"
