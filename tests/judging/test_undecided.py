"""An outcome that cannot be decided pauses its run, and stops no other run at the endpoint."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DataError, InterfaceError, OperationalError

from annotation.models import Event, Project
from judging.models import Endpoint, Run
from judging.runs import lifecycle, reparse
from judging.runs.engine import store
from judging.runs.engine.store import CallResult
from judging.strategies import Strategy
from judging.strategies.replies import outputs
from tests.builders import make_project
from tests.judging.builders_judging import (
    ONE_CALL,
    TWO_CALLS,
    answer,
    make_answer,
    make_endpoint,
    make_items,
    make_run,
    results,
    take,
    work,
)
from tests.services.scripted_evaluator import ScriptedEvaluator

NOBODY = "http://127.0.0.1:1/v1"


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """What one strategy's replies meet until it is undone."""
    parse = outputs.parse_reply

    def fail(strategy: Strategy, *said: Any, **more: Any) -> outputs.ParsedReply:
        if strategy.slug == ONE_CALL:
            raise DataError("integer out of range\nDETAIL:  Failing row contains (secret).")
        return parse(strategy, *said, **more)

    with monkeypatch.context() as patch:
        patch.setattr(outputs, "parse_reply", fail)
        yield patch


def make_both(endpoint: Endpoint) -> tuple[Run, Run]:
    """A run of the strategy with the fault, and a run of another project at the same endpoint."""
    runs = []
    for slug, strategy in (("broken", ONE_CALL), ("well", TWO_CALLS)):
        project = make_project(slug)
        make_items(project, 5)
        runs.append(make_run(project, endpoint, strategy))
    return runs[0], runs[1]


def is_paused_for_it(run: Run) -> bool:
    run.refresh_from_db()
    assert "secret" not in run.reason
    return run.state == Run.State.PAUSED and run.reason.startswith(
        "An outcome could not be decided: DataError: integer out of range. Report it"
    )


@pytest.mark.django_db(transaction=True)
def test_a_fault_in_one_project_leaves_the_run_of_another_at_the_endpoint_alone(
    evaluator: ScriptedEvaluator,
    fault: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, well = make_both(make_endpoint(evaluator))
    assert work(well).state == Run.State.FINISHED
    work(broken)
    assert is_paused_for_it(broken)
    assert results(broken) == {"pending": 5}
    [told, *_] = [one for one in caplog.records if one.exc_info and "project" in one.message]
    assert told.message == "An outcome of run 1 of project broken could not be decided."
    lifecycle.resume(broken, None)
    assert is_paused_for_it(broken)
    fault.undo()
    lifecycle.resume(broken, None)
    assert work(broken).state == Run.State.FINISHED
    assert "pending" not in results(broken)
    assert len(evaluator.log) == 15


@pytest.mark.django_db
def test_of_replies_that_come_together_those_of_other_runs_are_decided(
    fault: pytest.MonkeyPatch,
) -> None:
    broken, well = make_both(make_endpoint(NOBODY))
    for run in (broken, well):
        lifecycle.plan_calls(run)
    ended = [CallResult(one, make_answer()) for one in take(broken)]
    assert len({one.leased.run_id for one in ended}) == 2
    store.store_results(broken.endpoint, "worker", ended)
    assert store.decide_outcomes(ended) == 5
    assert (results(broken), "pending" in results(well)) == ({"pending": 5}, False)
    assert is_paused_for_it(broken)
    assert Event.objects.get(kind="run paused").data["reason"] == broken.reason


@pytest.mark.django_db
def test_a_run_whose_replies_are_there_when_it_is_planned_pauses_once_it_is(
    project: Project, fault: pytest.MonkeyPatch
) -> None:
    make_items(project, 3)
    endpoint = make_endpoint(NOBODY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "settle_or_pause", lambda ids: 0)
        first = make_run(project, endpoint)
        lifecycle.plan_calls(first)
        assert answer(first) == 3
    second = make_run(project, endpoint)
    lifecycle.plan_calls(second)
    assert second.calls.count() == 3
    assert is_paused_for_it(second)


@pytest.mark.django_db
def test_a_parser_that_fails_pauses_the_run_that_is_switched_to_it(
    project: Project, fault: pytest.MonkeyPatch
) -> None:
    make_items(project, 3)
    fault.undo()
    run = make_run(project, make_endpoint(NOBODY))
    lifecycle.plan_calls(run)
    answer(run)
    lifecycle.finish_if_done(run)
    assert run.state == Run.State.FINISHED
    decided = results(run)
    fault.setattr(lifecycle.outcomes, "decide_remaining", lambda run: 1 / 0)
    reparse.switch_parser(run, None)
    assert (run.state, "ZeroDivisionError" in run.reason) == (Run.State.PAUSED, True)
    fault.undo()
    lifecycle.resume(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, decided)


@pytest.mark.django_db
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_lost_connection_is_no_fault_of_a_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def lose(*_: Any, **__: Any) -> outputs.ParsedReply:
        raise error("the connection is lost")

    make_items(project, 3)
    run = make_run(project, make_endpoint(NOBODY))
    lifecycle.plan_calls(run)
    monkeypatch.setattr(outputs, "parse_reply", lose)
    with pytest.raises(error):
        answer(run)
    with pytest.raises(error):
        lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING
