"""What goes wrong on the way to an evaluator, met by workers in processes of their own."""

import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection

from judging.models import Reply, Request, Run
from tests.builders import make_project
from tests.judging.builders_judging import make_endpoint, make_items, make_run, results
from tests.services.processes import Processes, finish, wait_for
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]
ITEMS = 300


@pytest.fixture
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running(Script(latency=0.02)) as evaluator:
        yield evaluator


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    found.close()


def make(evaluator: ScriptedEvaluator, items: int = ITEMS, **endpoint: object) -> Run:
    project = make_project()
    make_items(project, items)
    return make_run(project, make_endpoint(evaluator, **{"in_flight": 32, **endpoint}))


def assert_asked_again_only_after_faults(evaluator: ScriptedEvaluator) -> None:
    answered = Counter(entry["digest"] for entry in evaluator.log if not entry["fault"])
    assert set(answered.values()) == {1}


def test_crowds_and_broken_replies_lose_nothing_and_pay_nothing_twice(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    faults = {"rate_limited": "0.1", "broken_json": "0.05"}
    evaluator.script = Script(latency=0.02, faults=faults)
    run = make(evaluator)
    processes.bell()
    finish(run)
    met = Counter(entry["fault"] for entry in evaluator.log)
    assert met["rate_limited"] > 10
    assert met["broken_json"] > 5
    assert Reply.objects.count() == ITEMS
    assert results(run).keys() <= {"detected", "undetected"}
    assert_asked_again_only_after_faults(evaluator)


def test_calls_that_hang_hold_up_no_others_and_are_tried_again(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    evaluator.script = Script(latency=0.02, faults={"hang": "0.03"})
    run = make(evaluator, timeout=2)
    processes.bell()
    wait_for(lambda: Reply.objects.count() >= 0.9 * ITEMS, 20, "most are answered")
    finish(run)
    assert any(entry["fault"] == "hang" for entry in evaluator.log)
    assert Reply.objects.count() == ITEMS
    assert_asked_again_only_after_faults(evaluator)


def test_an_evaluator_that_only_hangs_ends_as_timed_out(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    evaluator.script = Script(faults={"hang": ""})
    run = make(evaluator, items=5, timeout=1)
    processes.bell()
    finish(run)
    assert results(run) == {"timed_out": 5}
    assert {entry["attempt"] for entry in evaluator.log} == {1, 2, 3}


def test_a_clock_that_jumps_makes_nobody_ask_twice(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    run = make(evaluator, in_flight=4)
    processes.bell("--jump", "3600")
    finish(run)
    assert Reply.objects.count() == ITEMS
    assert_asked_again_only_after_faults(evaluator)


@pytest.mark.postgresql
@pytest.mark.redis
def test_two_workers_one_with_a_wrong_clock_ask_each_request_once(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    run = make(evaluator, in_flight=8)
    processes.redis()
    broker = f"redis://127.0.0.1:{processes.redis_port}/0"
    processes.bell(REDIS_URL=broker)
    processes.bell("--jump", "3600", REDIS_URL=broker)
    finish(run)
    assert Reply.objects.count() == ITEMS
    assert_asked_again_only_after_faults(evaluator)


@pytest.mark.postgresql
@pytest.mark.redis
def test_eight_workers_together_never_spend_more_than_the_cap(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    cap = Decimal("0.5")
    prices = {"price_in": Decimal(10), "price_out": Decimal(10)}
    project = make_project()
    make_items(project, ITEMS)
    endpoint = make_endpoint(evaluator, in_flight=64, parameters={"max_tokens": 100}, **prices)
    run = make_run(project, endpoint, cap=cap)
    processes.redis()
    for _ in range(8):
        processes.bell(REDIS_URL=f"redis://127.0.0.1:{processes.redis_port}/0")
    highest, ends = Decimal(0), time.monotonic() + 90
    while run.state != Run.State.PAUSED and time.monotonic() < ends:
        run.refresh_from_db()
        highest = max(highest, run.spent + run.reserved)
        time.sleep(0.02)
    assert run.state == Run.State.PAUSED
    assert "cost cap" in run.reason
    wait_for(lambda: not Request.objects.filter(state="leased").exists(), 20, "all calls ended")
    run.refresh_from_db()
    assert highest <= cap
    assert Decimal("0.3") < run.spent <= cap
    assert run.reserved == 0
    assert sum(reply.cost or 0 for reply in Reply.objects.all()) == run.spent
    assert_asked_again_only_after_faults(evaluator)


@pytest.mark.postgresql
def test_a_database_connection_that_is_cut_loses_nothing(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    run = make(evaluator, in_flight=8)
    processes.bell()
    for share in (0.2, 0.5):
        wait_for(lambda part=share: Reply.objects.count() >= part * ITEMS, 30, "a part is answered")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    finish(run)
    assert Reply.objects.count() == ITEMS
    assert_asked_again_only_after_faults(evaluator)
