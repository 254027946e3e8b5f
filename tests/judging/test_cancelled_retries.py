"""A cancelled retry leaves a run as it was, with the replies that came."""

import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotation.models import Event, Project
from judging.errors import Refused
from judging.evaluators.providers.errors import Rejected, ServerError, TimedOut
from judging.exporting import tables
from judging.models import Outcome, Request, Run
from judging.runs import lifecycle, supplements
from judging.runs.engine import lease, outcomes, store
from judging.runs.engine.store import CallResult
from operation.integrity import CHECKS
from tests.builders import make_member, make_project
from tests.judging.builders_judging import (
    ONE_CALL,
    answer,
    answer_as,
    api_client,
    fail,
    make_answer,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
    results,
    take,
)
from tests.judging.test_chains import by_step

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"
REFUSED = Rejected("The provider answered 400: no", 400)
MORE = {"max_tokens": 4096}


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    """A finished run over five items: one is detected, one unusable, three failed."""
    make_items(project, 5)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(1), price_out=Decimal(1))
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, number=1)
    answer(run, "no answer", number=1)
    fail(run, REFUSED)
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 1, "unparsable": 1, "rejected": 3}
    return run


def rows(run: Run) -> tuple[list[Any], list[Any]]:
    """Everything that a retry changes of a run's requests and outcomes."""
    requests = Request.objects.wanted_by(run).order_by("pk")
    kept = ("result", "detail", "cause", "share", "values")
    named = ("state", "cause", "message", "attempts", "tried", "leased_by", "reserved")
    return (
        list(run.outcomes.order_by("pk").values_list("pk", *kept)),
        list(requests.values_list("pk", *named)),
    )


def breaches() -> list[Any]:
    return [one for check in CHECKS.values() for one in check.find()]


@pytest.mark.parametrize("more_time", [False, True])
def test_a_retry_that_is_cancelled_at_once_changes_nothing(run: Run, more_time: bool) -> None:
    before = rows(run)
    if more_time:
        supplements.ask_again(run, None, {}, 600)
    else:
        lifecycle.retry_failed(run, None)
    assert results(run) == {"detected": 1, "pending": 4}
    supplements.cancel(run, None)
    assert (run.state, run.finished_at is None) == (Run.State.FINISHED, False)
    assert rows(run) == before
    assert breaches() == []


def test_what_a_cancelled_retry_got_counts_and_the_rest_failed_as_before(run: Run) -> None:
    lifecycle.retry_failed(run, None)
    answer(run, number=1)
    fail(run, ServerError("503"), number=1)
    # It waits for another try, by chance only for a moment.
    later = timezone.now() + timedelta(minutes=1)
    Request.objects.filter(state="waiting", attempts=1).update(next_try=later)
    assert len(take(run)) == 1
    run.refresh_from_db()
    assert run.reserved > 0
    supplements.cancel(run, None)
    assert run.state == Run.State.FINISHED
    assert results(run) == {"detected": 2, "unparsable": 1, "rejected": 2}
    failed = Request.objects.filter(state="failed")
    assert set(failed.values_list("message", flat=True)) == {str(REFUSED)}
    run.refresh_from_db()
    assert run.reserved == 0
    assert breaches() == []
    assert lifecycle.retry_failed(run, None) == 2


def test_a_paused_retry_is_cancelled_too(run: Run) -> None:
    lifecycle.retry_failed(run, None)
    lifecycle.pause(run, None)
    supplements.cancel(run, None)
    assert (run.state, results(run)["rejected"]) == (Run.State.FINISHED, 3)


def test_a_run_that_was_never_finished_stays_cancelled(project: Project) -> None:
    make_items(project, 3)
    run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, number=1)
    fail(run, REFUSED, number=1)
    lifecycle.retry_failed(run, None)
    supplements.cancel(run, None)
    assert (run.state, results(run)) == (Run.State.CANCELLED, {"detected": 1, "pending": 2})


def test_a_call_in_flight_of_a_cancelled_retry_is_hung_up_and_its_reply_kept(run: Run) -> None:
    lifecycle.retry_failed(run, None)
    leased = take(run)
    ids = [one.request_id for one in leased]
    assert lease.find_unwanted(ids) == set()
    supplements.cancel(run, None)
    assert lease.find_unwanted(ids) == set(ids)
    ended = [
        CallResult(leased[0], make_answer()),
        CallResult(leased[1], error=TimedOut("too late")),
        CallResult(leased[2]),
    ]
    store.store_results(run.endpoint, "worker", ended)
    store.decide_outcomes(ended)
    assert sorted(Request.objects.values_list("state", "cause")) == [
        ("answered", ""),
        ("answered", ""),
        ("answered", ""),
        ("failed", "rejected"),
        ("failed", "rejected"),
    ]
    assert results(run)["rejected"] == 3
    # The reply came after all. A retry takes it without a call.
    assert breaches() == []
    assert Run.objects.to_retry().filter(pk=run.pk).exists()


def test_a_request_that_another_run_waits_for_is_sent_though_a_retry_is_cancelled(run: Run) -> None:
    lifecycle.retry_failed(run, None)
    other = make_run(run.project, run.endpoint, ONE_CALL)
    lifecycle.plan_calls(other)
    supplements.cancel(run, None)
    assert (run.state, results(run)["rejected"]) == (Run.State.FINISHED, 3)
    assert answer(other) == 3
    lifecycle.finish_if_done(other)
    assert results(other) == {"detected": 4, "unparsable": 1}
    run.refresh_from_db()
    assert (run.state, results(run)["rejected"]) == (Run.State.FINISHED, 3)


