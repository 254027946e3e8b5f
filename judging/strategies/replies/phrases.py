"""Parse from prose whether a reply says that the response has an error (study 001).

There are two parsers for the same replies. `find_published_verdict` reproduces the study's figures;
`find_last_statement` is our own and stricter.
"""

import re
from typing import NamedTuple

from judging.strategies.replies.parsing import MarkedPhrase

ERROR, NO_ERROR = "error", "no_error"

# Appendix E of study 001, with a third phrase for "no error" that the published verdicts use but
# the text does not list.
_SAYS_NO_ERROR = ("contains no error", "response is valid", "response is correct")
_SAYS_ERROR = ("contains an error", "response is not valid")

_SENTENCE_END = re.compile(r"(?<=[.!?])\s{1,99}|\n")
# A statement after one of these words does not count.
_HEDGE = re.compile(r"\b(?:if|whether|unless|would|could|might|may|should)\b", re.IGNORECASE)
_ADVERB = (
    r"(?:(?:itself|thus|therefore|hence|also|indeed|clearly|overall|in[ ]fact|still|actually)"
    r"\s{1,9}){0,3}"
)
_MANY = r"(?:an?|some|several|many|multiple|numerous|two|three|at\sleast\sone|one\sor\smore)"
_WHOLLY = r"(?:(?:fully|entirely|completely|strictly)\s{1,9})?"
_CLOSING = r"[\"'*_`)\]]{0,4}\s{0,9}"
_ENDS = rf"(?={_CLOSING}(?:\Z|[.,;:!?(\n–—]|(?:and|since|because|as|overall)\b))"
_OTHER = (
    r"\b(?:not|cannot|can't|n't)\s{1,9}(?:\w{1,20}\s{1,9}){0,4}that\s{1,9}(?:the\s{1,9})?"
    r"(?:model(?:'s)?\s{1,9})?|\b(?:corrected|revised|improved|modified)\s{1,9}(?:model\s{1,9})?"
)
_STATEMENT = re.compile(
    rf"(?P<other>{_OTHER})?\bresponse[\"'*_`]{{0,4}}\s{{1,9}}{_ADVERB}(?:"
    rf"(?P<has>(?:contains|has)\s{{1,9}}{_ADVERB}(?:{_MANY}\s{{1,9}})?"
    r"(?:(?!no\b|any\b)[\w-]{1,30}\s{1,9}){0,2}errors?\b)"
    r"|(?P<free>(?:contains|has)\s{1,9}no\s{1,9}errors?\b"
    r"|does(?:\s{1,9}not|n't)\s{1,9}(?:contain|have)\s{1,9}(?:an|any)\s{1,9}errors?\b"
    r"|is\s{1,9}(?:error[- ]free|free\s{1,9}of\s{1,9}errors)\b)"
    rf"|(?P<invalid>(?:is\s{{1,9}}not|isn't)\s{{1,9}}{_WHOLLY}(?:valid|correct)\b"
    rf"(?!{_CLOSING}in\b)|is\s{{1,9}}{_ADVERB}(?:invalid|incorrect)\b(?!{_CLOSING}in\b))"
    rf"|(?P<valid>is\s{{1,9}}{_ADVERB}{_WHOLLY}(?:valid|correct)\b{_ENDS})"
    rf"|(?P<partly>is\s{{1,9}}(?:not\s{{1,9}})?{_ADVERB}{_WHOLLY}(?:in)?(?:valid|correct)\b"
    r"|(?:contains|has)\s{1,9}no\s{1,9}(?:[\w-]{1,30}\s{1,9}){1,2}errors?\b)"
    r")",
    re.IGNORECASE,
)
_GROUP_MEANINGS = {
    "has": ERROR,
    "invalid": ERROR,
    "free": NO_ERROR,
    "valid": NO_ERROR,
    "partly": "",
}


def find_published_verdict(text: str) -> str | None:
    """The verdict as study 001 parsed it (appendix E); None if the study found the reply invalid.

    A phrase counts anywhere and with any subject. If phrases for "error" and "no error" both occur,
    "no error" wins. The search is case-sensitive. This reproduces all 8,400 published verdicts on
    the MathGen responses of GPT-4, with the simple prompts and with evaluation steps.
    """
    if any(phrase in text for phrase in _SAYS_NO_ERROR):
        return NO_ERROR
    return ERROR if any(phrase in text for phrase in _SAYS_ERROR) else None


class Statement(NamedTuple):
    """The statement of a sentence about the response, with its position; "" if it says both that
    there is an error and that there is none, or neither clearly.
    """

    verdict: str
    start: int
    end: int


def find_last_statement(text: str) -> Statement | None:
    """Find the last sentence which says that the response has an error, or that it has none.

    Only "response" as the subject counts, in either wording of the study and near variants ("does
    not contain any errors", "is invalid"). A statement does not count after "if", "whether",
    "would" and the like, if it is denied ("not clear that the response contains ..."), or if it is
    about another response ("the corrected response"). A sentence that says both, or limits its
    statement ("is valid except", "no major errors"), has the verdict "".
    """
    found = None
    for start, end in _sentences(text):
        said = _statements(text, start, end)
        if said:
            found = Statement(said.pop() if len(said) == 1 else "", start, end)
    return found


def find_conclusion(text: str, start: int) -> MarkedPhrase | None:
    """The last statement as a mark whose phrase is "error", "no_error", or "" (see parsing)."""
    found = find_last_statement(text[start:])
    return MarkedPhrase(found.verdict, start + found.start, start + found.end) if found else None


def _sentences(text: str) -> list[tuple[int, int]]:
    ends = [(gap.start(), gap.end()) for gap in _SENTENCE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    return list(zip(starts, [*(start for start, _ in ends), len(text)], strict=True))


def _statements(text: str, start: int, end: int) -> set[str]:
    hedge = _HEDGE.search(text, start, end)
    until = hedge.start() if hedge else end
    found = (one for one in _STATEMENT.finditer(text, start, end) if one.start() < until)
    return {_GROUP_MEANINGS[one.lastgroup or ""] for one in found if not one["other"]}
