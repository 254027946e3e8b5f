"""The search for words in the texts of items and in the comments on them.

All words must occur, in any order. A word also finds longer words that begin with it, if it has at
least three letters or ends in `*`. "Words in quotation marks" must stand together and as they are.
A word or a quotation after `-` must not occur.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import F

from annotation.items import search_index
from annotation.items.models import ItemQuerySet
from annotation.models import Item, Project, SearchText
from annotation.tasktypes import TaskType

# A longer list is counted and shown only so far.
MOST_FOUND = 10_000
# Letters that a word needs to find longer words as well.
SHORTEST_BEGINNING = 3
MOST_TERMS = 20
# How many places of an item are shown, and the letters around the first match.
MOST_EXCERPTS, BEFORE, AFTER = 2, 40, 120
COMMENT = "Comment"
# So many letters of the texts of a page are looked through for places to show: a pattern of twenty
# words takes a quarter of a second for a million letters, and no other thread goes on meanwhile.
MOST_LOOKED_THROUGH = 2_000_000
# So many words of a quotation are looked for in texts to mark them; the index has looked for all.
MOST_MARKED = 10
# One search of a process at a time has texts in memory, since those of one item may take 200 MB.
_reading = threading.Lock()
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


class SearchError(ValueError):
    """A search that finds nothing because of how it is written. The message says what to do."""


@dataclass(frozen=True)
class Term:
    """Words that stand together in a text; with `begins`, the last may be the beginning of a longer
    word. `excluded` if they must not occur."""

    words: tuple[str, ...]
    begins: bool
    excluded: bool


@dataclass(frozen=True)
class Excerpt:
    """A part of a text of an item, or of a comment on it, around the first match: its pieces, each
    with whether it matches."""

    title: str
    is_comment: bool
    pieces: tuple[tuple[str, bool], ...]


def parse_query(text: str) -> list[Term]:
    """Read what somebody typed. Raises `SearchError` if it has no word, or too many."""
    found = []
    for minus, quoted, plain in _TERM.findall(text):
        words = tuple(
            word[: search_index.LONGEST_WORD] for word in search_index.split_words(quoted or plain)
        )
        if words:
            starred = plain.endswith("*")
            begins = starred or bool(plain and len(words[-1]) >= SHORTEST_BEGINNING)
            found.append(Term(words, begins, bool(minus)))
    if not any(not term.excluded for term in found):
        raise SearchError("Type at least one word to look for, of letters or digits.")
    if len(found) > MOST_TERMS:
        raise SearchError(f"Type at most {MOST_TERMS} words.")
    return found


def find_items(items: ItemQuerySet, project: Project, terms: Iterable[Term]) -> ItemQuerySet:
    """Return those of the project's items whose current texts or comments match all terms.

    Up to `MOST_FOUND` items are looked up here, in one query, and then named by their ids, in an
    order that no index has: PostgreSQL would otherwise read a million items in their order to find
    the first fifty of these.
    """
    own = Term((search_index.project_word(project.pk),), begins=False, excluded=False)
    write = _to_tsquery if connection.vendor == "postgresql" else _to_fts5
    query = write([own, *terms])
    matching = SearchText.objects.filter(words__matches=query).order_by()
    found = list(matching.values_list("pk", flat=True)[: MOST_FOUND + 1])
    if len(found) <= MOST_FOUND:
        return items.filter(pk__among=found).order_by("project_id", F("position") + 0)
    return items.filter(search_text__words__matches=query)


def _to_tsquery(terms: Iterable[Term]) -> str:
    return " & ".join(
        ("!" if term.excluded else "")
        + "("
        + " <-> ".join(f"'{word}'" for word in term.words)
        + (":*)" if term.begins else ")")
        for term in terms
    )


def _to_fts5(terms: Sequence[Term]) -> str:
    def write(excluded: bool) -> Iterator[str]:
        for term in terms:
            if term.excluded == excluded:
                yield f'"{" ".join(term.words)}"' + (" *" if term.begins else "")

    return " NOT ".join([f"({' AND '.join(write(False))})", *write(True)])


def find_excerpts(
    task: TaskType, items: Iterable[Item], terms: Iterable[Term]
) -> dict[int, list[Excerpt]]:
    """For each item, by its id, the first places that match a term, in the order in which the texts
    are shown. After `MOST_LOOKED_THROUGH` letters only comments are looked through, since they are
    short. Takes six queries, and more for long texts."""
    looked_for = pattern(term for term in terms if not term.excluded)
    titles = {text.name: text.title for text in task.texts} | {"": COMMENT}
    order = [*titles].index
    found, left = {}, MOST_LOOKED_THROUGH
    with _reading:
        for pk, texts in search_index.load_texts([item.pk for item in items]):
            known = sorted(
                (one for one in texts if one[0] in titles), key=lambda one: order(one[0])
            )
            found[pk] = list[Excerpt]()
            for name, text in known:
                within = text[:left] if name else text
                left -= len(within) if name else 0
                excerpt = _cut_excerpt(titles[name], not name, within, looked_for)
                found[pk] += [excerpt] if excerpt else []
                if len(found[pk]) == MOST_EXCERPTS:
                    break
    return found


def found_in_comments(excerpts: dict[int, list[Excerpt]]) -> list[int]:
    """The ids of items for which the excerpts show a comment."""
    return [pk for pk, each in excerpts.items() if any(one.is_comment for one in each)]


def pattern(terms: Iterable[Term]) -> re.Pattern[str]:
    """What stands for the first `MOST_MARKED` words of the terms in a text as people wrote it. More
    words would be compared at every place of a text that repeats one of them."""
    marked = (replace(term, words=term.words[:MOST_MARKED]) for term in terms)
    each = (
        ("" if search_index.is_letter_word(term.words[0]) else r"(?<![^\W_])")
        # The search takes ß for ss, as it does both in capitals.
        + r"[\W_]*".join(re.escape(word).replace("ss", "(?:ss|ß)") for word in term.words)
        + _end(term)
        for term in marked
    )
    return re.compile("|".join(each), re.IGNORECASE)


def _end(term: Term) -> str:
    if search_index.is_letter_word(term.words[-1]):
        return ""
    return r"[^\W_]*" if term.begins else r"(?![^\W_])"


def _cut_excerpt(
    title: str, is_comment: bool, text: str, looked_for: re.Pattern[str]
) -> Excerpt | None:
    first = looked_for.search(text)
    if first is None:
        return None
    begin = max(0, first.start() - BEFORE)
    if begin and " " in text[begin : first.start()]:
        begin = text.index(" ", begin) + 1
    shown = text[begin : first.end() + AFTER]
    pieces, place = [("…" if begin else "", False)], 0
    for match in looked_for.finditer(shown):
        pieces += [(shown[place : match.start()], False), (match[0], True)]
        place = match.end()
    rest = shown[place:] + ("…" if begin + len(shown) < len(text) else "")
    return Excerpt(
        title, is_comment, tuple(piece for piece in (*pieces, (rest, False)) if piece[0])
    )
