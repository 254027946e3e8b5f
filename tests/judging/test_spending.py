"""The cost cap of design 3.11, down to the last digit and with workers that die."""

import re
import threading
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Event, Project
from judging.errors import Refused
from judging.evaluators.providers import openai_compatible
from judging.evaluators.providers.errors import (
    BrokenReply,
    EvaluatorError,
    Rejected,
    ServerError,
    TimedOut,
    error_of_status,
)
from judging.models import Budget, Endpoint, Reply, Request, Run
from judging.runs import lifecycle, progress, spending
from judging.runs.amounts import format_estimate
from judging.runs.engine import store
from judging.runs.engine.lease import LEASE_DURATION
from judging.runs.engine.store import CallResult
from operation.integrity import CHECKS
from tests.builders import browser_of, make_member, make_project
from tests.judging.builders_judging import (
    answer,
    fail,
    make_answer,
    make_endpoint,
    make_items,
    make_run,
    take,
    work,
)
from tests.services.scripted_evaluator import ScriptedEvaluator

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"
# Nothing for what goes in, and 0.001 a token for 100 tokens at most that come out.
PRICES = {"price_in": Decimal(0), "price_out": Decimal(1000), "parameters": {"max_tokens": 100}}
CALL = Decimal("0.1")


@pytest.fixture
def project() -> Project:
    return make_project()


def capped(project: Project, cap: str | None = None, items: int = 10, **values: object) -> Run:
    make_items(project, items)
    endpoint = make_endpoint(NOWHERE, **PRICES, **values)
    run = make_run(project, endpoint, cap=None if cap is None else Decimal(cap))
    lifecycle.plan_calls(run)
    return run


def money(row: Run | Budget) -> tuple[Decimal, Decimal]:
    row.refresh_from_db()
    return row.reserved, row.spent


def test_leasing_reserves_what_calls_may_cost_and_never_more_than_the_cap(project: Project) -> None:
    run = capped(project, "0.35")
    assert len(take(run)) <= 3
    while take(run):
        pass
    assert money(run) == (Decimal("0.3"), 0)
    assert run.state == Run.State.RUNNING  # those in flight may turn out cheaper


def test_a_stored_reply_frees_what_it_did_not_cost(project: Project) -> None:
    run = capped(project, "0.35")
    assert answer(run, number=2, tokens_out=10) == 2
    assert money(run) == (0, Decimal("0.02"))
    assert set(Request.objects.values_list("reserved", flat=True)) == {0}


def test_an_answer_whose_cost_is_not_told_counts_as_what_was_reserved(project: Project) -> None:
    run = capped(project, "0.35")
    answer(run, number=1, tokens_out=None)
    assert money(run) == (0, CALL)


@pytest.mark.parametrize(
    "error",
    [TimedOut("No full reply."), BrokenReply("It ended."), error_of_status(504, "", "It waited.")],
)
def test_a_try_that_may_have_been_answered_counts_as_what_was_reserved(
    project: Project, error: EvaluatorError
) -> None:
    """The provider charges for what it wrote, also if the reply was late or cut off."""
    run = capped(project, "0.35", items=1)
    for tries in (1, 2):
        fail(run, error)
        assert money(run) == (0, tries * CALL)
        Run.objects.update(state=Run.State.RUNNING)  # it paused since all calls timed out
        Request.objects.update(next_try=timezone.now())
    answer(run, tokens_out=50)
    assert money(run) == (0, Decimal("0.25"))
    assert set(Request.objects.values_list("reserved", "charged")) == {(0, 2 * CALL)}
    charged = 2 * CALL * Request.objects.count()
    assert progress.count_progress(run).spent_unanswered == pytest.approx(float(charged))
    page = browser_of(make_member(project, role="lead")).get(
        f"/projects/{project.slug}/runs/{run.number}/"
    )
    assert (
        f"up to {format_estimate(charged)} of it for calls without an answer"
        in page.content.decode()
    )
    for name in ("spent", "spent-once", "reserved"):
        assert not list(CHECKS[name].find())


