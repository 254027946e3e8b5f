"""What a page sends of an item: which state of it the page showed, and what the person says.

The key of a submission: which page it came from, signed, so that nobody can make one up.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from django.core import signing

from annotation.errors import Refused

SALT = "queue.offer"


@dataclass(frozen=True)
class SubmissionToken:
    """What a page showed to whom: a place in the queue and the number of a revision.

    `blind` if it asked what the person sees before the diff, claim and rationale are shown.
    """

    slot_id: int
    member_id: int
    revision: int
    blind: bool = False


def issue_token(ticket: SubmissionToken) -> str:
    """A new key; no two are the same, so each page has a key of its own."""
    parts = [*astuple(ticket), secrets.token_hex(8)]
    return signing.dumps(parts, salt=SALT)


def read_token(key: str) -> SubmissionToken:
    """What the key was made for. Raises `Refused`."""
    try:
        *parts, _ = signing.loads(key, salt=SALT)
        return SubmissionToken(*parts)
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise Refused("This page's key is not valid. Reload the page.") from error


def digest_token(key: str) -> str:
    """SHA-256 of a key: what is stored of it."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class ShownItem:
    """What was on the page; `key` is the signed one that the page was made with."""

    key: str
    item_key: str
    revision: int


@dataclass(frozen=True)
class SubmittedAnswers:
    """Answers by field as they were given, a comment, and how many seconds it took to answer."""

    answers: Mapping[str, object]
    comment: str = ""
    seconds: float | None = None
