"""Errors of calls to evaluators, and what to do about them.

EvaluatorError
├── Transient            try again, not before `retry_after` seconds if it is set
│   ├── RateLimited      429
│   ├── ServerError      5xx, 408, 409, 425, or nothing answers at the address
│   ├── TimedOut         the call's timeout passed
│   └── BrokenReply      cut off, not JSON, too long, or not in the protocol's format
├── Permanent            this request will never succeed, others may
│   └── Rejected         400, 404, 413, 422 and any other status without a rule of its own
└── Halting              no request will succeed until a person acts: pause the run
    ├── Unauthorised     401, 403
    ├── QuotaExhausted   402, or 429 with a code for an exhausted quota
    ├── MissingKey       the environment variable is unset, empty, or not allowed
    └── ForbiddenAddress the address must not be called

`cause` is the name under which a failed request is counted (strategies/replies/causes.py); it also
decides how often the request is tried (evaluators/retries.py). The message of an error can be shown
to users: it never contains a key, and the provider's message is shortened.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

# Error codes which say, together with the status 429, that the quota is used up.
QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "insufficient_balance",
        "enforced_spend_limit_reached",
    }
)
MAX_MESSAGE_LENGTH = 300
MIN_KEY_LENGTH = 16
MIN_KEY_PREFIX = 8
_MAX_READ_LENGTH = 20_000
_KEY_MASK = "[key]"
_CREDENTIAL = re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+|\bsk-[\w-]{8,}")


class EvaluatorError(Exception):
    """Any failure to get an answer; `retry_after` is None unless the provider asked for a pause.
    `may_cost` is True if the provider may have answered all the same, and charge for it."""

    cause = "unavailable"
    retry_after: float | None = None
    may_cost = False


class Transient(EvaluatorError):
    """A temporary failure; `retry_after` is in seconds if the provider asked for a pause."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(Transient):
    cause = "rate_limited"


class ServerError(Transient):
    cause = "unavailable"


class GatewayTimedOut(ServerError):
    """A server between here and the evaluator waited no longer for its answer."""

    may_cost = True


class TimedOut(Transient):
    cause = "timed_out"
    may_cost = True


class BrokenReply(Transient):
    cause = "unavailable"
    may_cost = True


class Permanent(EvaluatorError):
    """The request is refused permanently; sending it again would only repeat the refusal."""


class Rejected(Permanent):
    """The request was rejected. `status` is the HTTP status of the provider's response, None if no
    provider was called.
    """

    cause = "rejected"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Halting(EvaluatorError):
    """A person must act before any request can succeed. The request itself is fine, and its attempt
    is not counted.
    """


class Unauthorised(Halting):
    cause = "unauthorised"


class QuotaExhausted(Halting):
    cause = "quota_exhausted"


class MissingKey(Halting):
    cause = "missing_key"


class ForbiddenAddress(Halting):
    cause = "forbidden_address"


def error_of_status(
    status: int, code: str, message: str, retry_after: float | None = None
) -> EvaluatorError:
    """Return the error for a status of 400 or more, or for any other status without a usable reply;
    `code` is the provider's error code, "" if there is none.
    """
    if status == 402 or (status == 429 and code in QUOTA_CODES):
        return QuotaExhausted(message)
    if status in {401, 403}:
        return Unauthorised(message)
    if status == 429:
        return RateLimited(message, retry_after)
    if status in {504, 524}:  # 524 is Cloudflare's
        return GatewayTimedOut(message, retry_after)
    if status in {408, 409, 425} or status >= 500:
        return ServerError(message, retry_after)
    return Rejected(message, status)


def format_status(status: int) -> str:
    """Return the start of a message about a status, as it is shown and stored."""
    return f"The provider answered {status}: "


def redact_message(words: str, secrets: Iterable[str] = ()) -> str:
    """Return the provider's message on one line, without secrets and characters that cannot be
    shown, in at most MAX_MESSAGE_LENGTH characters.

    Every given secret is hidden, also if the message ends with only its beginning, and so is
    everything that looks like a credential. Only then is the message shortened, so that no part of
    a key is left at the end.
    """
    for secret in secrets:
        words = _mask_secret(secret, words)
    words = _CREDENTIAL.sub(_KEY_MASK, words[:_MAX_READ_LENGTH])
    # Control characters would steer a terminal or turn a line around; half a surrogate pair breaks
    # a page.
    words = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    return words if len(words) <= MAX_MESSAGE_LENGTH else words[: MAX_MESSAGE_LENGTH - 1] + "…"


def redact_bytes(secret: str, content: bytes) -> bytes:
    """Return a provider's bytes with the key hidden, so that they can be stored.

    If a truncated text ends with the beginning of a key (MIN_KEY_PREFIX characters or more), the
    beginning is hidden too. A key that is too short to be a secret (such as EMPTY for local
    servers) is not hidden, since replies may contain it as a word.
    """
    if len(secret) < MIN_KEY_LENGTH:
        return content
    # Latin-1 maps each byte to one character.
    return _mask_secret(secret, content.decode("latin-1")).encode("latin-1")


def redact_values(secrets: Iterable[str], value: Any) -> Any:
    """Return decoded JSON with the keys hidden in all texts, as `redact_bytes` hides them: a key
    whose characters were escaped can be found only here."""
    if isinstance(value, dict):
        return {name: redact_values(secrets, one) for name, one in value.items()}
    if isinstance(value, list):
        return [redact_values(secrets, one) for one in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _KEY_MASK) if len(secret) >= MIN_KEY_LENGTH else value
    return value


def _mask_secret(secret: str, text: str) -> str:
    for spelling in _spellings(secret):
        text = _mask_prefix(spelling, text.replace(spelling, _KEY_MASK))
    return text


def _mask_prefix(secret: str, text: str) -> str:
    """Hide the beginning of a secret if the text, or a JSON string in it, ends with it."""
    start, rest = secret[:MIN_KEY_PREFIX], secret[MIN_KEY_PREFIX:]
    found = text.find(start) if rest else -1
    # Joined in the end: a hostile reply may have a million such places.
    parts, kept = list[str](), 0
    while found >= 0:
        end = found + len(start)
        for character in rest:
            if text[end : end + 1] != character:
                break
            end += 1
        if text[end : end + 1] in {"", '"'}:
            parts += (text[kept:found], _KEY_MASK)
            kept = end
        found = text.find(start, end)
    return "".join([*parts, text[kept:]]) if parts else text


def _spellings(secret: str) -> list[str]:
    """Return the secret unchanged, URL-encoded, and as in JSON that escapes slashes."""
    forms = [secret, quote(secret, safe=""), secret.replace("/", "\\/")]
    return list(dict.fromkeys(form for form in forms if form))
