"""Typical misspellings: two letters swapped, or a neighbouring key."""

import re
from collections.abc import Iterator

from perturbers.changes import PerturberInput, TextChange, TextEdit
from perturbers.sentences import is_prose

_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"(?<![\w'’\-/\\@.])[a-z]{6,16}(?![\w'’\-/\\@])")
# Words that become other words when two inner letters are swapped.
_REAL_WORDS = """
    barely barley casual causal conversation conservation complaint compliant dairy diary
    dessert expect except filed field marital martial united untied sacred scared silver sliver
    reserve reverse protein pointer signing singing nuclear unclear angered enraged trial trail
    """


def find_words(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per distinct word of six to sixteen lower-case letters."""
    words = {*_REAL_WORDS.split()} | {found[0] for found in _WORD.finditer(source.gold)}
    seen: set[str] = set()
    for found in _WORD.finditer(source.gold):
        word = found[0]
        if word in seen or not is_prose(source.gold, *found.span()):
            continue
        seen.add(word)
        wrong = [one for one in _misspell(word) if one not in words]
        if wrong:
            after = source.pick(wrong, found.start(), word)
            edit = TextEdit(found.start(), found.end(), after)
            yield TextChange((edit,), f"The word “{word}” is misspelt as “{after}”.")


def _misspell(word: str) -> list[str]:
    """Return possible misspellings. The first and last letters stay, as in most real mistakes."""
    return [*_transpose(word), *_replace_by_neighbour(word)]


def _transpose(word: str) -> Iterator[str]:
    for place in range(1, len(word) - 2):
        if word[place] != word[place + 1]:
            yield word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _replace_by_neighbour(word: str) -> Iterator[str]:
    for place in range(1, len(word) - 1):
        for key in _neighbour_keys(word[place]):
            yield word[:place] + key + word[place + 1 :]


def _neighbour_keys(letter: str) -> str:
    row = next(one for one in _KEYBOARD if letter in one)
    place = row.index(letter)
    return row[max(0, place - 1) : place] + row[place + 1 : place + 2]
