import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client

from annotation.models import Project
from judging.archive import load
from judging.errors import Refused
from judging.exporting import tables
from judging.models import Call, Outcome, Reply, Run
from judging.results.tables import methods
from judging.runs import lifecycle, supplements
from judging.runs.engine import store
from judging.runs.engine.store import CallResult
from tests.builders import make_member, make_project
from tests.judging.archive.builders_archive import archive, lines
from tests.judging.archive.test_load import changed
from tests.judging.builders_cases import CASES
from tests.judging.builders_judging import (
    ONE_CALL,
    answer,
    make_answer,
    make_endpoint,
    make_items,
    make_run,
    results,
    take,
)

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"
MORE = {"max_tokens": 4096}


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def run(project: Project) -> Run:
    """A finished run over three items, two of whose replies have no answer."""
    make_items(project, 3)
    run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, number=1)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 1, "unparsable": 2}
    return run


def test_unusable_items_are_asked_again_and_counted_once(run: Run) -> None:
    before = run.digest
    assert supplements.ask_again(run, None, MORE) == 2
    assert run.state == Run.State.RUNNING
    assert answer(run, number=1) == 1
    assert answer(run, "again no answer") == 1
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 2, "unparsable": 1}
    assert run.digest != before
    assert Reply.objects.filter(request__calls__run=run).count() == 5
    [told] = supplements.list_supplements(run)
    assert (told.parameters, told.asked, told.usable) == (MORE, 2, 1)


def test_a_supplement_sends_the_changed_parameters(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    assert all(b"4096" in one.body for one in take(run))


def test_a_second_supplement_asks_what_is_left(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    answer(run, number=1)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert supplements.ask_again(run, None, {"max_tokens": 8192}) == 1
    answer(run)
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 3}


def test_a_run_that_is_asked_again_is_not_asked_once_more(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    with pytest.raises(Refused, match="is running"):
        supplements.ask_again(run, None, {"max_tokens": 8192})


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"temperature": 0},
        {"seed": None},
        {"api_key": "x"},
        {"model": "other"},
        {"n": 2},
        {"top_p": math.nan},
        {"top_p": math.inf},
    ],
)
def test_parameters_must_change_something_be_sendable_and_hold_no_key(
    run: Run, parameters: dict[str, Any]
) -> None:
    with pytest.raises(Refused):
        supplements.estimate_supplement(run, parameters)
    with pytest.raises(Refused):
        supplements.ask_again(run, None, parameters)
    run.refresh_from_db()
    assert (run.state, results(run)) == (Run.State.FINISHED, {"detected": 1, "unparsable": 2})


def test_a_limit_replaces_the_limit_of_the_run_under_the_name_that_the_model_takes(
    project: Project,
) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOWHERE, model="gpt-5", parameters={"max_tokens": 500})
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, MORE)
    [leased] = take(run)
    sent = json.loads(leased.body)
    assert (sent["max_completion_tokens"], sent.get("max_tokens")) == (4096, None)


def test_a_cancelled_supplement_keeps_what_came(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    answer(run, number=1)
    supplements.cancel(run, None)
    assert run.state == Run.State.FINISHED
    assert results(run) == {"detected": 2, "unparsable": 1}


def test_a_cancelled_supplement_can_be_asked_again(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    answer(run, number=1)
    supplements.cancel(run, None)
    assert supplements.ask_again(run, None, MORE) == 1
    assert answer(run) == 1
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 3}


def test_an_estimate_asks_nothing(run: Run) -> None:
    found = supplements.estimate_supplement(run, MORE)
    assert (found.items, found.calls) == (2, 2)
    assert run.calls.count() == 3


def test_a_supplement_is_estimated_and_started_on_its_page(
    run: Run, client: Client, project: Project
) -> None:
    client.force_login(make_member(project, "lead").account)
    page = f"/projects/{project.slug}/runs/{run.number}/supplement/"
    sent = {"parameters": '{"max_tokens": 4096}', "step": "estimate"}
    assert "2 items, 2 calls" in client.post(page, sent).content.decode()
    assert client.post(page, {**sent, "parameters": "no"}).status_code == 200
    assert client.post(page, {**sent, "step": "ask"}).status_code == 302
    answer(run)
    lifecycle.finish_if_done(Run.objects.get(pk=run.pk))
    shown = client.get(f"/projects/{project.slug}/runs/{run.number}/").content.decode()
    assert "Supplement 1: 2 items" in shown
    asked = Run.objects.get(pk=run.pk)
    assert "were asked again with" in " ".join(methods._reply_sentences(asked))


def test_a_program_asks_again_and_is_told_what_is_refused(
    run: Run, program: Client, project: Project
) -> None:
    path = f"/api/v1/projects/{project.slug}/runs/{run.number}/supplement/"
    body = {"parameters": MORE}
    sent = program.post(path, body, content_type="application/json")
    assert (sent.status_code, sent.json()["run"]["state"]) == (200, "running")
    again = program.post(path, body, content_type="application/json")
    assert again.status_code == 422
    assert f"Run {run.number} is running" in again.content.decode()


def test_the_command_asks_again_when_it_is_told_to_start(run: Run, project: Project) -> None:
    words = ("supplement_run", str(run.number), "--project", project.slug)
    call_command(*words, "--parameters", '{"max_tokens": 4096}')
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    call_command(*words, "--parameters", '{"max_tokens": 4096}', "--start")
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING


def test_a_cancelled_supplement_loses_no_money_and_opens_nothing(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(1), price_out=Decimal(1))
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, MORE)
    answer(run, number=1)
    run.refresh_from_db()
    spent = run.spent
    assert spent > 0
    supplements.cancel(run, None)
    run.refresh_from_db()
    assert (run.state, run.spent) == (Run.State.FINISHED, spent)
    assert results(run) == {"detected": 1, "unparsable": 1}


