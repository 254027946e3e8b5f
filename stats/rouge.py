"""ROUGE-L (Lin 2004): the longest common subsequence of the words of two texts."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from rapidfuzz.distance import LCSseq

from stats.unicode_forms import normalise

Metric = Callable[[str, str], float]

_ASCII_WORD = re.compile(r"[a-z0-9]+")


def rouge_l(reference: str, candidate: str) -> float:
    """ROUGE-L F-measure in [0, 1] on lower-cased runs of a-z and 0-9, without stemming.

    Equals the result of the `rouge-score` package. All other characters separate words, so a text
    in another script has no words. The score is 0 if either text has no words.
    """
    return _f_measure(_ascii_words(reference), _ascii_words(candidate))


def rouge_l_unicode(reference: str, candidate: str) -> float:
    """ROUGE-L F-measure in [0, 1] on the words of any script.

    `unicode_words` defines the words. 0 if either text has no words. In scripts without spaces
    between words, such as Chinese and Thai, a word reaches from one mark or space to the next.
    """
    return _f_measure(unicode_words(reference), unicode_words(candidate))


METRICS: dict[str, Metric] = {"rouge-l": rouge_l, "rouge-l-unicode": rouge_l_unicode}


def best_score(references: Sequence[str], candidate: str, metric: Metric) -> float:
    """The candidate's highest score against any of the references.

    Raises ValueError without references.
    """
    if not references:
        raise ValueError("a score needs at least one reference")
    return max(metric(reference, candidate) for reference in references)


def _ascii_words(text: str) -> list[str]:
    return _ASCII_WORD.findall(text.lower())


def unicode_words(text: str) -> list[str]:
    """The words of a text in any script, composed (NFC) and lower-cased, in order.

    A word starts with a letter, a digit or an underscore and continues over these and over
    combining marks and the two joiners (Unicode Technical Standard 18, annex C). Python's word
    characters lack the marks: splitting at everything else would cut words of Devanagari, Tamil or
    pointed Arabic at their vowel signs, which have no composed letters.
    """
    composed = normalise("NFC", text).lower()
    marks = (one for one in set(composed) if unicodedata.category(one).startswith("M"))
    return _word_pattern("".join(sorted(marks))).findall(composed)


@lru_cache(maxsize=256)
def _word_pattern(marks: str) -> re.Pattern[str]:
    """The pattern of a word in a text with these marks; `re` has no class for all marks."""
    return re.compile(rf"\w[\w{re.escape(marks)}\u200c\u200d]*")


def _f_measure(reference: list[str], candidate: list[str]) -> float:
    if not reference or not candidate:
        return 0.0
    # Numbers instead of words: rapidfuzz compares words by hash, and two words may share a hash.
    ids: dict[str, int] = {}
    left = [ids.setdefault(word, len(ids)) for word in reference]
    right = [ids.setdefault(word, len(ids)) for word in candidate]
    common = LCSseq.similarity(left, right)
    return 2 * common / (len(left) + len(right))
