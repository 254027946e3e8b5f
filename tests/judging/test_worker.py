import gc
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from celery import current_app
from django.db import OperationalError
from django.utils import timezone

from annotation.db import clock
from annotation.settings import project_settings
from judging import tasks
from judging.jobs import embedded_worker, heartbeat, job_list, worker
from judging.jobs.job_list import JobKind
from judging.jobs.worker import WorkKind, WorkLoop
from judging.models import Worker
from judging.results import figures
from judging.runs.engine import ask, lease

ROOT = Path(__file__).resolve().parents[2]
Due = Callable[[Callable[[], list[int]]], None]


@pytest.fixture(autouse=True)
def _nothing_left_over() -> Iterator[None]:
    """Messages of earlier tests are thrown away, and slices of later ones may run."""
    current_app.control.purge()
    yield
    ask.STOP.clear()


@pytest.fixture
def due(monkeypatch: pytest.MonkeyPatch) -> Due:
    """Replace the question what is due, so that the loop is tested without a database."""
    monkeypatch.setattr(job_list, "JOB_KINDS", {})
    monkeypatch.setattr(figures, "list_due", lambda now: [])
    monkeypatch.setattr(heartbeat, "record", lambda worker, now: None)
    monkeypatch.setattr(heartbeat, "record_stop", lambda worker: None)
    return lambda answer: monkeypatch.setattr(lease, "find_due_endpoints", lambda now: answer())


@pytest.fixture
def worked_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The endpoints that workers were sent to."""
    seen: list[int] = []
    monkeypatch.setattr(ask, "run_overlapping_slice", lambda endpoint_id: seen.append(endpoint_id))
    return seen


@pytest.fixture
def loop() -> Iterator[WorkLoop]:
    """A quick loop without a worker, and so without a broker."""
    loop = WorkLoop(every=0.02)
    loop.start()
    yield loop
    loop.stop()


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> bool:
    pause = threading.Event()
    return any(condition() or pause.wait(0.02) for _ in range(int(seconds / 0.02)))


def test_what_start_up_made_is_not_looked_through_again(due: Due) -> None:
    due(list)
    gc.unfreeze()
    loop = WorkLoop(every=0.02)
    loop.start()
    loop.stop()
    assert gc.get_freeze_count() > 10_000


def test_an_embedded_worker_finds_due_work_though_no_message_was_sent(
    due: Due, worked_on: list[int]
) -> None:
    due(lambda: [] if worked_on else [7])
    with embedded_worker.running_worker():
        assert wait_for(lambda: worked_on == [7])


@pytest.mark.django_db(transaction=True)
def test_an_embedded_worker_answers_a_message_at_once(due: Due, worked_on: list[int]) -> None:
    due(list)
    with embedded_worker.running_worker():
        tasks.notify_workers(3)
        assert wait_for(lambda: worked_on == [3])


NOTIFY_TWICE = """
import time, django
django.setup()
from judging import tasks
for _ in range(2):
    began = time.monotonic()
    tasks.notify_workers(3)
    print(time.monotonic() - began)
