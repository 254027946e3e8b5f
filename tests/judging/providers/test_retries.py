import random
import time

import pytest

from judging.evaluators.providers import errors, parse_retry_after
from judging.evaluators.retries import POLICIES, RetryPolicy, compute_wait

NOON = 1445412480.0  # Wed, 21 Oct 2015 07:28:00 GMT


class Highest(random.Random):
    """Draws the end of every range."""

    def uniform(self, a, b):
        return b


def test_waits_double_up_to_the_cap():
    policy = RetryPolicy(attempts=9, base=1.0, cap=10.0)
    waits = [compute_wait(n, errors.TimedOut("slow"), Highest(), policy) for n in range(1, 7)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_waits_spread_evenly_from_0():
    rng = random.Random(7)
    waits = [compute_wait(4, errors.ServerError("busy"), rng) for _ in range(2000)]
    assert min(waits) < 0.1
    assert max(waits) > 7.9
    assert 3.8 < sum(waits) / len(waits) < 4.2


def test_the_sixth_attempt_is_the_last():
    error = errors.BrokenReply("cut")
    attempts = POLICIES[error.cause].attempts
    assert compute_wait(attempts - 1, error, random.Random(1)) is not None
    assert compute_wait(attempts, error, random.Random(1)) is None


def test_a_longer_wait_of_the_provider_wins_and_a_shorter_one_does_not():
    assert compute_wait(1, errors.RateLimited("slow", 30.0), Highest()) == 30.0
    assert compute_wait(3, errors.RateLimited("slow", 0.5), Highest()) == 4.0


@pytest.mark.parametrize(
    "error", [errors.Rejected("no"), errors.Unauthorised("no"), errors.QuotaExhausted("no")]
)
def test_what_will_not_pass_is_given_up_at_once(error):
    assert compute_wait(1, error, random.Random(1)) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "20"}, 20.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"Retry-After": "20", "Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 -0000"}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:00:00 GMT"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "9e99"}, 86400.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"retry-after-ms": "soon", "Retry-After": "3"}, 3.0),
    ],
)
def test_every_form_of_retry_after_is_read(headers, seconds):
    assert parse_retry_after(headers, now=NOON) == seconds


def test_a_date_without_a_zone_is_in_gmt_wherever_we_are(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    headers = {"Retry-After": "Wed, 21 Oct 2015 07:28:30 -0000"}
    found = parse_retry_after(headers, now=NOON)
    monkeypatch.undo()
    time.tzset()
    assert found == 30.0


def test_each_cause_has_a_budget_of_its_own():
    assert POLICIES["rate_limited"].attempts > POLICIES["unavailable"].attempts
    assert POLICIES["timed_out"].attempts < POLICIES["unavailable"].attempts
