"""What goes wrong on the way to an evaluator, met by workers in processes of their own.

To a generator it is the same way, so that each is met with both kinds of calls.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import Sum

from judging.models import Budget, Reply, Request, Run
from judging.runs import lifecycle
from tests.builders import make_project
from tests.judging.builders_judging import (
    ONE_CALL,
    make_endpoint,
    make_items,
    make_run,
    results,
)
from tests.services.processes import Processes, finish, kill, reach, wait_for
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]
ITEMS = 300
# What a call may come to; both strategies make one of each item.
COMES_TO = {ONE_CALL: {"detected", "undetected"}, "generate-entity": {"made"}}


@pytest.fixture(params=COMES_TO)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running(Script(latency=0.02)) as evaluator:
        yield evaluator


def make(
    evaluator: ScriptedEvaluator, strategy: str, items: int = ITEMS, **endpoint: object
) -> Run:
    project = make_project()
    make_items(project, items)
    return make_run(project, make_endpoint(evaluator, **{"in_flight": 32, **endpoint}), strategy)


def assert_asked_again_only_after_faults(evaluator: ScriptedEvaluator) -> None:
    """Each request until it had its answer, and then no more."""
    answered = Counter(entry["digest"] for entry in evaluator.log if not entry["fault"])
    assert set(answered.values()) == {1}
    assert answered.keys() == {entry["digest"] for entry in evaluator.log}


def assert_all_on_record(run: Run, items: int = ITEMS) -> None:
    assert Reply.objects.count() == items
    assert set(Request.objects.values_list("state", flat=True)) == {"answered"}
    assert results(run).keys() <= COMES_TO[run.strategy.slug]
    assert sum(results(run).values()) == items


def test_crowds_and_broken_replies_lose_nothing_and_pay_nothing_twice(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    """Some seconds: what is refused is asked again after longer and longer pauses."""
    faults = {"rate_limited": "0.1", "broken_json": "0.05"}
    evaluator.script = Script(latency=0.02, faults=faults)
    run = make(evaluator, strategy)
    processes.work_loop()
    finish(run)
    met = Counter(entry["fault"] for entry in evaluator.log)
    assert met["rate_limited"] > 10
    assert met["broken_json"] > 5
    assert_all_on_record(run)
    assert_asked_again_only_after_faults(evaluator)


def test_replies_of_no_use_are_paid_for_once_and_counted_by_their_cause(
    evaluator: ScriptedEvaluator, processes: Processes
) -> None:
    """Some seconds: what is refused is asked again after longer and longer pauses."""
    odd = {"truncated": "truncated", "no_json": "unparsable", "echoed": "echoed"}
    faults = {"rate_limited": "0.1", **dict.fromkeys(odd, "0.05")}
    evaluator.script = Script(latency=0.02, faults=faults)
    prices = {"price_in": Decimal(1), "price_out": Decimal(1)}
    run = make(evaluator, "generate-entity", **prices)
    processes.work_loop()
    finish(run)
    paid = [entry for entry in evaluator.log if entry["fault"] != "rate_limited"]
    assert len({entry["digest"] for entry in paid}) == len(paid) == ITEMS == Reply.objects.count()
    met = Counter(odd.get(entry["fault"], "made") for entry in paid)
    assert results(run) == dict(met)
    assert met.keys() == {"made", *odd.values()}
    assert run.spent == sum(Reply.objects.values_list("cost", flat=True)) > 0


# Where both are said, the milliseconds count: with an hour for each, the run would never end.
WAITS: list[dict[str, str]] = [
    {"Retry-After": "1"},
    {"retry-after-ms": "1000", "Retry-After": "3600"},
]


@pytest.mark.redis
@pytest.mark.parametrize("headers", WAITS, ids=["seconds", "milliseconds"])
def test_a_wait_that_one_call_is_told_holds_for_all_workers(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str, headers: dict[str, str]
) -> None:
    """Up to twenty seconds: all wait a second or so whenever one is told to."""
    in_flight, items = 4, 80
    # 16 of 80 on average: three or fewer come once in ten thousand times.
    faults = {"rate_limited": "0.2"}
    evaluator.script = Script(latency=0.02, faults=faults, headers=headers)
    run = make(evaluator, strategy, items, in_flight=in_flight)
    broker = processes.broker()
    processes.work_loop("--workers", "2", REDIS_URL=broker)
    finish(run)
    log = list(evaluator.log)
    told = [entry["answered"] for entry in log if entry["fault"] == "rate_limited"]
    assert len(told) > 3
    # Only those may come that were on their way when the first was told; of two workers that do
    # not wait, each would ask some 100 more in a second.
    for at in told:
        assert sum(at < entry["received"] < at + 0.95 for entry in log) <= 2 * in_flight
    assert_all_on_record(run, items)
    assert_asked_again_only_after_faults(evaluator)


def test_calls_that_hang_hold_up_no_others_and_are_tried_again(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    """Some ten seconds: what hangs is given up after five."""
    evaluator.script = Script(latency=0.02, faults={"hang": "0.03"})
    run = make(evaluator, strategy, timeout=5)
    processes.work_loop()
    finish(run)
    log = list(evaluator.log)
    again = min(entry["received"] for entry in log if entry["attempt"] == 2)
    in_time = [entry for entry in log if entry["answered"] and entry["answered"] < again]
    assert len(in_time) > 0.9 * ITEMS
    assert {entry["fault"] for entry in log if not entry["answered"]} == {"hang"}
    assert_all_on_record(run)
    assert_asked_again_only_after_faults(evaluator)


def test_an_evaluator_that_only_hangs_pauses_and_ends_as_timed_out_if_it_is_resumed(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    """Some seconds: four tries of a second, with a longer pause before each."""
    evaluator.script = Script(faults={"hang": ""})
    run = make(evaluator, strategy, items=5, timeout=1)
    processes.work_loop()
    wait_for(Run.objects.filter(state=Run.State.PAUSED).exists, "the run is paused", every=0.1)
    # A second try may begin at once, before the last of the first tries is over.
    assert not Request.objects.filter(state="failed").exists()
    lifecycle.resume(Run.objects.get(), None)
    finish(run)
    assert results(run) == {"timed_out": 5}
    # Three tries after the pause, and those before it, which on a busy machine may come before the
    # last request is sent. The evaluator may have seen fewer: a second may be over before a request
    # has left.
    tries = list(Request.objects.values_list("attempts", flat=True))
    assert min(tries) >= 3
    assert max(tries) >= 4
    assert len({entry["digest"] for entry in evaluator.log}) == 5
    assert len(evaluator.log) <= sum(tries)


def test_a_clock_that_jumps_makes_nobody_ask_twice(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    run = make(evaluator, strategy, in_flight=4)
    processes.work_loop("--jump", "3600")
    finish(run)
    assert_all_on_record(run)
    assert_asked_again_only_after_faults(evaluator)


def test_what_a_worker_held_by_a_clock_that_was_ahead_is_not_held_for_longer(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    """Fifteen seconds: what the killed worker held runs out by the true clock first."""
    run = make(evaluator, strategy, in_flight=4)
    worker = processes.work_loop("--ahead", "3600")
    reach(evaluator, 20)
    kill(worker)
    processes.work_loop()
    finish(run)
    assert_all_on_record(run)


@pytest.mark.postgresql
@pytest.mark.redis
def test_two_workers_one_with_a_wrong_clock_ask_each_request_once(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    run = make(evaluator, strategy, in_flight=8)
    broker = processes.broker()
    processes.work_loop(REDIS_URL=broker)
    processes.work_loop("--jump", "3600", REDIS_URL=broker)
    finish(run)
    assert_all_on_record(run)
    assert_asked_again_only_after_faults(evaluator)


@pytest.mark.postgresql
@pytest.mark.redis
def test_eight_workers_together_spend_no_more_than_run_and_project_may(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    """Twenty-five seconds: eight workers start on two cores."""
    cap, budget = Decimal("0.2"), Decimal("0.5")
    prices = {"price_in": Decimal(10), "price_out": Decimal(10)}
    project = make_project()
    Budget.objects.create(project=project, cap=budget)
    make_items(project, ITEMS)
    ways = {"in_flight": 32, "parameters": {"max_tokens": 100}, **prices}
    runs = [make_run(project, make_endpoint(evaluator, **ways), strategy, cap=cap)]
    processes.work_loop("--workers", "8", REDIS_URL=processes.broker())
    watch_spending(runs)
    # Not before: it might spend the budget while the first is still under its own cap.
    runs.append(make_run(project, make_endpoint(evaluator, **ways), strategy))
    watch_spending(runs)
    for run, reason in zip(runs, ["run's cost cap", "project's budget"], strict=True):
        assert (run.state, run.reserved) == (Run.State.PAUSED, 0)
        assert reason in run.reason
        paid = Reply.objects.filter(request__endpoint=run.endpoint).aggregate(sum=Sum("cost"))
        assert run.spent == paid["sum"]
    assert cap / 2 < runs[0].spent <= cap
    assert budget / 2 < runs[0].spent + runs[1].spent <= budget
    assert_asked_again_only_after_faults(evaluator)


def watch_spending(runs: list[Run]) -> None:
    """See that no cap is passed, until all runs are paused and none of their calls is in flight."""

    def is_over() -> bool:
        rows = [*Run.objects.order_by("pk"), Budget.objects.get()]
        assert all(row.cap is None or row.spent + row.reserved <= row.cap for row in rows)
        for run in runs:
            run.refresh_from_db()
        assert Run.State.FINISHED not in {run.state for run in runs}
        in_flight = Request.objects.filter(state="leased")
        return {run.state for run in runs} == {Run.State.PAUSED} and not in_flight.exists()

    wait_for(is_over, "all runs are stopped by what they may spend")


@pytest.mark.postgresql
def test_a_database_connection_that_is_cut_loses_nothing(
    evaluator: ScriptedEvaluator, processes: Processes, strategy: str
) -> None:
    run = make(evaluator, strategy, in_flight=8)
    processes.work_loop()
    for share in (0.2, 0.5):
        wait_for(lambda part=share: Reply.objects.count() >= part * ITEMS, "a part is answered")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert cursor.fetchone() > (0,)
    finish(run)
    assert_all_on_record(run)
    assert_asked_again_only_after_faults(evaluator)
