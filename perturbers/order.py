"""Sentences taken out of a text, and sentences or steps that changed places."""

from collections.abc import Iterator
from itertools import pairwise

from perturbers.changes import Change, Edit, Source
from perturbers.negation import beginning
from perturbers.sentences import NUMBERED, Sentence, is_prose, sentences

SHORTEST = 5


def removed(source: Source) -> Iterator[Change]:
    """One change for each sentence that stands beside another in its line, with the space that
    stood between them."""
    for first, second in _neighbours(source.gold):
        yield Change(
            (Edit(first.end, second.end, ""),),
            f"The sentence “{beginning(second.of(source.gold))}” is left out.",
        )


def swapped(source: Source) -> Iterator[Change]:
    """One change for each two sentences that follow each other in a line."""
    for first, second in _neighbours(source.gold):
        yield _exchanged(source.gold, first, second, "sentences")


def steps(source: Source) -> Iterator[Change]:
    """One change for each two entries of a numbered list that follow each other, each a line;
    their numbers stay."""
    text, start, entries = source.gold, 0, []
    for number, line in enumerate(text.split("\n")):
        mark = NUMBERED.match(line)
        if mark and line[mark.end() :].strip():
            entries.append(Sentence(start + mark.end(), start + len(line.rstrip()), number))
        start += len(line) + 1
    for first, second in pairwise(entries):
        if second.line - first.line <= 2 and first.of(text) != second.of(text):
            yield _exchanged(text, first, second, "steps")


def _neighbours(text: str) -> Iterator[tuple[Sentence, Sentence]]:
    """Two sentences that follow each other in a line, both long enough to say something."""
    for first, second in pairwise(sentences(text)):
        longs = all(len(one.of(text).split()) >= SHORTEST for one in (first, second))
        if first.line == second.line and longs and is_prose(text, first.start, second.end):
            yield first, second


def _exchanged(text: str, first: Sentence, second: Sentence, what: str) -> Change:
    between = text[first.end : second.start]
    one, other = first.of(text), second.of(text)
    return Change(
        (Edit(first.start, second.end, f"{other}{between}{one}"),),
        f"The {what} “{beginning(one)}” and “{beginning(other)}” have changed places.",
    )