def test_tries_without_a_reply_never_pass_the_cap(project: Project) -> None:
    run = capped(project, "0.35")
    while fail(run, BrokenReply("It ended."), number=1):
        Request.objects.update(next_try=timezone.now())
    assert money(run) == (0, Decimal("0.3"))
    assert run.state == Run.State.PAUSED


def test_counts_that_no_call_can_have_break_no_run(project: Project) -> None:
    """Without a limit, the cost would be more than the database can store or read."""
    run = capped(project, items=1)
    said = {"prompt_tokens": 10**30, "completion_tokens": 10**15}
    told = openai_compatible.parse_recorded(
        {"choices": [{"message": {"content": "x"}}], "usage": said}, timezone.now()
    )
    [leased] = take(run)
    store.store_results(run.endpoint, "worker", [CallResult(leased, told)])
    assert money(run) == (0, CALL)


def test_a_run_that_cannot_pay_the_next_call_is_paused(project: Project) -> None:
    run = capped(project, "0.35")
    while answer(run, tokens_out=100):
        pass
    assert money(run) == (0, Decimal("0.3"))
    assert run.state == Run.State.PAUSED
    assert run.reason == (
        f"The next call could exceed the run's cost cap of 0.35 USD: it may cost {CALL:f} USD, and "
        f"0.3 USD is already counted. To continue, raise it to at least"
        f" {CALL + Decimal('0.3'):f} USD. The 7 requests still to send may cost up to about "
        "0.7 USD; about 1.00 USD would be enough for them."
    )


def test_under_the_cap_that_is_named_for_all_requests_they_all_go_out(project: Project) -> None:
    run = capped(project, "0.35")
    while answer(run, tokens_out=100):
        pass
    run.refresh_from_db()
    told = re.search(r"about ([\d.]+) USD would be enough", run.reason)
    assert told
    lifecycle.resume(run, None, cap=Decimal(told[1]))
    while answer(run, tokens_out=100):
        pass
    assert lifecycle.finish_if_done(run)


def test_one_request_that_is_left_needs_no_more_than_the_next_call(project: Project) -> None:
    run = capped(project, "0.05", items=1)
    assert not answer(run)
    run.refresh_from_db()
    assert run.reason.endswith("To continue, raise it to at least 0.1 USD.")


def test_under_the_cap_that_is_named_the_next_call_goes_out(project: Project) -> None:
    lead = make_member(project, role="lead")
    run = capped(project, "0.35")
    while answer(run, tokens_out=None):
        pass
    run.refresh_from_db()
    told = re.search(r"raise it to at least ([\d.]+) USD\.", run.reason)
    assert told
    lifecycle.resume(run, lead, cap=Decimal(told[1]))
    assert answer(run, number=1, tokens_out=None) == 1


def test_a_run_that_reached_its_cap_goes_on_under_a_higher_one(project: Project) -> None:
    lead = make_member(project, role="lead")
    run = capped(project, "0.35")
    while answer(run, tokens_out=100):
        pass
    run.refresh_from_db()
    lifecycle.resume(run, lead, cap=Decimal("0.55"))
    assert (run.state, run.cap) == (Run.State.RUNNING, Decimal("0.55"))
    while answer(run, tokens_out=100):
        pass
    assert money(run) == (0, Decimal("0.5"))
    event = Event.objects.get(kind="run cap")
    assert (event.subject, event.member) == ("run 1", lead)
    assert event.data == {"old": {"cap": "0.35"}, "new": {"cap": "0.55"}}