def test_a_reply_that_comes_after_its_supplement_was_cancelled_is_paid_for(
    project: Project,
) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(1), price_out=Decimal(1))
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, MORE)
    [leased] = take(run, 1)
    run.refresh_from_db()
    before = run.spent
    supplements.cancel(run, None)
    late = [CallResult(leased, make_answer())]
    store.store_results(endpoint, "worker", late)
    store.decide_outcomes(late)
    run.refresh_from_db()
    assert (run.state, run.spent > before) == (Run.State.FINISHED, True)
    assert (run.reserved, results(run)) == (0, {"unparsable": 1})


def test_a_cancelled_chain_keeps_its_replies_and_the_item_its_original_result() -> None:
    """Of three steps the supplement has made the first."""
    project = CASES["score-chain"].project()
    run = make_run(project, make_endpoint(NOWHERE), "score-chain", limit=1)
    lifecycle.plan_calls(run)
    answer(run, "<RESULT>ants</RESULT>", finish="length")
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert results(run) == {"truncated": 1}
    supplements.ask_again(run, None, MORE)
    assert answer(run, "<RESULT>ants</RESULT>") == 1
    assert run.calls.filter(supplement=1).count() == 2
    supplements.cancel(run, None)
    run.refresh_from_db()
    assert (run.state, results(run)) == (Run.State.FINISHED, {"truncated": 1})
    assert run.calls.filter(supplement=1, request__reply__isnull=False).count() == 1
    [told] = supplements.list_supplements(run)
    assert (told.asked, told.usable, told.stopped) == (1, 0, True)
    # A later supplement begins anew, and nothing asks the stopped one again.
    assert supplements.ask_again(run, None, {"max_tokens": 8192}) == 1
    assert set(run.calls.filter(request__state="waiting").values_list("supplement", flat=True)) == {
        2
    }


def test_if_a_cancel_fails_on_the_way_the_run_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    supplements.ask_again(run, None, MORE)

    def fail(ids: Any) -> None:
        raise RuntimeError("the database went away")

    monkeypatch.setattr(supplements.outcomes, "settle", fail)
    with pytest.raises(RuntimeError):
        supplements.cancel(run, None)
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING
    assert run.calls.filter(supplement=1).count() == 2


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """An archive of a run with a supplement that gave one of two items a reading."""
    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 2)
        run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
        lifecycle.plan_calls(run)
        answer(run, "no answer")
        lifecycle.finish_if_done(run)
        supplements.ask_again(run, None, MORE)
        answer(run, number=1)
        answer(run, "again no answer")
        lifecycle.finish_if_done(run)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    return path


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
@pytest.mark.django_db(transaction=True)
def test_an_archive_keeps_supplements(frozen: Path) -> None:
    load.load_archive(frozen)
    run = Run.objects.get()
    assert sorted(run.calls.values_list("supplement", flat=True)) == [0, 0, 1, 1]
    [told] = supplements.list_supplements(run)
    assert (told.parameters, told.asked, told.usable) == (MORE, 2, 1)
    assert sorted(Outcome.objects.values_list("result", flat=True)) == ["detected", "missing"]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="archives are loaded into SQLite")
@pytest.mark.django_db(transaction=True)
def test_an_archive_from_before_supplements_has_none(tmp_path: Path) -> None:
    def forget(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            del row["supplement"]

    with transaction.atomic():
        project = make_project("fbi")
        make_items(project, 1)
        run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
        lifecycle.plan_calls(run)
        answer(run)
        lifecycle.finish_if_done(run)
        path = archive(project, tmp_path / "results.zip")
        transaction.set_rollback(True)
    assert lines(path, "calls")[0]["supplement"] == 0
    changed(path, "calls", forget)
    load.load_archive(path)
    assert Call.objects.get().supplement == 0


def test_the_export_of_calls_says_which_supplement_sent_what(run: Run, project: Project) -> None:
    supplements.ask_again(run, None, MORE)
    answer(run)
    rows = list(tables.read_calls(project))
    sent = sorted((row["supplement"], row["sends"].get("max_tokens")) for row in rows)
    own = run.sends().get("max_tokens")
    assert sent == [(0, own), (0, own), (0, own), (1, 4096), (1, 4096)]


def test_a_supplement_that_was_cancelled_before_its_first_reply_is_no_part_of_the_methods(
    run: Run, project: Project
) -> None:
    supplements.ask_again(run, None, MORE)
    supplements.cancel(run, None)
    run.refresh_from_db()
    assert (run.state, results(run)) == (Run.State.FINISHED, {"detected": 1, "unparsable": 2})
    assert "asked again" not in methods.write_methods(project, [run]).text
