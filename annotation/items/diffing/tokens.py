"""Splits texts into the tokens that a diff aligns, and finds clusters that no diff may split.

Tokens are words with their marks, numbers with their separators ("1,250.50"), single line breaks,
other runs of white space, single signs, and single characters in scripts written without spaces.
People read a change in words; a diff of single characters would split them.

A base character is never separated from its combining marks, joiners, variation selectors or the
other half of a flag. Marks are defined by the Unicode tables of this Python version.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

MIN_UNIT_LENGTH = 30
"""Characters that a line or sentence needs to be taken for the same one in both texts."""


def tokenise(text: str) -> list[str]:
    """Return the tokens of a text; joined, they give the text."""
    return _TOKEN.findall(text)


def tokenise_pair(gold: str, perturbed: str) -> tuple[list[str], list[str], set[str]]:
    """Return the tokens of both texts, and the long tokens that occur once in each.

    The long tokens are whole lines and sentences: two compared texts are mostly the same, and the
    equal parts need not be split into words.
    """
    left, right = _units(gold), _units(perturbed)
    shared = _occurring_once(left) & _occurring_once(right)
    return _split(left, shared), _split(right, shared), shared


def bond_clusters(gold: str, perturbed: str) -> tuple[str, str, dict[int, str]]:
    """Return both texts with a private character for each inseparable cluster, and a table for
    `str.translate` that restores the clusters.

    Private characters in the texts themselves are replaced in the same way, so they never clash.
    """
    if gold.isascii() and perturbed.isascii() and "\r" not in gold + perturbed:
        return gold, perturbed, {}
    known: dict[str, str] = {}

    def bond(match: re.Match[str]) -> str:
        return known.setdefault(match[0], chr(0xF0000 + len(known)))

    left, right = _INSEPARABLE.sub(bond, gold), _INSEPARABLE.sub(bond, perturbed)
    return left, right, {ord(private): cluster for cluster, private in known.items()}


def _units(text: str) -> list[str]:
    """Split a text after line breaks and sentences, where a token always ends."""
    cuts = [0, *(match.end() for match in _UNIT_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


def _occurring_once(units: list[str]) -> set[str]:
    counts = Counter(units)
    return {unit for unit in counts if counts[unit] == 1 and len(unit) >= MIN_UNIT_LENGTH}


def _split(units: list[str], shared: set[str]) -> list[str]:
    split: list[str] = []
    for unit in units:
        if unit in shared:
            split.append(unit)
        else:
            split += _TOKEN.findall(unit)
    return split


def _character_class(members: Iterable[int]) -> str:
    """Return the inside of a regular expression's [...] for the given sorted code points."""
    ranges: list[list[int]] = []
    for point in members:
        if ranges and point == ranges[-1][1] + 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in ranges)


# Marks are in the first two planes and, as variation selectors and tags, in plane 14.
_MARKS = [
    point
    for point in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    if unicodedata.category(chr(point)).startswith("M")
]
_EXTEND = (
    _character_class(_MARKS)
    + "\u200c\u200d"  # (non-)joiners
    + "\u1160-\u11ff\ud7b0-\ud7fb"  # vowels and finals of decomposed Hangul
    + "\u0e33\u0eb3\uff9e\uff9f"  # Thai and Lao AM, half-width Kana voicing
    + "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # skin tones, tags of flags
)
_VIRAMA = _character_class(point for point in _MARKS if unicodedata.combining(chr(point)) == 9)
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
# Han, Kana, Bopomofo, Yi; Thai, Lao, Myanmar, Khmer: written without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3040-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
_PICTURE = "\u203c-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
_TAIL = rf"(?:\u200d[{_PICTURE}]|[{_VIRAMA}]\u200d?\w|[{_EXTEND}])"
_LETTERS = rf"(?:[^\W{_UNSPACED}]++(?:(?=[{_EXTEND}]){_TAIL}++)?)++"
# Plain ASCII, most of nearly every text, is tried first: the sets of marks make the rest slow.
_PLAIN = r"[A-Za-z_]++(?=[ !-&(-/:-@[-^`{-~\r\n])| (?=[!-~])|[!-&(-/:-@[-^`{-~](?=[ -~\r\n])"
_TOKEN = re.compile(
    rf"{_PLAIN}|{_LETTERS}(?:(?:(?<=\d)[.,](?=\d)|['’](?=[^\W{_UNSPACED}])){_LETTERS})*+"
    rf"|[^\S\r\n]+(?![{_EXTEND}])"
    r"|\r\n|[\r\n]"
    rf"|{_FLAG}{_TAIL}*+"
    rf"|.{_TAIL}*+",
    re.DOTALL,
)
_BEYOND = "\U000f0000-\U0010ffff"  # private use: replaces clusters that must not be split
_INSEPARABLE = re.compile(rf"\r\n|{_FLAG}{_TAIL}*+|[^\r\n]{_TAIL}++|[{_BEYOND}]")
# Begins with a set instead of alternatives, which makes the search three times as fast.
_UNIT_END = re.compile(r"[\r\n.!?:;](?:(?<=\r)\n?|(?<=\n)|(?<=[.!?:;]) (?=[!-~]))")