"""


def test_a_page_does_not_wait_for_a_broker_that_hangs(tmp_path: Path) -> None:
    """It takes connections and never answers, as one that is stopped or swaps."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        environment = {**os.environ, "REDIS_URL": f"redis://127.0.0.1:{server.getsockname()[1]}/0"}
        environment |= {"VAR_DIR": str(tmp_path), "SECRET_KEY": "k" * 50}
        environment |= {"DATABASE_URL": f"sqlite:///{tmp_path / 'own.sqlite3'}"}
        environment |= {"DJANGO_SETTINGS_MODULE": "config.settings"}
        environment.pop("SITE_URL", None)
        run = subprocess.run(
            [sys.executable, "-c", NOTIFY_TWICE], env=environment, cwd=ROOT, check=True,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    first, second = map(float, run.stdout.split())
    assert first < 15
    assert second < 0.1


def test_stopping_a_worker_asks_running_slices_to_end(due: Due) -> None:
    due(list)
    with embedded_worker.running_worker():
        assert not ask.STOP.is_set()
    assert ask.STOP.is_set()


def test_a_slice_that_ended_with_its_time_goes_on_at_once(
    due: Due, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def work(endpoint_id: int) -> None:
        begun.append(endpoint_id)
        time.sleep(1.1 if len(begun) == 1 else 0)

    monkeypatch.setattr(ask, "run_overlapping_slice", work)
    due(lambda: [] if len(begun) > 1 else [7])
    loop = WorkLoop(every=1.0)
    loop.start()
    try:
        assert wait_for(lambda: begun == [7])
        # It ends a tenth of a second after a look; the next one by the clock is far.
        assert wait_for(lambda: begun == [7, 7], seconds=1.6)
    finally:
        loop.stop()


def test_due_work_is_done_without_any_broker(
    due: Due, worked_on: list[int], loop: WorkLoop
) -> None:
    due(lambda: [] if worked_on else [7])
    assert wait_for(lambda: worked_on == [7])


def test_a_broker_that_answers_but_takes_no_messages_does_not_end_a_worker() -> None:
    """As Redis does while its disk is full. Celery reads this, and would end otherwise."""
    assert current_app.conf.broker_channel_error_retry


def test_what_a_change_of_settings_asks_for_is_done_though_its_message_was_lost(
    due: Due, loop: WorkLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    stops: list[bool] = []

    def work(job_id: int, *, stopped: Callable[[], bool]) -> None:
        stops.append(stopped())
        begun.append(job_id)

    due(lambda: [7])  # an endpoint of the same number is something else
    monkeypatch.setattr(ask, "run_overlapping_slice", lambda pk: None)
    kind = JobKind("Labels needed per item", work, lambda now: [] if begun else [7])
    monkeypatch.setattr(job_list, "JOB_KINDS", {project_settings.RESIZE_JOB: kind})
    assert wait_for(lambda: begun == [7])
    assert stops == [False]


def test_an_endpoint_that_is_being_asked_is_not_taken_up_twice(
    due: Due, loop: WorkLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    may_end = threading.Event()
    monkeypatch.setattr(
        ask, "run_overlapping_slice", lambda pk: (begun.append(pk), may_end.wait(10))
    )
    due(lambda: [5])
    assert wait_for(lambda: begun == [5])
    assert not wait_for(lambda: len(begun) > 1, seconds=0.3)
    may_end.set()
    assert wait_for(lambda: len(begun) > 1)


def test_the_work_loop_goes_on_after_the_database_was_away(
    due: Due, worked_on: list[int], loop: WorkLoop
) -> None:
    errors = iter([OperationalError("away")])

    def answer() -> list[int]:
        for error in errors:
            raise error
        return [] if worked_on else [5]

    due(answer)
    assert wait_for(lambda: worked_on == [5])


def test_the_work_loop_goes_on_after_the_clock_could_not_be_read(
    due: Due, worked_on: list[int], loop: WorkLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, errors = clock.now, iter([OperationalError("away")])

    def now() -> datetime:
        for error in errors:
            raise error
        return read()

    monkeypatch.setattr(clock, "now", now)
    due(lambda: [] if worked_on else [5])
    assert wait_for(lambda: worked_on == [5])


def test_the_work_loop_goes_on_after_asking_failed(
    due: Due, loop: WorkLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []

    def fail(endpoint_id: int) -> None:
        tries.append(endpoint_id)
        raise OperationalError("away")

    monkeypatch.setattr(ask, "run_overlapping_slice", fail)
    due(lambda: [5] if len(tries) < 2 else [])
    assert wait_for(lambda: tries == [5, 5])


def test_every_worker_gets_the_work_loop() -> None:
    assert "judging.jobs.worker:WorkLoopStep" in current_app.steps["worker"]


@pytest.mark.django_db(transaction=True)
def test_a_work_loop_says_that_its_worker_is_alive_and_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lease, "find_due_endpoints", lambda now: [])
    monkeypatch.setattr(job_list, "JOB_KINDS", {})
    monkeypatch.setattr(figures, "list_due", lambda now: [])
    loop = WorkLoop(every=0.02)
    loop.start()
    assert wait_for(lambda: heartbeat.has_worker(1, timezone.now()))
    # One that was killed says nothing any more.
    assert not heartbeat.has_worker(1, timezone.now() + heartbeat.ALIVE_FOR * 2)
    loop.stop()
    assert not heartbeat.has_worker(1, timezone.now())


@pytest.mark.django_db(transaction=True)
def test_a_work_loop_says_that_it_gets_on_also_where_nothing_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "list_kinds", lambda: [WorkKind("work", lambda now: [], print)])
    loop = WorkLoop(every=0.02)
    loop.start()
    assert wait_for(Worker.objects.exclude(progressed_at=None).exists)
    loop.stop()


@pytest.mark.django_db(transaction=True)
def test_a_work_loop_that_cannot_look_or_whose_work_fails_says_no_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(pk: int) -> None:
        raise RuntimeError

    def looks(now: object) -> list[int]:
        raise OperationalError

    kinds = (WorkKind("work", lambda now: [7], fails), WorkKind("other", looks, print))
    monkeypatch.setattr(worker, "list_kinds", lambda: kinds)
    loop = WorkLoop(every=0.02)
    loop.start()
    assert wait_for(Worker.objects.filter(failures__gt=1).exists)
    assert not Worker.objects.exclude(progressed_at=None, looked_at=None).exists()
    loop.stop()


def make_lasting(
    begun: dict[str, list[int]], over: threading.Event, name: str
) -> tuple[Callable[[object], set[int]], Callable[[int], object]]:
    """What is due of eight pieces of work, and how each is done: until `over`."""

    def work(pk: int) -> None:
        begun[name].append(pk)
        over.wait(10)

    return lambda now: {*range(8)} - {*begun[name]}, work


@pytest.mark.django_db(transaction=True)
def test_long_jobs_leave_room_for_other_jobs_and_for_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, begun = threading.Event(), {name: list[int]() for name in ("import", "export", "call")}
    lasting = partial(make_lasting, begun, over)

    kinds = (
        WorkKind("import job", *lasting("import"), worker.MAX_JOBS_OF_A_KIND),
        WorkKind("export job", *lasting("export"), worker.MAX_JOBS_OF_A_KIND),
        WorkKind("endpoint", *lasting("call")),
    )
    monkeypatch.setattr(worker, "list_kinds", lambda: kinds)
    # One look only: what comes later, comes since a job has ended.
    loop = WorkLoop(every=60)
    loop.start()
    loop._again.set()
    assert wait_for(lambda: begun["call"] == [0, 1, 2])
    assert (begun["import"], begun["export"]) == ([0, 1], [0])
    over.set()
    assert wait_for(lambda: {len(some) for some in begun.values()} == {8})
    loop.stop()


@pytest.mark.django_db(transaction=True)
def test_no_kind_of_job_waits_for_the_last_job_of_other_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = {name: list[int]() for name in ("import", "export", "archive")}
    ends = {name: threading.Event() for name in begun}
    kinds = tuple(
        WorkKind(f"{name} job", *make_lasting(begun, ends[name], name), worker.MAX_JOBS_OF_A_KIND)
        for name in begun
    )
    monkeypatch.setattr(worker, "list_kinds", lambda: kinds)
    loop = WorkLoop(every=60)
    loop.start()
    loop._again.set()
    assert wait_for(lambda: (begun["import"], begun["export"]) == ([0, 1], [0]))
    # The export ends and others wait, but the first archive has waited as long.
    ends["export"].set()
    assert wait_for(lambda: begun["archive"] == [0])
    assert begun["export"] == [0]
    for event in ends.values():
        event.set()
    assert wait_for(lambda: {len(some) for some in begun.values()} == {8})
    loop.stop()


@pytest.mark.django_db(transaction=True)
def test_tables_of_figures_that_take_hours_leave_room_for_jobs_and_for_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over, begun = threading.Event(), {name: list[int]() for name in ("figure", "import", "call")}
    lasting = partial(make_lasting, begun, over)

    [real] = [kind for kind in worker.list_kinds() if kind.name == "table of figures"]
    due, work = lasting("figure")
    kinds = (
        replace(real, due=due, work=work),
        WorkKind("import job", *lasting("import"), worker.MAX_JOBS_OF_A_KIND),
        WorkKind("endpoint", *lasting("call")),
    )
    monkeypatch.setattr(worker, "list_kinds", lambda: kinds)
    loop = WorkLoop(every=60)
    loop.start()
    loop._again.set()
    assert wait_for(lambda: begun["call"] == [0, 1])
    assert (begun["figure"], begun["import"]) == ([0, 1], [0, 1])
    over.set()
    assert wait_for(lambda: {len(some) for some in begun.values()} == {8})
    loop.stop()


def test_jobs_and_tables_of_figures_are_limited_and_nothing_else() -> None:
    limited = {kind.name: kind.at_once for kind in worker.list_kinds()}
    named = {f"{name} job": 2 for name, kind in job_list.JOB_KINDS.items() if kind.run}
    others = {"endpoint": None, "table of figures": 2, "search index": None, "webhooks": None}
    assert limited == {**others, **named}
