"""Turn statements into their opposite by adding or removing a “not” after a copula."""

import re
from collections.abc import Iterator

from perturbers.changes import PerturberInput, TextChange, TextEdit
from perturbers.sentences import Sentence, is_prose, split_sentences

_COPULA = re.compile(r"(?<![\w'’])(?:is|are|was|were)(?P<not> not)?(?= [a-z\"“0-9])")
# Conditions and questions are not statements. With “no” or “never”, the result would be a double
# negation.
_NO_STATEMENT = re.compile(r"(?i)\b(?:if|whether|when|while|unless|because|although|as|than)\b")
_NEGATED = re.compile(r"(?i) (?:no|never|none|neither|nor|n't|only|either|to|also)\b")


def find_statements(source: PerturberInput) -> Iterator[TextChange]:
    """Yield one change per statement, at its first copula."""
    for sentence in split_sentences(source.gold):
        found = _find_copula(source.gold, sentence)
        if found and is_prose(source.gold, *found.span()):
            yield _negate(source.gold, sentence, found)


def _find_copula(text: str, sentence: Sentence) -> re.Match[str] | None:
    found = _COPULA.search(text, sentence.start, sentence.end)
    if found is None or sentence.of(text).rstrip("\"'”’)*_").endswith("?"):
        return None
    before = text[sentence.start : found.start()]
    stops = _NO_STATEMENT.search(before) or _NEGATED.match(text, found.end())
    return None if stops else found


def _negate(text: str, sentence: Sentence, found: re.Match[str]) -> TextChange:
    copula = found[0].removesuffix(" not")
    if found["not"]:
        edit = TextEdit(found.end() - len(" not"), found.end(), "")
        claim = f"“{found[0]}” is changed to “{copula}”"
    else:
        edit = TextEdit(found.end(), found.end(), " not")
        claim = f"“{copula}” is changed to “{copula} not”"
    return TextChange((edit,), f"{claim} in “{shorten_sentence(sentence.of(text))}”.")


def shorten_sentence(sentence: str, words: int = 8) -> str:
    """Return the start of a sentence, so that a claim can refer to the sentence."""
    said = sentence.split()
    return " ".join(said[:words]) + (" …" if len(said) > words else "")
