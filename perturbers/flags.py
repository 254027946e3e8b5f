"""Rules that flag possible faults of a perturbed answer, and give the reason in words.

A flag is not a verdict. People review flagged items, or a lead decides by the rule (in study 000,
section 3.4, every perturbation is vetted).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import OSA, Indel, Postfix, Prefix

# The largest share of the words of both answers together that may occur in only one of the answers.
CHANGE_LIMIT = 0.6
# Aligning takes time and memory in proportion to the product of the numbers of differing words. If
# this product is larger, the words are compared without their positions.
COMPARISON_LIMIT = 100_000_000
# The largest edit distance between a word and its misspelling, and the length of the longest word.
_FAR, _LONGEST_WORD = 3, 100
# This many characters are enough to detect the language of a text.
LANGUAGE_CHARACTERS = 1500
_DIGIT = re.compile(r"\d")
_NUMBER_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    sixty seventy eighty ninety hundred thousand million billion half third quarter twice double
    first second third fourth fifth sixth seventh eighth ninth tenth single dozen hundreds thousands
    """
_TOKEN = re.compile(r"\w+|[^\w\s]")
_SENTENCE_END = re.compile(r"[.!?…:;)\]}\"'”’»*_`|。！？。।-]\s*\Z")


@dataclass(frozen=True, slots=True)
class Flag:
    """The name of a rule, and what the rule found."""

    rule: str
    reason: str


class TextPair(NamedTuple):
    """Gold and perturbed answer with their differences: removed words and inserted words."""

    gold: str
    response: str
    out: tuple[str, ...]
    new: tuple[str, ...]
    share: float


def compare_texts(gold: str, response: str) -> TextPair:
    """Compare two texts by words and punctuation. `share` (0 to 1) is the share of all words that
    are in only one text."""
    before, after = _TOKEN.findall(gold), _TOKEN.findall(response)
    out, new = _diff_words(before, after)
    share = (len(out) + len(new)) / max(1, len(before) + len(after))
    return TextPair(gold, response, tuple(out), tuple(new), share)


