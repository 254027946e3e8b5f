from datetime import UTC, datetime

import pytest

from judging.evaluators.providers.remaining_limits import parse_headers

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_requests_and_tokens_of_openai_are_read_with_their_spans():
    headers = {
        "x-ratelimit-limit-requests": "60",
        "X-RateLimit-Remaining-Requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert parse_headers(headers, NOON) == {
        "requests": {"left": 59, "limit": 60, "resets": "2026-03-01T12:00:01+00:00"},
        "tokens": {"left": 149984, "limit": 150000, "resets": "2026-03-01T12:06:00+00:00"},
    }


def test_kinds_of_anthropic_are_read_with_their_dates():
    headers = {
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "39000",
        "anthropic-ratelimit-input-tokens-reset": "2026-03-01T12:00:30Z",
        "anthropic-ratelimit-requests-remaining": "0",
    }
    assert parse_headers(headers, NOON) == {
        "input-tokens": {"left": 39000, "limit": 40000, "resets": "2026-03-01T12:00:30+00:00"},
        "requests": {"left": 0},
    }


@pytest.mark.parametrize(
    ("reset", "resets"),
    [
        ("12ms", "2026-03-01T12:00:00+00:00"),
        ("1h2m3.5s", "2026-03-01T13:02:03+00:00"),
        ("30", "2026-03-01T12:00:30+00:00"),
        ("1772366460", "2026-03-01T12:01:00+00:00"),
        ("1772366460000", "2026-03-01T12:01:00+00:00"),
        ("-5", "2026-03-01T12:00:00+00:00"),
        ("soon", None),
        ("9e99", None),
        ("nan", None),
        ("T", None),
    ],
)
def test_every_form_of_a_reset_is_read(reset, resets):
    headers = {"x-ratelimit-remaining": "5", "x-ratelimit-reset": reset}
    assert parse_headers(headers, NOON)["requests"].get("resets") == resets


@pytest.mark.parametrize("left", ["", "many", "-1", "inf", "1e300"])
def test_what_is_no_number_is_not_said(left):
    assert parse_headers({"x-ratelimit-remaining-requests": left}, NOON) == {}


def test_a_provider_cannot_fill_the_page():
    headers = {f"x-ratelimit-remaining-kind{number}": "1" for number in range(100)}
    assert len(parse_headers(headers, NOON)) == 8