def test_a_chain_that_a_cancelled_retry_continued_is_missing_as_before() -> None:
    other = make_project(task_type="rubric-matrix")
    make_responses(other, ["1/0/1", "0/0/0"])
    chain = make_run(other, make_endpoint(NOWHERE), "score-chain")
    lifecycle.plan_calls(chain)
    fail(chain, REFUSED)
    chain.refresh_from_db()
    lifecycle.resume(chain, None)  # a run that only fails is paused
    lifecycle.retry_failed(chain, None)
    assert [answer_as(chain, by_step, number) for number in (2, 1)] == [2, 1]
    assert chain.calls.filter(request__state="waiting").count() == 2
    supplements.cancel(chain, None)
    assert (chain.state, results(chain)) == (Run.State.FINISHED, {"rejected": 2})
    assert not Request.objects.wanted_by(chain).still_open().exists()
    assert breaches() == []
    # The replies that came are used by the next retry.
    lifecycle.retry_failed(chain, None)
    assert [answer_as(chain, by_step) for _ in range(3)] == [2, 1, 0]
    lifecycle.finish_if_done(chain)
    assert results(chain) == {"scored": 2}


def test_a_retry_during_a_supplement_is_cancelled_with_it(run: Run) -> None:
    before = rows(run)
    supplements.ask_again(run, None, MORE)
    lifecycle.retry_failed(run, None)
    supplements.cancel(run, None)
    assert run.state == Run.State.FINISHED
    assert rows(run) == before


def test_a_retry_of_the_failed_calls_of_a_supplement_is_cancelled_alone(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    fail(run, REFUSED)
    lifecycle.finish_if_done(run)
    before = rows(run)
    run.refresh_from_db()
    lifecycle.retry_failed(run, None)
    assert supplements.get_cancellable(run) == "retry"
    supplements.cancel(run, None)
    assert (run.state, rows(run)) == (Run.State.FINISHED, before)
    [told] = supplements.list_supplements(run)
    assert not told.stopped


def test_replies_that_are_parsed_again_are_not_cancelled(run: Run) -> None:
    """A worker that died has parsed only a part of them."""
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.RUNNING, pinned={**run.pinned, outcomes.PROGRESS_KEY: 0}
    )
    with pytest.raises(Refused, match="are being parsed again"):
        supplements.cancel(run, None)
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING


def test_a_person_is_told_that_only_the_retry_is_cancelled(run: Run, client: Client) -> None:
    lead = make_member(run.project, "lead").account
    assert lead
    client.force_login(lead)
    page = f"/projects/{run.project.slug}/runs/{run.number}/"
    client.post(page + "retry/")
    asked = client.get(page + "cancel/").content.decode()
    assert "Cancel the retry of run 1?" in asked
    assert "cannot be resumed" not in asked
    said = client.post(page + "cancel/", follow=True).content.decode()
    assert "The retry of run 1 is cancelled." in said
    assert "Retry failed requests" in said


def test_a_program_cancels_a_retry(run: Run) -> None:
    program = api_client(make_member(run.project, "lead"))
    path = f"/api/v1/projects/{run.project.slug}/runs/{run.number}/"
    assert program.post(path + "retry/").json()["run"]["state"] == "running"
    told = program.post(path + "cancel/").json()
    assert (told["run"]["state"], told["missing"]["rejected"]) == ("finished", 3)
    kinds = Event.objects.filter(subject="run 1").order_by("pk").values_list("kind", flat=True)
    assert [*kinds][-3:] == ["run running", "run cancelled", "run finished"]


def test_pending_outcomes_of_a_retry_tell_nobody_what_is_kept_for_it(run: Run) -> None:
    lifecycle.retry_failed(run, None)
    reader = api_client(make_member(run.project, "lead"))
    path = f"/api/v1/projects/{run.project.slug}/runs/{run.number}/outcomes/"
    for rows in (reader.get(path).json()["results"], [*tables.read_outcomes(run.project)]):
        told = {row["result"]: bool(row["values"]) for row in rows}
        assert told == {"detected": True, "pending": False}


def test_a_run_in_place_of_a_retried_one_leaves_its_results(project: Project) -> None:
    """The evaluator took the parameter before, and refuses it now."""
    make_items(project, 3)
    run = make_run(project, make_endpoint(NOWHERE, parameters={"temperature": 0.5}), ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, number=1)
    fail(run, REFUSED)
    lifecycle.finish_if_done(run)
    lifecycle.retry_failed(run, None)
    fail(run, Rejected("The provider answered 400: Unsupported parameter: temperature", 400), 1)
    run.refresh_from_db()
    lifecycle.restart_without_parameter(run, None)
    assert run.state == Run.State.FINISHED
    assert results(run) == {"detected": 1, "rejected": 2}


@pytest.mark.django_db(transaction=True)
def test_a_retry_is_cancelled_while_its_replies_are_stored(project: Project) -> None:
    make_items(project, 30)
    run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
    lifecycle.plan_calls(run)
    fail(run, REFUSED)
    run.refresh_from_db()
    lifecycle.resume(run, None)  # a run that only fails is paused
    lifecycle.retry_failed(run, None)
    leased = take(run)
    together = threading.Barrier(2)

    def store_each() -> None:
        together.wait()
        for one in leased:
            ended = [CallResult(one, make_answer())]
            store.store_results(run.endpoint, "worker", ended)
            store.decide_outcomes(ended)
        connection.close()

    storing = threading.Thread(target=store_each)
    storing.start()
    together.wait()
    supplements.cancel(Run.objects.get(pk=run.pk), None)
    storing.join()
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    assert Request.objects.filter(state="answered").count() == 30
    assert not run.outcomes.filter(result=Outcome.Result.PENDING).exists()
    assert breaches() == []
