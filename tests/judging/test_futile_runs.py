"""Runs of which nothing comes: paused after the first calls."""

import pytest

from annotation.models import Project
from judging.engine import storing
from judging.engine.storing import FIRST, Result
from judging.models import Request, Run
from judging.providers.errors import EvaluatorError, Rejected, ServerTrouble, TimedOut
from judging.running import runs
from tests.judging.builders_judging import (
    answer,
    fail,
    make_endpoint,
    make_items,
    make_run,
    results,
    take,
)

pytestmark = pytest.mark.django_db

NOWHERE = "http://127.0.0.1:9/v1"
WRONG = "The provider answered 404: the model does not exist"


def rejected(words: str = WRONG, status: int = 404) -> Rejected:
    return Rejected(words, status)


def planned(project: Project, items: int = 30, **endpoint: object) -> Run:
    make_items(project, items)
    run = make_run(project, make_endpoint(NOWHERE, **endpoint))
    runs.plan(run)
    return run


def state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def test_the_first_requests_rejected_alike_pause_a_run_once(project: Project) -> None:
    run = planned(project)
    fail(run, rejected(), number=FIRST - 1)
    assert state(run) == Run.State.RUNNING
    fail(run, rejected(), number=1)
    assert state(run) == Run.State.PAUSED
    assert run.reason.startswith(f"The first 20 requests were all rejected. {WRONG}. ")
    assert "Move this run to a corrected endpoint" in run.reason
    runs.resume(run, None)
    fail(run, rejected(), number=5)
    assert state(run) == Run.State.RUNNING
    # Who asks them again wants to know again.
    runs.retry_failed(run, None)
    fail(run, rejected(), number=FIRST)
    assert state(run) == Run.State.PAUSED


def test_fewer_requests_than_that_pause_a_run_when_all_are_rejected(project: Project) -> None:
    run = planned(project, 3)
    fail(run, rejected(), number=2)
    assert state(run) == Run.State.RUNNING
    fail(run, rejected())
    assert state(run) == Run.State.PAUSED
    assert run.reason.startswith("All 3 requests were rejected. ")
    runs.resume(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"rejected": 3})


@pytest.mark.parametrize(
    "other", [None, rejected("The provider answered 400: too long", 400), Rejected("no metric")]
)
def test_a_run_goes_on_where_the_first_requests_did_not_fail_alike(
    project: Project, other: EvaluatorError | None
) -> None:
    run = planned(project)
    fail(run, other, number=1) if other else answer(run, number=1)
    fail(run, rejected(), number=FIRST + 5)
    assert state(run) == Run.State.RUNNING


def test_what_was_answered_before_a_run_began_does_not_hide_that_all_is_rejected_now(
    project: Project,
) -> None:
    first = planned(project, 30)
    answer(first, number=4)
    runs.cancel(first, None)
    run = make_run(project, first.endpoint)
    runs.plan(run)
    fail(run, rejected(), number=FIRST)
    assert state(run) == Run.State.PAUSED
    assert "Clone this run with another endpoint" in run.reason


def test_runs_that_share_the_rejected_requests_pause_together(project: Project) -> None:
    first = planned(project)
    second = make_run(project, first.endpoint)
    runs.plan(second)
    fail(first, rejected(), number=FIRST)
    assert (state(first), state(second)) == (Run.State.PAUSED, Run.State.PAUSED)


def test_a_call_in_flight_each_that_timed_out_pauses_a_run(project: Project) -> None:
    run = planned(project, in_flight=4, timeout=7)
    # So that none is asked again before the others.
    slow = TimedOut("No full reply within 7 s.", retry_after=60)
    fail(run, slow, number=3)
    assert state(run) == Run.State.RUNNING
    fail(run, slow, number=1)
    assert state(run) == Run.State.PAUSED
    assert "after 7 s" in run.reason
    assert "(7) and calls in flight (4)" in run.reason
    # Nothing is used up, and what times out again is told again.
    runs.resume(run, None)
    assert not Request.objects.exclude(tried={}).exists()
    fail(run, slow, number=4)
    assert state(run) == Run.State.PAUSED


@pytest.mark.parametrize("other", [None, ServerTrouble("busy"), rejected()])
def test_a_run_goes_on_where_not_all_calls_timed_out(
    project: Project, other: EvaluatorError | None
) -> None:
    run = planned(project, in_flight=4)
    fail(run, other, number=1) if other else answer(run, number=1)
    fail(run, TimedOut("slow"), number=8)
    assert state(run) == Run.State.RUNNING


def test_calls_that_timed_out_by_a_limit_that_was_changed_meanwhile_prove_nothing(
    project: Project,
) -> None:
    run = planned(project, in_flight=2, timeout=7)
    leased = take(run, 2)
    before = type(run.endpoint).objects.get(pk=run.endpoint_id)
    type(run.endpoint).objects.update(timeout=70)
    storing.store(before, "worker", [Result(one, error=TimedOut("slow")) for one in leased])
    assert state(run) == Run.State.RUNNING
