"""The engine in real processes that are killed while they work (design 3.7)."""

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging.models import Reply, Request, Run
from tests.builders import make_project
from tests.judging.builders_judging import TWO_CALLS, make_endpoint, make_items, make_run, results
from tests.services.processes import UNWRITTEN, Processes, finish, kill, reach
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

ITEMS = 1000
CALLS = 2 * ITEMS


@pytest.fixture
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running(Script(latency=0.05)) as evaluator:
        yield evaluator


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    found.close()


@pytest.fixture
def run(evaluator: ScriptedEvaluator) -> Run:
    project = make_project()
    make_items(project, ITEMS)
    return make_run(project, make_endpoint(evaluator, in_flight=32), TWO_CALLS)


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
    broker, worker = processes.redis(), processes.worker()
    reach(evaluator, 600)
    kill(broker)
    asked = len(evaluator.log)
    time.sleep(1.0)
    # Nobody asks while the limits that all workers keep are out of reach.
    assert len(evaluator.log) <= asked + 32
    assert Reply.objects.count() >= asked - 32
    processes.redis()
    reach(evaluator, 1000)
    killed = kill(worker)
    assert Reply.objects.count() < CALLS
    processes.worker()
    finish(run)
    assert_all_on_record(run)
    assert_asked_once(evaluator, killed)


def test_a_run_survives_that_the_one_process_of_the_embedded_default_is_killed(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    server = processes.server()
    reach(evaluator, 1000)
    killed = kill(server)
    assert Reply.objects.count() < CALLS
    processes.server()
    finish(run)
    assert_all_on_record(run)
    assert_asked_once(evaluator, killed)


@pytest.mark.redis
def test_a_worker_that_is_told_to_end_does_so_soon_and_leaves_nothing_leased(
    evaluator: ScriptedEvaluator, processes: Processes, run: Run
) -> None:
    evaluator.script = Script(faults={"hang": ""})
    processes.redis()
    worker = processes.worker()
    reach(evaluator, 32)
    worker.terminate()
    worker.wait(timeout=9)
    assert set(Request.objects.values_list("state", flat=True)) == {"waiting"}
