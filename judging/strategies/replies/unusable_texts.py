"""Replies of generators that were read, and whose texts are still of no use: what only the texts of
the item tell. The reading stays as it is; the outcome is missing for one of these causes.

echoed     it gives back, but for white space, what it was shown: the gold answer as the perturbed
           one, or the prompt as the input
swapped    the claim or the rationale stands in the answer's place, whatever stands in theirs
language   it reads as another language or script than what it was made from
unrelated  of the perturbed answer's words too few are the gold answer's, though its category keeps
           the text

An answer has none of them: one to a prompt may be in any language, and to give back an input is a
mistake that a study of responses wants to see.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from rapidfuzz.distance import LCSseq

from annotation.items import taxonomy
from judging.strategies.replies.outputs import ParsedReply
from judging.strategies.schema import CLAIM, INPUT, PERTURBED, RATIONALE, Strategy
from perturbers import flags

ECHOED, SWAPPED, LANGUAGE, UNRELATED = "echoed", "swapped", "language", "unrelated"
# A claim may well quote all of a gold answer that has fewer words.
MIN_WORDS = 10
# So much of a perturbed answer's words stands in the gold answer, in its order. In the archive of
# study 000 those with an assumption alone have less, 32 of 81; the least of all others is 0.30.
MIN_KEPT_SHARE = 0.2
# Characters. Longer texts are held against each other by their beginnings: the work grows with the
# square of their length.
MAX_CHARACTERS = 100_000
_WORD = re.compile(r"\w+")
# Of scripts without spaces between words each letter is one: of Thai to Khmer, Japanese, Chinese.
_UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_KEPT_WORD = re.compile(rf"[{_UNSPACED_SCRIPTS}]|[^\W{_UNSPACED_SCRIPTS}]+")


def mark_unusable(
    strategy: Strategy, reading: ParsedReply, texts: Mapping[str, Any]
) -> ParsedReply:
    """The reading of a generator's reply, without a value and with the cause if it is unfit for
    the item whose texts these are."""
    found = find_cause(strategy, reading.value, texts)
    return ParsedReply(None, reading.path, found) if found else reading


def find_cause(strategy: Strategy, value: Any, texts: Mapping[str, Any]) -> str:
    """Why what a generator's reply says is unfit for the item with these texts; "" if it is not.

    `value` is that of a reading. Of several gold answers each is right, so that one to which the
    reply fits is enough, but to give back any is an echo.
    """
    if not isinstance(value, Mapping):
        return ""
    if strategy.output == "perturbation":
        golds = _each(texts.get("gold"))
        if any(flags.has_same_words(value[PERTURBED], gold) for gold in golds):
            return ECHOED
        causes = [_find_perturbation_cause(strategy, value, gold) for gold in golds]
        return "" if "" in causes else next(iter(causes), "")
    if strategy.output == "input":
        [seed, *_] = [*_each(texts.get("prompt", texts.get("input"))), ""]
        if flags.has_same_words(value[INPUT], seed):
            return ECHOED
        return LANGUAGE if flags.describe_language_change(seed, value[INPUT]) else ""
    return ""


def _find_perturbation_cause(strategy: Strategy, value: Mapping[str, str], gold: str) -> str:
    answer = value[PERTURBED]
    if any(_is_swapped(value[name], answer, gold) for name in (CLAIM, RATIONALE)):
        return SWAPPED
    if flags.describe_language_change(gold, answer):
        return LANGUAGE
    category = taxonomy.load().find(strategy.category)
    if category is None or category.expected_effect == "none":
        return ""  # another wording of all is what was asked for
    reference, said = _plain_words(gold), _plain_words(answer)
    if len(reference) < MIN_WORDS:
        return ""
    if said in (_plain_words(value[CLAIM]), _plain_words(value[RATIONALE])):
        return SWAPPED
    is_kept = _Likeness.of(said, reference).of_own >= MIN_KEPT_SHARE
    return UNRELATED if category.keeps_text and not is_kept else ""


def _is_swapped(part: str, answer: str, gold: str) -> bool:
    """Whether another part is the answer, rather than what is called so, beside the gold answer.

    It is if it has half of the gold answer's words, in their order, and shares more with it by both
    measures: of the words of the two together, and of its own words alone. The first by itself
    would take a claim that quotes at length for an answer of which much was left out, the second a
    short quotation for a long answer. A part that quotes the answer speaks of it, and of a very
    short gold answer there is no telling.
    """
    words = _words(part)
    # Most parts are too short, and then no more words are looked at than tell so.
    if sum(
        1 for _ in islice(_WORD.finditer(gold, 0, MAX_CHARACTERS), 2 * len(words) + 1)
    ) > 2 * len(words):
        return False
    reference = _words(gold)
    if len(reference) < MIN_WORDS:
        return False
    if " ".join(answer.split()) in " ".join(part.split()):
        return False
    one, other = _Likeness.of(words, reference), _Likeness.of(_words(answer), reference)
    whole = one.shared >= len(reference) / 2
    return whole and one.of_both > other.of_both and one.of_own > other.of_own


class _Likeness(NamedTuple):
    """How many words a text shares with another, in one order: as a number, as a share of the words
    of both together, and as one of its own."""

    shared: float
    of_both: float
    of_own: float

    @classmethod
    def of(cls, words: Sequence[str], reference: Sequence[str]) -> "_Likeness":
        shared = LCSseq.similarity(words, reference)
        return cls(shared, shared / (len(words) + len(reference)), shared / max(1, len(words)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_CHARACTERS])


def _plain_words(text: str) -> list[str]:
    return _KEPT_WORD.findall(text[:MAX_CHARACTERS].casefold())


def _each(text: Any) -> list[str]:
    """A text, or several that are right alike."""
    if isinstance(text, str):
        return [text]
    return [str(one) for one in text or ()]
