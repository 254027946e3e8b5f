"""The engine in real processes that are killed while they work."""

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from judging.jobs.worker import NICENESS
from judging.models import Endpoint, Reply, Request, Run
from tests.builders import make_project
from tests.judging.builders_judging import TWO_CALLS, make_endpoint, make_items, make_run, results
from tests.services.processes import (
    PATIENCE,
    UNWRITTEN,
    Processes,
    finish,
    kill,
    kill_in_step,
    reach,
    wait_for,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

ITEMS = 700
CALLS = 2 * ITEMS
IN_FLIGHT = 16


@pytest.fixture
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running(Script(latency=0.1)) as evaluator:
        yield evaluator


@pytest.fixture
def run(evaluator: ScriptedEvaluator) -> Run:
    project = make_project()
    make_items(project, ITEMS)
    return make_run(project, make_endpoint(evaluator, in_flight=IN_FLIGHT), TWO_CALLS)


def assert_asked_once(evaluator: ScriptedEvaluator, killed: float) -> None:
    """No request twice but those unanswered, or answered just before the kill."""
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in evaluator.log:
        seen[entry["digest"]].append(entry)
    assert len(seen) == CALLS
    for first, *again in seen.values():
        assert len(again) <= 1
        if again and first["answered"]:
            assert abs(killed - first["answered"]) < UNWRITTEN


def assert_all_on_record(run: Run) -> None:
    assert set(Request.objects.values_list("state", flat=True)) == {"answered"}
    assert Reply.objects.count() == CALLS
    assert sum(results(run).values()) == ITEMS
    assert results(run).keys() == {"detected", "undetected"}


@pytest.mark.redis
def test_a_run_survives_that_redis_and_then_its_worker_are_killed(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    """Half a minute: two workers start, and what the killed one held has to run out."""
    broker, worker = processes.redis(), processes.worker()
    reach(evaluator, 0.15 * CALLS)
    kill(broker)
    asked = len(evaluator.log)
    # What is in flight ends and is kept, and nobody asks while the limits that all workers keep
    # are out of reach.
    wait_for(lambda: Reply.objects.count() >= asked, "what was asked is on record")
    wait_for(lambda: refused(processes) >= 5, "the limits were asked for in vain")
    assert len(evaluator.log) <= asked + IN_FLIGHT
    processes.redis()
    reach(evaluator, 0.3 * CALLS)
    killed = kill_in_step(worker, evaluator)
    assert Reply.objects.count() < CALLS
    processes.worker()
    finish(run)
    assert_all_on_record(run)
    assert_asked_once(evaluator, killed)


def refused(processes: Processes) -> int:
    """How often a worker said that it could not ask for the limits."""
    return processes.said().count("The limits cannot be read")


def test_a_run_survives_that_the_one_process_of_the_embedded_default_is_killed(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    """Half a minute: two servers start, and what the killed one held has to run out."""
    server = processes.server()
    reach(evaluator, 0.3 * CALLS)
    killed = kill_in_step(server, evaluator)
    assert Reply.objects.count() < CALLS
    processes.server()
    finish(run)
    assert_all_on_record(run)
    assert_asked_once(evaluator, killed)


@pytest.mark.redis
def test_pages_come_before_the_work_of_a_worker(processes: Processes) -> None:
    processes.redis()
    worker = processes.worker()
    wait_for(
        lambda: os.getpriority(os.PRIO_PROCESS, worker.pid) == os.nice(0) + NICENESS,
        "the worker lets others go first",
    )


@pytest.mark.redis
def test_a_worker_that_is_told_to_end_waits_for_no_answer_and_leaves_nothing_leased(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    """Some ten seconds: a worker starts, and ends within the time that a container has."""
    evaluator.script = Script(faults={"hang": ""})
    Endpoint.objects.update(timeout=2 * PATIENCE)
    processes.redis()
    worker = processes.worker()
    reach(evaluator, IN_FLIGHT)
    worker.terminate()
    worker.wait(timeout=PATIENCE)
    assert set(Request.objects.values_list("state", flat=True)) == {"waiting"}
