"""Find the numbers of a text, and similar numbers to replace them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from perturbers.changes import PerturberInput, TextChange, TextEdit

_NUMBER = re.compile(
    r"(?<![\w.,/:^_\\-])(?<![\^_]\{)(?:\d{1,3}(?:,\d{3})+|\d{1,12})(?:\.\d{1,9})?(?![\w/:^_-]|[.,]\d|\.(?=\s*\d))"
)
_LIST_MARK = re.compile(r"^[ \t#*]*+\d{1,3}(?=[.):])", re.MULTILINE)
_YEAR = re.compile(r"(?:1\d|20)\d\d")
# Longer than any word that precedes a year.
_BEFORE = 12
_AS_A_YEAR = re.compile(r"(?i)\b(?:in|since|by|from|until|of|during|and|to|around|year)\s\Z|\(\Z")
_WORDS = (
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(_WORDS)})(?![\w-])", re.IGNORECASE)


class Number(NamedTuple):
    """A number as it is written in the text, and its position."""

    text: str
    start: int
    end: int


def find_digit_numbers(text: str) -> Iterator[Number]:
    """Find the meaningful numbers in digits. Left out are numbers that number a list, and parts of
    a word, a date, a fraction, a version or a ratio."""
    marks = {found.end() for found in _LIST_MARK.finditer(text)}
    for found in _NUMBER.finditer(text):
        if found.end() not in marks:
            yield Number(found[0], *found.span())


def find_numbers(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per number, written in digits or, from two to twelve, in words."""
    for one in find_digit_numbers(source.gold):
        yield change_number(source, one)
    for found in _WORD.finditer(source.gold):
        yield _change_number_word(source, found)


def change_number(
    source: PerturberInput, one: Number, words: str = "The number {} is changed to {}."
) -> TextChange:
    """Replace one number. `words` is the template of the claim, with places for the old and the new
    number."""
    year = _YEAR.fullmatch(one.text) and _AS_A_YEAR.search(
        source.gold, max(0, one.start - _BEFORE), one.start
    )
    after = _pick_year(source, one) if year else pick_number(source, one)
    return TextChange((TextEdit(one.start, one.end, after),), words.format(one.text, after))


def pick_number(source: PerturberInput, one: Number) -> str:
    """Pick a number with the same number of digits, the same commas and the same decimal places.

    One digit changes by 1 to 5; the first digit never becomes 0. A percentage of at most 100 stays
    at most 100: if 100 is followed by a per cent sign, the new number is smaller.
    """
    if one.text == "100" and source.gold[one.end : one.end + 2].lstrip().startswith("%"):
        return str(source.pick(range(70, 98), one.start))
    places = [place for place, sign in enumerate(one.text) if sign.isdigit()]
    # A number with trailing zeros is a round number. If a zero changed, the number would look
    # measured.
    rounded = len(one.text.rstrip("0.,")) or 1
    place = source.pick([each for each in places if each < rounded] or places, one.start, "place")
    return _pick_digit(source, one, place, first=place == places[0] and len(places) > 1)


def _pick_digit(source: PerturberInput, one: Number, place: int, *, first: bool) -> str:
    digit = int(one.text[place])
    least = 1 if first or len(one.text) == 1 else 0
    near = [each for each in range(least, 10) if 0 < abs(each - digit) <= 5]
    after = source.pick(near, one.start, place)
    return f"{one.text[:place]}{after}{one.text[place + 1 :]}"


def _pick_year(source: PerturberInput, one: Number) -> str:
    """Pick a year that is 3 to 30 years away, in the same century and not after 2020."""
    year = int(one.text)
    last = min(year - year % 100 + 99, 2020)
    near = [each for each in range(year - 30, year + 31) if abs(each - year) >= 3]
    same = [each for each in near if each // 100 == year // 100 and each <= last]
    return str(source.pick(same, one.start))


def _change_number_word(source: PerturberInput, found: re.Match[str]) -> TextChange:
    said = found[0]
    place = _WORDS.index(said.lower())
    near = [one for one in _WORDS if 0 < abs(_WORDS.index(one) - place) <= 4]
    after = source.pick(near, found.start())
    after = after.capitalize() if said[0].isupper() else after
    return TextChange(
        (TextEdit(found.start(), found.end(), after),),
        f"The number “{said}” is changed to “{after}”.",
    )