def _diff_words(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each text that the other text lacks at that position, in order. For very
    long texts, return the words that the other text lacks or has less often."""
    start = _common_prefix(before, after)
    end = _common_prefix(before[start:][::-1], after[start:][::-1])
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if len(before) * len(after) > COMPARISON_LIMIT:
        return _subtract_words(before, Counter(after)), _subtract_words(after, Counter(before))
    out: list[str] = []
    new: list[str] = []
    for one in Indel.opcodes(before, after):
        if one.tag != "equal":
            out += before[one.src_start : one.src_end]
            new += after[one.dest_start : one.dest_end]
    return out, new


def _subtract_words(words: Iterable[str], there: Counter[str]) -> list[str]:
    left: list[str] = []
    for word in words:
        if there[word]:
            there[word] -= 1
        else:
            left.append(word)
    return left


def has_same_words(one: str, other: str) -> bool:
    """True if two texts have the same words, regardless of white space."""
    alike = Prefix.similarity(one, other)
    first = one[alike : alike + 1], other[alike : alike + 1]
    if all(each and not each.isspace() for each in first):
        return False  # two words differ; this finds nearly every change without splitting the text
    return one.split() == other.split()


def find_flags(
    category: str,
    gold: str,
    response: str,
    *,
    siblings: Iterable[str] = (),
    bound: float = CHANGE_LIMIT,
) -> list[Flag]:
    """Find the flags for a perturbed answer of a category (given by its slug); [] if there are
    none.

    `siblings` are the other perturbed answers of the same gold answer.
    """
    if not response.strip():
        return [Flag("empty", "The answer is empty.")]
    if response == gold:
        return [Flag("identical", "It is the same as the gold answer.")]
    if has_same_words(response, gold):
        return [Flag("white-space-only", "Only white space differs from the gold answer.")]
    made = compare_texts(gold, response)
    return [*_general_flags(made, siblings, bound), *_category_flags(category, made)]


def _general_flags(made: TextPair, siblings: Iterable[str], bound: float) -> Iterator[Flag]:
    if any(has_same_words(made.response, one) for one in siblings):
        yield Flag("duplicate", "Another perturbed answer of this gold answer has the same text.")
    if reason := describe_language_change(made.gold, made.response):
        yield Flag("language", reason)
    if made.share > bound:
        yield Flag("bound", f"{made.share:.0%} of the words differ; the limit is {bound:.0%}.")
    if _SENTENCE_END.search(made.gold) and not _SENTENCE_END.search(made.response):
        yield Flag("truncated", "It ends in the middle of a sentence; the gold answer does not.")


def _category_flags(category: str, made: TextPair) -> Iterator[Flag]:
    rule = RULES.get(category)
    reason = rule(made) if rule else ""
    if reason:
        yield Flag("claim", reason)


def _check_numbers(made: TextPair) -> str:
    out, new = list(_find_numbers(made.out)), list(_find_numbers(made.new))
    return "" if out != new else "No number differs."


def _find_numbers(words: Iterable[str]) -> Iterator[str]:
    words_for_them = frozenset(_NUMBER_WORDS.split())
    return (one for one in words if _DIGIT.search(one) or one.lower() in words_for_them)


def _check_calculation(made: TextPair) -> str:
    """Check numbers only if there is a “=”, since the steps of a riddle are words."""
    return _check_numbers(made) if "=" in made.gold else ""


def _check_final_answer(made: TextPair) -> str:
    """Check numbers only if the last line has a number, since the answer to a riddle is a word."""
    last = made.gold.rstrip().rsplit("\n", 1)[-1]
    if _DIGIT.search(last) and (reason := _check_numbers(made)):
        return reason
    shared = _common_prefix(made.gold, made.response)
    return "" if shared >= len(made.gold) / 2 else "The solution differs before its last part."


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the characters, or words, that two texts have in common at the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _check_shorter(made: TextPair) -> str:
    out, new = _words(made.out), _words(made.new)
    return "" if len(out) > 2 * len(new) else "More was added than a removal needs."


def _check_longer(made: TextPair) -> str:
    out, new = _words(made.out), _words(made.new)
    return "" if len(new) > 2 * len(out) else "More was removed than an addition needs."


def _check_spelling(made: TextPair) -> str:
    out, new = _words(made.out), _words(made.new)
    far = [
        (a[:_LONGEST_WORD], b[:_LONGEST_WORD])
        for a, b in zip(out, new, strict=False)
        if not _is_near(a, b)
    ]
    if len(out) != len(new):
        return "Words were added or removed, not only misspelt."
    return f"“{far[0][1]}” is not a misspelling of “{far[0][0]}”." if far else ""


def _is_near(word: str, other: str) -> bool:
    longest = max(len(word), len(other))
    return longest <= _LONGEST_WORD and OSA.distance(word, other) <= _FAR


def _check_order(made: TextPair) -> str:
    out, new = Counter(_words(made.out)), Counter(_words(made.new))
    odd = ((out - new) + (new - out)).total()
    return (
        ""
        if odd <= max(6, (out.total() + new.total()) / 4)
        else "Words changed, not only their order."
    )


def _check_same_words(made: TextPair) -> str:
    out, new = Counter(_words(made.out)), Counter(_words(made.new))
    return "" if out == new else "Words changed, not only the layout."


RULES: dict[str, Callable[[TextPair], str]] = {
    "number-errors": _check_numbers,
    "copying-numbers": _check_numbers,
    "calculations": _check_calculation,
    "final-errors": _check_final_answer,
    "remove-fact": _check_shorter,
    "do-less": _check_shorter,
    "do-more": _check_longer,
    "spelling": _check_spelling,
    "chronology": _check_order,
    "sequence-errors": _check_order,
    "formatting": _check_same_words,
}


def _words(tokens: Iterable[str]) -> list[str]:
    return [one for one in tokens if one[0].isalpha()]


def describe_language_change(gold: str, response: str) -> str:
    """Say why a text seems to be in another language or script than its original. Return "" if it
    does not seem so, or if one of the two texts is too short to tell.

    Two texts are in the same language if three in four words of the text are also in the original,
    or if both start and end alike with little in between.
    """
    if _shares_text(gold, response) or _shares_words(
        gold[:LANGUAGE_CHARACTERS], response[:LANGUAGE_CHARACTERS]
    ):
        return ""
    for tell in (_detect_script, _detect_language):
        before, after = tell(gold), tell(response)
        if before and after and before != after:
            return f"It seems to be in {after}, the gold answer in {before}."
    return ""


def _shares_text(gold: str, response: str) -> bool:
    # A single change leaves everything before and after it unchanged, which is quick to check.
    shared = Prefix.similarity(gold, response) + Postfix.similarity(gold, response)
    longest = max(len(gold), len(response))
    return longest - shared < min(LANGUAGE_CHARACTERS, longest) / 10


def _shares_words(gold: str, response: str) -> bool:
    # Nearly every reply keeps most of its gold answer. This check takes a tenth of the time of the
    # others.
    words, known = list(filter(str.isalpha, response.split())), set(gold.split())
    return 0 < len(words) * 3 <= sum(map(known.__contains__, words)) * 4


def describe_untranslated(source: str, text: str, language: str) -> str:
    """Say why a text seems not to be translated into a language, given by its English name. Return
    "" if it does not seem so, or if that cannot be told.

    It can be told of a text in the language of its source, or in any other than a `language` whose
    function words are known here. Of two languages in another script nothing can be told.
    """
    found = _tell_language(text)
    if not found or is_in(language, text):
        return ""
    is_known = language.casefold() in map(str.casefold, _SMALL_WORDS)
    is_same = found in _SMALL_WORDS and found == _tell_language(source)
    return f"It seems to be in {found}, not in {language}." if is_known or is_same else ""


def is_in(language: str, text: str) -> bool:
    """True if a text can be told to be in this language, given by its English name."""
    return _tell_language(text).casefold() == language.casefold()


def _tell_language(text: str) -> str:
    """Return the script of a text if that is not Latin, else its language; "" if neither can be
    told."""
    script = _detect_script(text)
    return script if script not in ("", "Latin script") else _detect_language(text)


def lacks_numbers(source: str, text: str) -> bool:
    """True if a text lacks a digit of its source. Their order and grouping may differ, and the text
    may have more digits, since a number may be a word in one of the two."""
    return bool(_count_digits(source) - _count_digits(text))


def _count_digits(text: str) -> Counter[int]:
    """Count the digits in any script, each as its value."""
    return Counter(unicodedata.digit(one) for one in _DIGIT.findall(text))


# Function words that are frequent in the language and rare in most others.
_SMALL_WORDS = {
    "English": "the and of to is that with for was are this it not be from",
    "German": "der die und das ist nicht mit ein eine den von zu auf wird sich",
    "French": "le les et des est une dans pour que qui pas du sur au avec",
    "Spanish": "el los y las una por con para del es se lo como pero su",
    "Italian": "il di che è per gli della non sono una con nel alla anche più",
    "Portuguese": "o os e das uma não com para do é que em são mais como",
    "Dutch": "het een van en niet dat zijn met voor op wordt ook aan bij naar",
}
_LANGUAGE_OF = {
    word: [name for name, words in _SMALL_WORDS.items() if word in words.split()]
    for words in _SMALL_WORDS.values()
    for word in words.split()
}


def _detect_script(text: str) -> str:
    """Return the script of most letters; "" if there are too few letters."""
    scripts = Counter[str]()
    # A text has few distinct letters, and each occurs many times.
    for letter, times in Counter(text[:LANGUAGE_CHARACTERS]).items():
        if letter.isalpha():
            scripts[unicodedata.name(letter, "?").split()[0]] += times
    return "" if scripts.total() < 40 else f"{scripts.most_common(1)[0][0].capitalize()} script"


def _detect_language(text: str) -> str:
    """Return the language with the most function words; "" if there are too few."""
    words = re.findall(r"\w+", text[:LANGUAGE_CHARACTERS].lower())
    found = Counter[str]()
    for word, times in Counter(word for word in words if word in _LANGUAGE_OF).items():
        found.update(dict.fromkeys(_LANGUAGE_OF[word], times))
    best, most = max(found.items(), key=lambda one: one[1], default=("", 0))
    return best if most >= max(5, len(words) / 20) else ""
