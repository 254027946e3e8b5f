"""The retry policy: how often a request is tried for each cause of failure, and how long to wait
between attempts.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from judging.evaluators.providers.errors import EvaluatorError, Transient
from judging.evaluators.providers.remaining_limits import parse_number

MAX_RETRY_AFTER = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` in total, including the first; waits grow from `base` to `cap`, in seconds."""

    attempts: int = 6
    base: float = 1.0
    cap: float = 60.0


# Each cause has its own number of attempts, so that failures at a busy provider do not use up the
# attempts for a broken connection. A rate-limited attempt costs nothing and says nothing about the
# request; an attempt that timed out may cost money.
POLICIES = {
    "rate_limited": RetryPolicy(attempts=30),
    "unavailable": RetryPolicy(attempts=6),
    "timed_out": RetryPolicy(attempts=3),
}


def is_given_up(attempt: int, error: EvaluatorError, policy: RetryPolicy | None = None) -> bool:
    """True if a request is not tried again: its error is not Transient, or the attempts that the
    policy allows for the cause are used up. `attempt` is as in `compute_wait`.
    """
    policy = policy or POLICIES.get(error.cause, RetryPolicy())
    return not isinstance(error, Transient) or attempt >= policy.attempts


def compute_wait(
    attempt: int, error: EvaluatorError, rng: random.Random, policy: RetryPolicy | None = None
) -> float | None:
    """Return the seconds to wait before the next attempt, or None to give up.

    `attempt` is the number of attempts so far that failed with the cause of `error`, at least 1.
    The result is None if the error is not Transient, or if the attempts that the policy allows for
    the cause are used up. The wait is uniform between 0 and base x 2^(attempt - 1), at most `cap`
    ("full jitter": callers that failed together do not retry together). A longer `retry_after`
    takes precedence.
    """
    policy = policy or POLICIES.get(error.cause, RetryPolicy())
    if is_given_up(attempt, error, policy):
        return None
    highest = min(policy.cap, policy.base * 2.0 ** (attempt - 1))
    return max(rng.uniform(0.0, highest), error.retry_after or 0.0)


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that a provider asks us to wait, or None if there is no valid value.

    Reads `retry-after-ms`, then `Retry-After` as seconds, then as an HTTP date, compared with `now`
    (seconds since 1970, by default the current time). The result is never negative, and at most a
    day.
    """
    milliseconds = parse_number(_header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    wanted = _header(headers, "retry-after")
    seconds = parse_number(wanted)
    if seconds is None:
        seconds = _parse_date(wanted, time.time() if now is None else now)
    return None if seconds is None else _bounded(seconds)


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value.strip() for key, value in headers.items() if key.lower() == name), "")


def _parse_date(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        # HTTP dates are in GMT, even if they do not name the time zone clearly.
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
