"""Replace a name with another name from the same text."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from perturbers.changes import PerturberInput, TextChange, TextEdit
from perturbers.sentences import is_prose, overlaps, split_sentences

_NAME = re.compile(
    r"(?<=[a-z] )(?P<name>[A-Z][a-zé]{2,}(?: (?:of |de |van |von )?[A-Z][a-zé]{2,}){0,3})(?![\w-])"
)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|^.*:$", re.MULTILINE)
_ADJECTIVE = re.compile(r"(?:ish|ese|ian|ians)\Z")
_SMALL = re.compile(r"\b[a-z][a-zé]{2,}")
_WORD_BEFORE = re.compile(r"(\w+) \Z")
# Longer than any preposition that precedes a place.
_LOOK_BEHIND = 12
# At most this many names of a text are used, since each name is compared with every other.
MOST_NAMES = 500
# Capitalised words that are not names, and words whose change would alter a date or an adjective.
_NO_NAMES = """
    January February March April May June July August September October November December Monday
    Tuesday Wednesday Thursday Friday Saturday Sunday The This That These Those Here There However
    For And But With From Their Your Our His Her Its
    """
_PLACE_PREPOSITIONS = frozenset(
    {"in", "at", "from", "to", "near", "into", "across", "through", "toward"}
)


def find_names(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change for each name inside a sentence that has a similar name in the text. A
    similar name has the same number of words, and either both or neither follow a preposition of
    place."""
    found = list(islice(_names(source.gold), MOST_NAMES))
    names: dict[bool, set[str]] = defaultdict(set)
    for name, _, kind in found:
        names[kind].add(name)
    for name, place, kind in found:
        others = sorted(one for one in names[kind] if _is_like(one, name))
        if others:
            after = source.pick(others, place, name)
            edit = TextEdit(place, place + len(name), after)
            yield TextChange((edit,), f"The name “{name}” is replaced by “{after}”.")


def _names(text: str) -> Iterator[tuple[str, int, bool]]:
    """Yield names with their start, and whether they follow a preposition of place.

    Words that are also in the text in lower case are not names. Bold text is left out, since it is
    mostly headings.
    """
    bold = [found.span() for found in _BOLD.finditer(text)]
    no_names = {*_NO_NAMES.split()} | {word.capitalize() for word in _SMALL.findall(text)}
    for sentence in split_sentences(text):
        for found in _NAME.finditer(text, sentence.start, sentence.end):
            name, place = found["name"], found.start("name")
            stressed = overlaps(bold, place, place + 1)
            if stressed or _ADJECTIVE.search(name) or not no_names.isdisjoint(name.split()):
                continue
            if is_prose(text, *found.span()):
                before = _WORD_BEFORE.search(text, max(sentence.start, place - _LOOK_BEHIND), place)
                yield name, place, bool(before and before[1] in _PLACE_PREPOSITIONS)


def _is_like(one: str, name: str) -> bool:
    """True if it is another name with the same number of words and no word in common."""
    words, others = name.split(), one.split()
    return len(words) == len(others) and set(words).isdisjoint(others)
