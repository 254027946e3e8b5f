"""What is written by a fresh connection is tried again while the database is away."""

from types import SimpleNamespace

import pytest
from django.db import OperationalError

from annotation.db import transactions

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """A time that goes on by what somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(
        transactions, "time", SimpleNamespace(monotonic=made.monotonic, sleep=made.sleep)
    )
    return made


def writer(failures: int, tries: list[int]) -> None:
    tries.append(1)
    if len(tries) <= failures:
        raise OperationalError("away")


def test_it_is_tried_each_second_until_it_is_written(clock: Clock) -> None:
    tries: list[int] = []
    transactions.retry_with_new_connection(lambda: writer(3, tries), patience=60)
    assert (len(tries), clock.slept) == (4, [1.0, 1.0, 1.0])


@pytest.mark.parametrize("patience, tries_made", [(0, 2), (2, 4), (2.5, 4)])
def test_patience_ends_with_the_error(clock: Clock, patience: float, tries_made: int) -> None:
    """The last try begins when patience has ended, and not before."""
    tries: list[int] = []
    with pytest.raises(OperationalError):
        transactions.retry_with_new_connection(lambda: writer(99, tries), patience=patience)
    assert len(tries) == tries_made


def test_who_is_to_stop_does_not_wait(clock: Clock) -> None:
    tries: list[int] = []
    with pytest.raises(OperationalError):
        transactions.retry_with_new_connection(
            lambda: writer(99, tries), patience=60, stopped=lambda: True
        )
    assert (len(tries), clock.slept) == (1, [])
