"""Parse the provider's remaining limits from response headers."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

# There are two spellings: the measure before the kind, or after the kind. A header without a kind
# is about requests.
_NAMES = (
    re.compile(r"x-ratelimit-(?P<measure>limit|remaining|reset)(?:-(?P<kind>[a-z0-9_-]{1,40}))?"),
    re.compile(
        r"anthropic-ratelimit-(?P<kind>[a-z0-9_-]{1,40})-(?P<measure>limit|remaining|reset)"
    ),
)
_MAX_KINDS = 8
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# A number this large is not a duration in seconds but a date, in seconds or milliseconds since
# 1970.
_DATE, _DATE_IN_MILLISECONDS = 1e9, 1e12


def parse_headers(headers: Mapping[str, str], now: datetime) -> dict[str, dict[str, Any]]:
    """Return the remaining limits by kind ("requests", "tokens", "input-tokens"), {} if there are
    none.

    Each kind has `left`, and if they are reported, `limit` and `resets` (a UTC time in ISO 8601).
    `now` is an aware datetime. Values that cannot be parsed are left out.
    """
    said: dict[str, dict[str, Any]] = {}
    for name, value in headers.items():
        found = _matched(name.lower())
        if found:
            said.setdefault(found["kind"] or "requests", {})[found["measure"]] = value.strip()
    kinds = ((kind, _kind(measures, now)) for kind, measures in sorted(said.items()))
    return dict([(kind, read) for kind, read in kinds if read][:_MAX_KINDS])


def _matched(name: str) -> re.Match[str] | None:
    if "ratelimit" not in name:
        return None
    return next((found for form in _NAMES if (found := form.fullmatch(name))), None)


def _kind(measures: Mapping[str, str], now: datetime) -> dict[str, Any]:
    left, limit = _whole(measures.get("remaining", "")), _whole(measures.get("limit", ""))
    resets = _parse_time(measures.get("reset", ""), now)
    read = {"left": left, "limit": limit, "resets": resets and resets.isoformat(timespec="seconds")}
    return (
        {} if left is None else {name: value for name, value in read.items() if value is not None}
    )


def _whole(text: str) -> int | None:
    number = parse_number(text)
    return None if number is None or not 0 <= number < 2**53 else int(number)


def parse_number(text: str) -> float | None:
    """Return the number in the value of a header, or None if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _parse_time(text: str, now: datetime) -> datetime | None:
    """Parse a time given as a date, a number of seconds, or a duration like 6m0s or 12ms."""
    try:
        if "T" in text:
            date = datetime.fromisoformat(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
        seconds = _parse_span(text)
        if seconds is None:
            return None
        if seconds >= _DATE:
            return datetime.fromtimestamp(
                seconds / 1000 if seconds >= _DATE_IN_MILLISECONDS else seconds, UTC
            )
        return now.astimezone(UTC) + timedelta(seconds=max(0.0, seconds))
    except (ValueError, OverflowError, OSError):
        return None


def _parse_span(text: str) -> float | None:
    number = parse_number(text)
    if number is not None:
        return number
    parts = _DURATION.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