@pytest.mark.parametrize(
    ("cap", "new", "why"),
    [
        (
            "0.35",
            "0.2",
            "The cap of run 1 is 0.35 USD, of which 0.1 USD is spent. A cap can only be raised",
        ),
        ("0.35", "0", "A cap can only be raised"),
        ("0.35", "8", "The project's budget is 7.5 USD. A lead can raise it"),
        (None, "5", "Run 1 has no cap to raise"),
    ],
)
def test_a_cap_that_is_no_raise_or_above_the_project_s_is_refused_and_nothing_changes(
    project: Project, cap: str | None, new: str, why: str
) -> None:
    Budget.objects.create(project=project, cap=Decimal("7.5"))
    run = capped(project, cap)
    answer(run, number=1, tokens_out=100)
    lifecycle.pause(run, None)
    with pytest.raises(Refused, match=why):
        lifecycle.resume(run, None, cap=Decimal(new))
    run.refresh_from_db()
    assert (run.state, run.cap) == (Run.State.PAUSED, None if cap is None else Decimal(cap))
    assert not Event.objects.filter(kind="run cap").exists()


def test_the_cap_that_a_run_has_is_no_change_and_a_run_that_goes_on_keeps_its_cap(
    project: Project,
) -> None:
    run = capped(project, "0.35")
    with pytest.raises(Refused, match="is already running"):
        lifecycle.resume(run, None, cap=Decimal(1))
    lifecycle.pause(run, None)
    lifecycle.resume(run, None, cap=Decimal("0.35"))
    run.refresh_from_db()
    assert (run.state, run.cap) == (Run.State.RUNNING, Decimal("0.35"))
    assert not Event.objects.filter(kind="run cap").exists()


def test_a_project_s_budget_holds_for_all_of_its_runs(project: Project) -> None:
    budget = Budget.objects.create(project=project, cap=Decimal("0.75"))
    first = capped(project)
    second = make_run(project, first.endpoint, "vanilla")
    lifecycle.plan_calls(second)
    while answer(first, tokens_out=100):
        pass
    assert money(budget) == (0, Decimal("0.7"))
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.spent + second.spent == Decimal("0.7")
    assert {first.state, second.state} == {Run.State.PAUSED}
    assert "could exceed the project's budget of 0.75" in first.reason


def test_runs_are_booked_before_their_project_so_that_no_two_workers_wait_for_each_other(
    project: Project,
) -> None:
    budget = Budget.objects.create(project=project, cap=Decimal(100))
    first = capped(project)
    lifecycle.plan_calls(make_run(project, first.endpoint, "vanilla"))
    leased = take(first, 6)
    with CaptureQueriesContext(connection) as booked:
        spending.settle(Request.objects.filter(state="leased").lock_leases(), ())
    updates = [query["sql"] for query in booked if query["sql"].startswith("UPDATE")]
    assert len({one.run_id for one in leased}) == 2
    assert [update.split('"')[1] for update in updates] == [
        "judging_run",
        "judging_run",
        "judging_budget",
        "judging_budget",
    ]
    assert money(budget) == (0, 0)


def test_thirds_and_tenths_leave_no_rest(project: Project) -> None:
    """SQLite counts in binary fractions, in which 0.3 - 0.1 - 0.1 - 0.1 is below zero."""
    budget = Budget.objects.create(project=project, cap=Decimal(100))
    run = capped(project, "100", items=30)
    for number in (1, 2, 3, 5, 7):
        answer(run, number=number, tokens_out=33)
    assert money(run) == (0, 18 * Decimal("0.033"))
    assert money(budget) == (0, 18 * Decimal("0.033"))


def test_a_failure_frees_what_was_reserved(project: Project) -> None:
    run = capped(project, "5")
    fail(run, Rejected("no"), number=3)
    fail(run, ServerError("later", retry_after=60))
    assert money(run) == (0, 0)


def test_storing_twice_books_once(project: Project) -> None:
    run = capped(project, "5")
    found = [CallResult(one, make_answer(tokens_out=50)) for one in take(run)]
    for _ in range(2):
        store.store_results(run.endpoint, "worker", found)
    assert money(run) == (0, Decimal("0.5"))


