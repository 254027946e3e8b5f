"""The data that a page sends about an item: the state that the page showed, and the person's
answers.

The key of a submission is a signed token of the page that it came from, so nobody can forge a key.
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
    """What a page showed (a slot and the number of a revision), and the member who saw it.

    `blind` is True if the page asked its questions before it showed diff, claim and rationale.
    """

    slot_id: int
    member_id: int
    revision: int
    blind: bool = False


def issue_token(ticket: SubmissionToken) -> str:
    """Create a new key; every page gets a different key."""
    parts = [*astuple(ticket), secrets.token_hex(8)]
    return signing.dumps(parts, salt=SALT)


def read_token(key: str) -> SubmissionToken:
    """Read the content of the key. Raises `Refused` if the key is not valid."""
    try:
        *parts, _ = signing.loads(key, salt=SALT)
        return SubmissionToken(*parts)
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise Refused("This page's key is not valid. Reload the page.") from error


def digest_token(key: str) -> str:
    """The SHA-256 digest of a key, which is stored instead of the key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class ShownItem:
    """What the page showed; `key` is the signed token of the page."""

    key: str
    item_key: str
    revision: int


@dataclass(frozen=True)
class SubmittedAnswers:
    """Answers by field as sent, a comment, and the time taken in seconds (None if unknown)."""

    answers: Mapping[str, object]
    comment: str = ""
    seconds: float | None = None
