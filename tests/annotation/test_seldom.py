"""Counts that are not made again for each who looks."""

import itertools

import pytest

from annotation import seldom
from tests.builders import make_project

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are as dear as they are to people, not as the other tests have them."""
    monkeypatch.setattr(seldom, "DEAR", 0.005)


def looks(monkeypatch: pytest.MonkeyPatch, seconds: float, number: int = 3) -> list[int]:
    """What somebody sees who looks so often, where counting takes so many seconds."""
    ticks = itertools.count(step=seconds)
    monkeypatch.setattr(seldom, "perf_counter", lambda: next(ticks))
    project, counts = make_project(), itertools.count(1)
    return [
        seldom.remembered(project, "items", "admin", lambda: next(counts)) for _ in range(number)
    ]


def test_a_dear_count_is_made_once_for_all_who_look(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, seconds=0.2) == [1, 1, 1]


def test_a_cheap_count_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, seconds=0.001) == [1, 2, 3]
