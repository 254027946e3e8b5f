"""Sentences taken out of a text, and sentences or steps that changed places."""

from collections.abc import Iterator
from itertools import pairwise

from perturbers.changes import PerturberInput, TextChange, TextEdit
from perturbers.negation import shorten_sentence
from perturbers.sentences import NUMBERED, Sentence, is_prose, split_sentences

SHORTEST = 5


def find_removable(source: PerturberInput) -> Iterator[TextChange]:
    """One change for each sentence that stands beside another in its line, with the space that
    stood between them."""
    for first, second in _neighbours(source.gold):
        yield TextChange(
            (TextEdit(first.end, second.end, ""),),
            f"The sentence “{shorten_sentence(second.of(source.gold))}” is left out.",
        )


def find_swappable(source: PerturberInput) -> Iterator[TextChange]:
    """One change for each two sentences that follow each other in a line."""
    for first, second in _neighbours(source.gold):
        yield _swap(source.gold, first, second, "sentences")


def find_swappable_steps(source: PerturberInput) -> Iterator[TextChange]:
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
            yield _swap(text, first, second, "steps")


def _neighbours(text: str) -> Iterator[tuple[Sentence, Sentence]]:
    """Two sentences that follow each other in a line, both long enough to say something."""
    for first, second in pairwise(split_sentences(text)):
        longs = all(len(one.of(text).split()) >= SHORTEST for one in (first, second))
        if first.line == second.line and longs and is_prose(text, first.start, second.end):
            yield first, second


def _swap(text: str, first: Sentence, second: Sentence, what: str) -> TextChange:
    between = text[first.end : second.start]
    one, other = first.of(text), second.of(text)
    return TextChange(
        (TextEdit(first.start, second.end, f"{other}{between}{one}"),),
        f"The {what} “{shorten_sentence(one)}” and “{shorten_sentence(other)}” have changed "
        "places.",
    )
