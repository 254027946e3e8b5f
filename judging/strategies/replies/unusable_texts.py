"""Find generated texts that were parsed but cannot be used, by comparing them with the item's
texts. The reading stays as it is; the outcome is missing with one of these causes.

incomplete a translation lacks a text of the item, or one of several references
echoed     it repeats, apart from white space, what it was shown: the gold answer as the
           perturbed one, the prompt as the input, or a text of ten words or more as its translation
swapped    the claim or the rationale is in the place of the answer, whatever is in its own place
language   it seems to be in another language or script than its source; for a translation: in the
           language of its source, or in another than it was made into
unrelated  too few of the perturbed answer's words are in the gold answer, though its category
           keeps the text

These checks do not apply to answers: the answer to a prompt may be in any language, and an answer
that repeats the input is a mistake that a study of responses should include. A question that is to
be reworded may be well worded already.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from rapidfuzz.distance import LCSseq

from judging.strategies import frames
from judging.strategies.replies.json_objects import normalize_key
from judging.strategies.replies.outputs import ParsedReply
from judging.strategies.schema import CLAIM, INPUT, PERTURBED, RATIONALE, TRANSLATION, Strategy
from perturbers import flags

INCOMPLETE, ECHOED, SWAPPED, LANGUAGE, UNRELATED = (
    "incomplete", "echoed", "swapped", "language", "unrelated"
)  # fmt: skip
# A claim may quote the whole gold answer if the gold answer has fewer words than this. A text with
# fewer words, such as a name or a number, may be the same in two languages.
MIN_WORDS = 10
# The least share of a perturbed answer's words that are in the gold answer, in its order. In the
# archive of study 000, 32 of the 81 answers that only state an assumption have less; the minimum of
# all others is 0.30.
MIN_KEPT_SHARE = 0.2
# In characters. Of longer texts only the beginnings are compared, since the work grows with the
# square of the length.
MAX_CHARACTERS = 100_000
_WORD = re.compile(r"\w+")
# Code stays as it is in a translation.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,200}`", re.DOTALL)
# In scripts without spaces between words each letter counts as a word: Thai to Khmer, Japanese,
# Chinese.
_UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_KEPT_WORD = re.compile(rf"[{_UNSPACED_SCRIPTS}]|[^\W{_UNSPACED_SCRIPTS}]+")


def mark_unusable(
    strategy: Strategy, reading: ParsedReply, texts: Mapping[str, Any]
) -> ParsedReply:
    """The reading of a generator's reply. If its text cannot be used for the item with these texts,
    the reading has a cause and no value."""
    found = find_cause(strategy, reading.value, texts)
    return ParsedReply(None, reading.path, found) if found else reading


def find_cause(strategy: Strategy, value: Any, texts: Mapping[str, Any]) -> str:
    """Return the cause why a generator's reply cannot be used for the item with these texts; "" if
    it can be used.

    `value` is the value of a reading. If there are several gold answers, each is correct, so it is
    enough if the reply fits one of them. But a reply that repeats any of them is an echo.
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
        if not strategy.rewords and flags.has_same_words(value[INPUT], seed):
            return ECHOED
        return LANGUAGE if flags.describe_language_change(seed, value[INPUT]) else ""
    if strategy.output == TRANSLATION:
        return _find_translation_cause(value, texts, strategy.language)
    return ""


def name_texts(value: Mapping[str, Any], texts: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """The texts of a translation by their names in the item with these texts. Those that are
    missing, empty or of another number are left out."""
    found: dict[str, str | list[str]] = {}
    for name, source in frames.list_texts(texts).items():
        parts = _each(value.get(normalize_key(name)))
        if len(parts) == len(_each(source)) and all(part.strip() for part in parts):
            found[name] = parts[0] if isinstance(source, str) else parts
    return found


def _find_translation_cause(value: Mapping[str, Any], texts: Mapping[str, Any], into: str) -> str:
    sources, parts = frames.list_texts(texts), name_texts(value, texts)
    if parts.keys() != sources.keys():
        return INCOMPLETE
    pairs = [
        (_without_code(source), _without_code(part))
        for name in sources
        for source, part in zip(_each(sources[name]), _each(parts[name]), strict=True)
    ]
    if any(
        flags.has_same_words(source, part) and _is_long(source) and not flags.is_in(into, part)
        for source, part in pairs
    ):
        return ECHOED
    found = (flags.describe_untranslated(source, part, into) for source, part in pairs)
    return LANGUAGE if any(found) else ""


def _without_code(text: str) -> str:
    return _CODE.sub(" ", text[:MAX_CHARACTERS])


def _is_long(text: str) -> bool:
    """True if a text has ten words or more, not counting numbers."""
    return sum(1 for _ in islice(filter(str.isalpha, _words(text)), MIN_WORDS)) == MIN_WORDS


def _find_perturbation_cause(strategy: Strategy, value: Mapping[str, str], gold: str) -> str:
    answer = value[PERTURBED]
    if any(_is_swapped(value[name], answer, gold) for name in (CLAIM, RATIONALE)):
        return SWAPPED
    if flags.describe_language_change(gold, answer):
        return LANGUAGE
    category = strategy.made
    if category is None or category.expected_effect == "none":
        return ""  # the task was to reword everything
    reference, said = _plain_words(gold), _plain_words(answer)
    if len(reference) < MIN_WORDS:
        return ""
    if said in (_plain_words(value[CLAIM]), _plain_words(value[RATIONALE])):
        return SWAPPED
    is_kept = _Likeness.from_words(said, reference).of_own >= MIN_KEPT_SHARE
    return UNRELATED if category.keeps_text and not is_kept else ""


def _is_swapped(part: str, answer: str, gold: str) -> bool:
    """True if another part of the reply seems to be the actual answer, judged by comparing both
    with the gold answer.

    This is the case if the part has half of the gold answer's words, in their order, and has more
    in common with the gold answer than `answer` has by both measures: as a share of the words of
    both texts together, and as a share of its own words. The first measure alone would mistake a
    claim with long quotes for an answer with much left out; the second would mistake a short
    quotation for a long answer. A part that quotes the answer is a comment on the answer. With a
    very short gold answer no decision is possible.
    """
    words = _words(part)
    # Most parts are too short; read only as many words as needed to see this.
    if sum(
        1 for _ in islice(_WORD.finditer(gold, 0, MAX_CHARACTERS), 2 * len(words) + 1)
    ) > 2 * len(words):
        return False
    reference = _words(gold)
    if len(reference) < MIN_WORDS:
        return False
    if " ".join(answer.split()) in " ".join(part.split()):
        return False
    one, other = (
        _Likeness.from_words(words, reference),
        _Likeness.from_words(_words(answer), reference),
    )
    whole = one.shared >= len(reference) / 2
    return whole and one.of_both > other.of_both and one.of_own > other.of_own


class _Likeness(NamedTuple):
    """How many words a text has in common with another, in the same order: as a number, as a share
    of the words of both together, and as a share of its own."""

    shared: float
    of_both: float
    of_own: float

    @classmethod
    def from_words(cls, words: Sequence[str], reference: Sequence[str]) -> "_Likeness":
        shared = LCSseq.similarity(words, reference)
        return cls(shared, shared / (len(words) + len(reference)), shared / max(1, len(words)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_CHARACTERS])


def _plain_words(text: str) -> list[str]:
    return _KEPT_WORD.findall(text[:MAX_CHARACTERS].casefold())


def _each(text: Any) -> list[str]:
    """Return the text, or the alternative texts, as a list."""
    if isinstance(text, str):
        return [text]
    return [str(one) for one in text or ()]