def test_what_a_dead_worker_had_reserved_is_freed_once(project: Project) -> None:
    run = capped(project, "5")
    lost = take(run, 4, "dead")
    again = take(run, 10, "alive", now=timezone.now() + LEASE_DURATION)
    assert money(run) == (10 * CALL, 0)
    # It was not dead after all.
    store.store_results(
        run.endpoint, "dead", [CallResult(one, make_answer(tokens_out=50)) for one in lost]
    )
    store.store_results(
        run.endpoint, "alive", [CallResult(one, make_answer(tokens_out=50)) for one in again]
    )
    assert money(run) == (0, Decimal("0.5"))


def test_prices_that_were_taken_away_stop_a_capped_run(project: Project) -> None:
    run = capped(project, "5")
    Endpoint.objects.update(price_out=None)
    assert take(Run.objects.get(pk=run.pk)) == []
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert f"{run.endpoint.name} has no price" in run.reason


def test_costs_far_below_a_millionth_are_kept_and_add_up(project: Project) -> None:
    make_items(project, 5)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal("0.000123"), price_out=Decimal("0.05"))
    run = make_run(project, endpoint, cap=Decimal(1))
    lifecycle.plan_calls(run)
    answer(run, tokens_in=250, tokens_out=1)
    # 250 x 0.000123 / 10^6 + 1 x 0.05 / 10^6, five times.
    assert set(Reply.objects.values_list("cost", flat=True)) == {Decimal("0.00000008075")}
    assert money(run) == (0, Decimal("0.00000040375"))


@pytest.mark.parametrize(("cap", "budget"), [("1.5", "9"), (None, "1.5")])
def test_a_run_pauses_once_dearer_replies_pass_a_cap_and_not_all_requests_are_sent(
    project: Project, cap: str | None, budget: str
) -> None:
    """As of a model that thinks beyond its limit: ten requests of 0.1 are leased, all under the
    cap, and a reply costs 1."""
    Budget.objects.create(project=project, cap=Decimal(budget))
    run = capped(project, cap, in_flight=7)
    leased = take(run)
    assert len(leased) == 10
    dear = [CallResult(one, make_answer(tokens_out=1000)) for one in leased]
    store.store_results(run.endpoint, "worker", dear[:1])
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING
    store.store_results(run.endpoint, "worker", dear[1:2])
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    which = "the run's cost cap" if cap else "the project's budget"
    assert f"so {which} of 1.5 USD is passed: 2 USD is spent." in run.reason


@pytest.mark.parametrize("items", [1, 3])
def test_a_run_whose_last_requests_are_in_flight_is_not_paused(
    project: Project, items: int
) -> None:
    run = capped(project, "1.5", items=items)
    for leased in take(run):
        dear = CallResult(leased, make_answer(tokens_out=2000))
        store.store_results(run.endpoint, "worker", [dear])
    assert money(run) == (0, Decimal(2 * items))
    assert lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED


@pytest.mark.django_db(transaction=True)
def test_two_workers_together_never_pass_the_budget(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    budget = Budget.objects.create(project=project, cap=Decimal("0.45"))
    make_items(project, 40)
    endpoints = [make_endpoint(evaluator, **PRICES, in_flight=4) for _ in range(2)]
    started = [make_run(project, endpoint) for endpoint in endpoints]
    most: list[Decimal] = []

    def watch() -> None:
        while not over.wait(0.02):
            most.append(sum(money(Budget.objects.get()), Decimal(0)))
        connection.close()

    def ask(run: Run) -> None:
        work(run, seconds=40)
        connection.close()

    over = threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    threads = [threading.Thread(target=ask, args=(run,)) for run in started]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    watcher.join()
    reserved, spent = money(budget)
    assert max(most) <= budget.cap
    assert reserved == 0
    assert 0 < spent <= budget.cap
    for run in started:
        run.refresh_from_db()
        assert (run.state, run.reserved) == (Run.State.PAUSED, 0)
