"""Cuts texts into lines, sentences and tokens.

Tokens are words with their marks, numbers with their separators ("1,250.50"), single line breaks,
other runs of white space, single signs, and single characters in scripts written without spaces.
People read changes word by word; a diff by characters would break words into pieces.

A base character is never separated from its combining marks, joiners or variation selectors, nor
one half of a flag from the other. Which characters are marks depends on the Unicode tables of this
Python.
"""

import re
import unicodedata
from functools import cache

from stats.unicode_forms import character_class


def tokenise(text: str) -> list[str]:
    """Return the tokens of a text; joined, they give the text."""
    return _patterns()[0].findall(text)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, each with its break and the blank lines behind it. Blank lines at
    the start belong to the first line."""
    lines: list[list[str]] = []
    only_blank = True
    for line in _LINE.findall(text):
        blank = line.isspace()
        if lines and (blank or only_blank):
            lines[-1].append(line)
        else:
            lines.append([line])
        only_blank = only_blank and blank
    return ["".join(parts) for parts in lines]


def sentence_starts(text: str) -> list[int]:
    """Return where sentences begin inside a line, after its start.

    Texts that were written as one long line often have headings and list items inside it; these
    begin a sentence too.
    """
    first = len(text) - len(text.lstrip())
    return [cut.end() for cut in _SENTENCE_END.finditer(text) if cut.end() > first]


def content_key(text: str) -> str:
    """Return the content of a line or sentence: without its list mark, emphasis and surrounding
    white space.

    A content of less than 8 characters keeps its list mark: otherwise the line "1. 531" would match
    "6. 531".
    """
    key = " ".join(_EMPHASIS.sub("", LIST_MARK.sub("", text, count=1)).split())
    return key if len(key) >= MIN_KEY_LENGTH else " ".join(text.split())


def content_words(key: str) -> list[str]:
    """Return the words, numbers and signs of a content key, without white space."""
    return _WORD_OR_SIGN.findall(key)


def bond_clusters(gold: str, perturbed: str) -> tuple[str, str, dict[int, str]]:
    """Replace each inseparable cluster in both texts by a private-use character. Return both texts
    and a table for `str.translate` that restores the clusters.

    Private-use characters of the texts themselves are replaced in the same way, so that they never
    clash with these.
    """
    if gold.isascii() and perturbed.isascii() and "\r" not in gold + perturbed:
        return gold, perturbed, {}
    known: dict[str, str] = {}

    def bond(match: re.Match[str]) -> str:
        return known.setdefault(match[0], chr(0xF0000 + len(known)))

    inseparable = _patterns()[1]
    left, right = inseparable.sub(bond, gold), inseparable.sub(bond, perturbed)
    return left, right, {ord(private): cluster for cluster, private in known.items()}


_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
# Han, Kana, Bopomofo, Yi; Thai, Lao, Myanmar, Khmer: written without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3040-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
_PICTURE = "\u203c-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
# Plain ASCII is tried first: it makes up nearly all of most texts, and the sets of marks are slow.
_PLAIN = r"[A-Za-z_]++(?=[ !-&(-/:-@[-^`{-~\r\n])| (?=[!-~])|[!-&(-/:-@[-^`{-~](?=[ -~\r\n])"
_BEYOND = "\U000f0000-\U0010ffff"  # private use: replaces a cluster that must not be cut


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what matches one token, and what matches one cluster that must not be cut.

    They are made when the first text is cut: looking through all characters for marks takes a tenth
    of a second, which most commands do not need.
    """
    # Marks are in the first two planes; variation selectors and tags are in plane 14.
    marks = [
        point
        for point in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
        if unicodedata.category(chr(point)).startswith("M")
    ]
    extend = (
        character_class(marks)
        + "\u200c\u200d"  # (non-)joiners
        + "\u1160-\u11ff\ud7b0-\ud7fb"  # vowels and finals of taken-apart Hangul
        + "\u0e33\u0eb3\uff9e\uff9f"  # Thai and Lao AM, half-width Kana voicing
        + "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # skin tones, tags of flags
    )
    virama = character_class(point for point in marks if unicodedata.combining(chr(point)) == 9)
    tail = rf"(?:\u200d[{_PICTURE}]|[{virama}]\u200d?\w|[{extend}])"
    # Python before 3.11.5 matches some groups wrongly that are repeated possessively, as in
    # (?:...)*+.
    letters = rf"(?>(?:[^\W{_UNSPACED}]++(?:(?=[{extend}])(?>{tail}+))?)+)"
    token = re.compile(
        rf"{_PLAIN}|{letters}(?>(?:(?:(?<=\d)[.,](?=\d)|['’](?=[^\W{_UNSPACED}])){letters})*)"
        rf"|[^\S\r\n]+(?![{extend}])"
        r"|\r\n|[\r\n]"
        rf"|{_FLAG}(?>{tail}*)"
        rf"|.(?>{tail}*)",
        re.DOTALL,
    )
    inseparable = re.compile(rf"\r\n|{_FLAG}(?>{tail}*)|[^\r\n](?>{tail}+)|[{_BEYOND}]")
    return token, inseparable


MIN_KEY_LENGTH = 8

_LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")
LIST_MARK = re.compile(
    r"^\s*(?:[#>]+\s*)?"
    r"(?:[-*+•]\s+|\(?\d{1,3}[.):]\s*|\(?[a-zA-Z][.)]\s+|[ivx]+[.)]\s+)?"
    r"(?:\*\*)?(?:(?:Step|Day|Week|Tip|Part)\s+\d+[:.)]?\s*)?"
)
_EMPHASIS = re.compile(r"\*\*|__|`")
# Each run of blanks is tried once, from its start: otherwise a long one would take quadratic time.
_SENTENCE_END = re.compile(
    r"(?:(?<!\b\d)(?<!\b\d\d)[.!?…][\"'”’)*_]{0,3}|[。！？]|\.\.)[ \t]++(?=\S)"
    r"|(?<![ \t])[ \t]{2,}+(?=\S)"
    r"|(?<![ \t])[ \t]++(?=\#{1,6}[ ]|\(?\d{1,2}[.)][ ]+(?:\*\*|[A-Z\"“])"
    r"|[-*•][ ]+(?:\*\*|[A-Z])|-{3}|\*\*[A-Z][^*\n]{1,40}(?::\*\*|\*\*:))"
)
_WORD_OR_SIGN = re.compile(r"[^\W_]+(?:[.,'’][^\W_]+)*|[^\w\s]")
