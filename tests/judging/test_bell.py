import threading
from collections.abc import Callable, Iterator

import pytest
from celery import Celery, current_app
from django.db import OperationalError

from judging import asking, bell, embedded, leasing, tasks


@pytest.fixture(autouse=True)
def _nothing_left_over() -> Iterator[None]:
    """Messages of earlier tests are thrown away, and slices of later ones may run."""
    current_app.control.purge()
    yield
    asking.STOP.clear()


@pytest.fixture
def due(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], list[int]]], None]:
    """Replace the question what is due, so that the bell is tested without a database."""
    return lambda answer: monkeypatch.setattr(leasing, "due_endpoints", lambda now: answer())


@pytest.fixture
def worked_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The endpoints that workers were sent to."""
    seen: list[int] = []
    monkeypatch.setattr(asking, "work", lambda endpoint_id: seen.append(endpoint_id))
    return seen


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> bool:
    pause = threading.Event()
    return any(condition() or pause.wait(0.05) for _ in range(int(seconds / 0.05)))


def test_an_embedded_worker_finds_due_work_though_no_message_was_sent(due, worked_on) -> None:
    due(lambda: [7] if not worked_on else [])
    with embedded.worker():
        assert wait_for(lambda: worked_on == [7])


def test_an_embedded_worker_answers_a_message_at_once(due, worked_on) -> None:
    due(list)
    with embedded.worker():
        tasks.ring(3)
        assert wait_for(lambda: worked_on == [3], seconds=1.5)


def test_stopping_a_worker_asks_running_slices_to_end(due) -> None:
    due(list)
    with embedded.worker():
        assert not asking.STOP.is_set()
    assert asking.STOP.is_set()


def test_the_bell_goes_on_after_the_database_was_away(due, worked_on) -> None:
    answers = iter([OperationalError("away")])

    def answer() -> list[int]:
        for error in answers:
            raise error
        return [] if worked_on else [5]

    due(answer)
    with embedded.worker():
        assert wait_for(lambda: worked_on == [5])


def test_a_message_that_no_worker_took_in_time_is_dropped(due, worked_on) -> None:
    due(lambda: [9])
    assert bell.ring_for_due(expires=-1) == 1
    due(list)
    with embedded.worker():
        tasks.ring(4)
        assert wait_for(lambda: worked_on == [4])


def test_every_worker_gets_the_bell() -> None:
    app: Celery = current_app
    assert "judging.bell:BellStep" in app.steps["worker"]
