"""The pages of the documentation: Markdown files, listed in docs/contents.toml."""

import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.utils.html import format_html
from markdown_it import MarkdownIt
from markdown_it.token import Token

CONTENTS = "docs/contents.toml"
PICTURES = "docs/pictures"
# Where a link to the file of another page, or to a picture, leads; None if it leads nowhere.
Target = Callable[[str], str | None]


@dataclass(frozen=True)
class Page:
    """A page: its file as a path from the top of the repository, its slug and its title, what is
    found there, and the screens that it explains (see docs/contents.toml)."""

    file: str
    slug: str
    title: str
    about: str
    screens: frozenset[str]

    @property
    def source(self) -> str:
        """The page as Markdown."""
        return _read(self.file)


@dataclass(frozen=True)
class Group:
    """Pages of one kind, such as the how-to guides."""

    title: str
    about: str
    pages: tuple[Page, ...]


@dataclass(frozen=True)
class Section:
    """A heading, its level and its anchor, and the text below it without its markup."""

    level: int
    anchor: str
    title: str
    text: str


@cache
def load_contents() -> tuple[Group, ...]:
    """Return the groups of pages, in the order of the contents."""
    listed = tomllib.loads(_read(CONTENTS))["group"]
    return tuple(
        Group(one["title"], one["about"], tuple(map(_page, one["page"]))) for one in listed
    )


def list_pages() -> list[Page]:
    """Return all pages, in the order of the contents."""
    return [page for group in load_contents() for page in group.pages]


@cache
def pages_by_slug() -> dict[str, Page]:
    """Return the pages by slug."""
    return {page.slug: page for page in list_pages()}


@cache
def pages_by_screen() -> dict[str, Page]:
    """Return the page that explains a screen, by the screen's name."""
    return {screen: page for page in list_pages() for screen in page.screens}


def _page(row: dict[str, Any]) -> Page:
    file = str(row["file"])
    title = re.search(r"^# (.+)$", _read(file), re.MULTILINE)
    assert title, f"{file} has no heading."
    slug = row.get("slug", PurePosixPath(file).stem)
    return Page(file, slug, title[1], row["about"], frozenset(row.get("screens", [])))


def _read(file: str) -> str:
    return (settings.BASE_DIR / file).read_text(encoding="utf-8")


def render_page(page: Page, target: Target) -> str:
    """Return the page as HTML. A link that leads nowhere becomes plain text."""
    tokens = _parse(page.file)
    return _MARKDOWN.renderer.render(
        list(_linked(tokens, page.file, target)), _MARKDOWN.options, {}
    )


@cache
def list_sections(page: Page) -> list[Section]:
    """Return the page's headings with their texts, in order. The first is the title."""
    found: list[tuple[int, str, str, list[str]]] = []
    tokens = _parse(page.file)
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            title = _plain(tokens[number + 1])
            found.append((int(token.tag[1:]), str(token.attrs["id"]), title, []))
        elif token.type == "inline" and tokens[number - 1].type != "heading_open" and found:
            found[-1][3].append(_plain(token))
        elif token.type in {"fence", "code_block"} and found:
            found[-1][3].append(token.content)
    return [Section(level, anchor, title, " ".join(texts)) for level, anchor, title, texts in found]


def resolve_link(file: str, href: str) -> tuple[str, str]:
    """Return the file that a relative link in a file names, as a path from the top of the
    repository, and its anchor with "#", or ""."""
    path, hash_sign, anchor = href.partition("#")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(file), path)) if path else file
    return there, hash_sign + anchor


def is_relative(href: str) -> bool:
    """True if a link leads to another file of the repository, or within its own."""
    return not re.match(r"[a-z]+:|/", href)


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def _parse(file: str) -> list[Token]:
    """Return the tokens of a file; each heading has an anchor."""
    tokens = _MARKDOWN.parse(_read(file))
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = make_anchor(_plain(tokens[number + 1]))
            before = seen.get(anchor, 0)
            seen[anchor] = before + 1
            token.attrSet("id", f"{anchor}-{before}" if before else anchor)
    return tokens


def make_anchor(heading: str) -> str:
    """Return the anchor of the first heading of a page with these words, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _plain(inline: Token) -> str:
    parts = (
        "\n" if one.type in {"softbreak", "hardbreak"} else one.content
        for one in inline.children or []
        if one.type != "image"
    )
    return "".join(parts)


def _linked(tokens: list[Token], file: str, target: Target) -> Iterator[Token]:
    """Yield the tokens with links that hold on the site, and tables in a frame that scrolls."""
    tables = 0
    for token in tokens:
        if token.type == "table_open":
            tables += 1
            frame = '<div class="table-scroll" tabindex="0" role="region" aria-label="Table {}">'
            yield _html(format_html(frame, tables))
            token.attrSet("class", "table")
        if token.children:
            token.children = list(_linked_inline(token.children, file, target))
        yield token
        if token.type == "table_close":
            yield _html("</div>")


def _linked_inline(tokens: list[Token], file: str, target: Target) -> Iterator[Token]:
    leads_nowhere = False
    for token in tokens:
        if token.type == "link_open" and is_relative(str(token.attrs["href"])):
            path, anchor = resolve_link(file, str(token.attrs["href"]))
            there = target(path)
            leads_nowhere = there is None
            token.attrSet("href", f"{there}{anchor}")
        elif token.type == "image":
            picture = target(resolve_link(file, str(token.attrs["src"]))[0])
            yield _html(
                format_html('<img src="{}" alt="{}" loading="lazy">', picture, token.content)
            )
            continue
        if not (leads_nowhere and token.type in {"link_open", "link_close"}):
            yield token
        elif token.type == "link_close":
            leads_nowhere = False


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)
