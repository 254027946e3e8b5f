"""What workers say of themselves, and for how long it holds."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from judging.jobs import heartbeat
from judging.jobs.heartbeat import ALIVE_FOR, FORGET_AFTER, WorkerStatus
from judging.models import Dispatcher, Worker

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LATER = NOW + timedelta(seconds=5)


def told(life: WorkerStatus, now: datetime) -> Worker:
    heartbeat.record(life, now)
    return Worker.objects.get(name=life.name)


def test_slices_count_by_how_they_ended() -> None:
    life = WorkerStatus()
    for well in (True, False, True):
        life.ended(well=well)
    found = told(life, NOW)
    assert (found.slices, found.failures) == (2, 1)


def test_a_worker_is_alive_for_a_while_after_it_said_so() -> None:
    life = WorkerStatus()
    assert told(life, NOW).alive_until == NOW + ALIVE_FOR
    assert heartbeat.has_worker(1, NOW + ALIVE_FOR - timedelta(seconds=1))
    assert not heartbeat.has_worker(1, NOW + ALIVE_FOR + timedelta(seconds=1))
    assert told(life, LATER).alive_until == LATER + ALIVE_FOR
    heartbeat.record_stop(life)
    assert not heartbeat.has_worker(1, NOW)


@pytest.mark.parametrize("name", ["endpoint 1", "planning 1"])
def test_who_waits_for_a_run_is_at_its_endpoint_alone(name: str) -> None:
    Dispatcher.objects.create(name=name, holder="a command", held_until=LATER)
    assert heartbeat.has_worker(1, NOW)
    assert not heartbeat.has_worker(2, NOW)
    assert not heartbeat.has_worker(1, LATER)


def test_a_worker_gets_on_if_a_slice_ended_well_or_nothing_is_due() -> None:
    life = WorkerStatus()
    assert told(life, NOW).progressed_at is None
    life.ended(well=False)
    assert told(life, NOW).progressed_at is None
    life.ended(well=True)
    assert told(life, NOW).progressed_at == NOW
    # No slice since.
    assert told(life, LATER).progressed_at == NOW
    life.idle = True
    assert told(life, LATER).progressed_at == LATER


def test_a_worker_says_when_it_last_could_look_what_is_due() -> None:
    life = WorkerStatus()
    assert told(life, NOW).looked_at is None
    life.looked = True
    assert told(life, NOW).looked_at == NOW
    life.looked = False
    assert told(life, LATER).looked_at == NOW


def test_a_worker_that_was_killed_is_forgotten_after_a_day() -> None:
    killed, since = WorkerStatus("killed"), WorkerStatus("since")
    gone = NOW - ALIVE_FOR - FORGET_AFTER
    told(killed, gone - timedelta(seconds=1))
    told(since, gone + timedelta(seconds=1))
    told(WorkerStatus("new"), NOW)
    assert set(Worker.objects.values_list("name", flat=True)) == {"since", "new"}
