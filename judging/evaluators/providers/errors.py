"""What can go wrong between us and an evaluator, and what to do about it.

EvaluatorError
├── Transient            try again, not before `retry_after` seconds if it is set
│   ├── RateLimited      429
│   ├── ServerTrouble    5xx, 408, 409, 425, or nobody answers at the address
│   ├── TimedOut         the call's deadline passed
│   └── BrokenReply      cut half-way, not JSON, too long, or not of the protocol's shape
├── Permanent            this request will never succeed, others may
│   └── Rejected         400, 404, 413, 422 and any other status without a rule of its own
└── Halting              no request will succeed until a person acts: pause the run
    ├── Unauthorised     401, 403
    ├── QuotaExhausted   402, or 429 with a code that says the money is gone
    ├── MissingKey       the environment variable is absent, empty, or not one that may be sent
    └── ForbiddenAddress the address is one that evaluators must not be called at

`cause` is the word under which a request that is given up is counted. The text of an error is
fit for a screen: it never holds a key, and what the provider said is cut short.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from urllib.parse import quote

MAX_MESSAGE_LENGTH = 300
MIN_KEY_LENGTH = 16
MIN_KEY_PREFIX = 8
_MAX_READ_LENGTH = 20_000
_KEY_MASK = "[key]"
_CREDENTIAL = re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+|\bsk-[\w-]{8,}")


class EvaluatorError(Exception):
    """Any failure to get an answer; `retry_after` is None unless the provider named a wait."""

    cause = "unavailable"
    retry_after: float | None = None


class Transient(EvaluatorError):
    """A failure that may pass; `retry_after` in seconds when the provider asked for a wait."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(Transient):
    cause = "rate_limited"


class ServerError(Transient):
    cause = "unavailable"


class TimedOut(Transient):
    cause = "timed_out"


class BrokenReply(Transient):
    cause = "unavailable"


class Permanent(EvaluatorError):
    """This request is refused for good; trying it again would only repeat the refusal."""


class Rejected(Permanent):
    """`status` is the provider's, None where nobody was asked."""

    cause = "rejected"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Halting(EvaluatorError):
    """A person has to act first; the request itself is not at fault and is not used up."""


class Unauthorised(Halting):
    cause = "unauthorised"


class QuotaExhausted(Halting):
    cause = "quota_exhausted"


class MissingKey(Halting):
    cause = "missing_key"


class ForbiddenAddress(Halting):
    cause = "forbidden_address"


def format_status(status: int) -> str:
    """How the words about a status begin, on screens and where they are kept."""
    return f"The provider answered {status}: "


def redact_message(words: str, secrets: Iterable[str] = ()) -> str:
    """`words` of a provider on one line, without secrets, at most LONGEST_WORDS characters.

    Hides every given secret, its beginning where the words end with it, and whatever looks like
    a credential, before it cuts, so that no part of a key is left at the end.
    """
    for secret in secrets:
        words = _mask_secret(secret, words)
    words = " ".join(_CREDENTIAL.sub(_KEY_MASK, words[:_MAX_READ_LENGTH]).split())
    return words if len(words) <= MAX_MESSAGE_LENGTH else words[: MAX_MESSAGE_LENGTH - 1] + "…"


def redact_bytes(secret: str, content: bytes) -> bytes:
    """Bytes of a provider that may be kept: a key that it repeats is hidden in them.

    So is the beginning of one, SHORTEST_BEGINNING characters or more, with which a text ends
    that was cut. A word too short to be a secret (local servers are given one like EMPTY) stays,
    since replies may well use it.
    """
    if len(secret) < MIN_KEY_LENGTH:
        return content
    # One character for each byte, whatever they are.
    return _mask_secret(secret, content.decode("latin-1")).encode("latin-1")


def _mask_secret(secret: str, text: str) -> str:
    for spelling in _spellings(secret):
        text = _mask_prefix(spelling, text.replace(spelling, _KEY_MASK))
    return text


def _mask_prefix(secret: str, text: str) -> str:
    """The text without what it has of a secret at its end, or at the end of a string in JSON."""
    found = text.find(secret[:MIN_KEY_PREFIX]) if len(secret) > MIN_KEY_PREFIX else -1
    while found >= 0:
        pairs = zip(secret, text[found : found + len(secret)], strict=False)
        end = found + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if text[end : end + 1] in {"", '"'}:
            text, end = text[:found] + _KEY_MASK + text[end:], found
        found = text.find(secret[:MIN_KEY_PREFIX], end)
    return text


def _spellings(secret: str) -> list[str]:
    """A secret as it is, inside an address, and inside JSON that escapes slashes."""
    forms = [secret, quote(secret, safe=""), secret.replace("/", "\\/")]
    return [form for form in forms if form]
