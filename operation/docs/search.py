"""Finds the sections of the documentation that have the words of a question."""

import re
from dataclasses import dataclass
from functools import cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from operation.docs.pages import Page, Section, list_pages, list_sections

MOST_HITS = 30
_AROUND = 90
# A word in a title says more about a section than one in its text.
_IN_PAGE_TITLE, _IN_TITLE, _IN_TEXT = 8, 5, 1
_MOST_COUNTED = 3
# Words that people type around what they look for. They are looked for if nothing else is typed.
_AROUND_WORDS = re.compile(
    "a|an|and|are|as|at|by|can|do|does|for|from|how|i|in|is|it|its|me|my|of|on|or|our|own|that|the|"
    "there|this|to|us|use|we|what|when|where|which|who|why|with|you|your"
)
# The changelog mentions everything, and explains nothing.
_LAST = "changelog"


@dataclass(frozen=True)
class Hit:
    """A section that has the words, and the text around the first of them with the words marked."""

    page: Page
    section: Section
    excerpt: SafeString


def search(question: str) -> list[Hit]:
    """Return the sections that have all words of the question, best first, and after these the
    sections that lack one of several words; at most `MOST_HITS`. A word finds the words that begin
    with it; capital letters do not matter, nor do words such as "the" and "how". Sections of the
    changelog come last."""
    typed = _words(question)
    words = [word for word in typed if not _AROUND_WORDS.fullmatch(word)][:12] or typed[:12]
    if not words:
        return []
    ranked: list[tuple[int, bool, int, int, Page, Section]] = []
    for page, section in _all_sections():
        scores = [_score(word, page, section) for word in words]
        missing = scores.count(0)
        if missing <= (len(words) > 1):
            last = page.slug == _LAST
            ranked.append((missing, last, -sum(scores), len(ranked), page, section))
    return [
        Hit(page, section, _excerpt(section.text, words))
        for *_, page, section in sorted(ranked, key=lambda one: one[:4])[:MOST_HITS]
    ]


@cache
def _all_sections() -> list[tuple[Page, Section]]:
    return [(page, section) for page in list_pages() for section in list_sections(page)]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _pattern(words: list[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})", re.IGNORECASE)


def _score(word: str, page: Page, section: Section) -> int:
    finds = _pattern([word])
    is_first = section.level == 1
    return (
        _IN_PAGE_TITLE * (is_first and bool(finds.search(page.title)))
        + _IN_TITLE * bool(finds.search(section.title))
        + _IN_TEXT * min(len(finds.findall(section.text)), _MOST_COUNTED)
    )


def _excerpt(text: str, words: list[str]) -> SafeString:
    finds = _pattern(words)
    first = finds.search(text)
    start = max(0, first.start() - _AROUND) if first else 0
    end = (first.end() if first else 0) + 2 * _AROUND
    shown, place, parts = text[start:end], 0, ["…" if start else ""]
    for found in finds.finditer(shown):
        parts.append(format_html("{}<mark>{}</mark>", shown[place : found.start()], found[0]))
        place = found.end()
    parts.append(format_html("{}{}", shown[place:], "…" if end < len(text) else ""))
    return mark_safe("".join(parts))  # noqa: S308 - each part was escaped
