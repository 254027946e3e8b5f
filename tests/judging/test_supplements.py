import json
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from drf_spectacular.generators import SchemaGenerator

from annotation.models import Event, Project
from formats.rows import FormatError
from judging.archive import load
from judging.errors import Refused
from judging.evaluators.providers.errors import Rejected, ServerError
from judging.exporting import tables
from judging.models import Budget, Call, Outcome, Reply, Request, Run
from judging.results.tables import methods
from judging.runs import (
    canaries,
    derived,
    lifecycle,
    pinning,
    progress,
    run_config,
    supplements,
)
from judging.runs.engine import outcomes, store
from judging.runs.engine.store import CallResult
from judging.runs.run_config import RunOverrides
from operation.integrity import CHECKS
from tests.builders import make_member, make_project
from tests.judging.archive.builders_archive import archive, lines
from tests.judging.archive.test_load import changed
from tests.judging.builders_cases import CASES
from tests.judging.builders_judging import (
    ONE_CALL,
    TWO_CALLS,
    answer,
    fail,
    make_answer,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
    results,
    take,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"
MORE = {"max_tokens": 4096}
LESS = {"max_tokens": 10}


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


def test_what_a_supplement_repaired_is_no_longer_told_as_unusable(run: Run) -> None:
    assert progress.count_progress(run).failures == {"unparsable": 2}
    supplements.ask_again(run, None, MORE)
    answer(run, number=1)
    assert progress.count_progress(run).failures == {"unparsable": 1}
    answer(run, "again no answer")
    lifecycle.finish_if_done(run)
    # Its first reply and its second.
    assert progress.count_progress(run).failures == {"unparsable": 2}
    run.refresh_from_db()
    supplements.ask_again(run, None, {"max_tokens": 8192})
    answer(run)
    assert progress.count_progress(run).failures == {}


def test_counting_causes_compares_a_call_only_with_those_of_its_outcome(run: Run) -> None:
    """While many runs are planned, PostgreSQL has no statistics on the newest, and may choose to
    read all calls of the run for each of its calls: a worker counted for minutes."""

    def find_comparisons() -> list[str]:
        with CaptureQueriesContext(connection) as asked:
            progress.count_progress(run)
        return [one["sql"] for one in asked if '"supplement" >' in one["sql"]]

    assert find_comparisons() == []
    supplements.ask_again(run, None, MORE)
    comparisons = find_comparisons()
    # Replies that cannot be used alone: no request has failed.
    assert len(comparisons) == 1
    for sql in comparisons:
        compared = sql[sql.index("NOT (EXISTS") : sql.index('"supplement" >')]
        assert '"outcome_id" =' in compared
        assert '"run_id"' not in compared


def test_a_supplement_sends_the_changed_parameters(run: Run) -> None:
    supplements.ask_again(run, None, MORE)
    leased = take(run)
    assert all(b"4096" in one.body for one in leased)
    assert {one.timeout for one in leased} == {None}


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
    ("parameters", "why"),
    [
        ({}, "Change at least one parameter"),
        ({"temperature": 0}, "already asked with these parameters"),
        ({"seed": None}, "already asked with these parameters"),
        ({"api_key": "x"}, "'api_key' looks like a key"),
        ({"model": "other"}, "cannot be set: model"),
        ({"n": 2}, "cannot be set: n"),
        ({"top_p": math.nan}, "cannot be stored"),
        ({"top_p": math.inf}, "cannot be stored"),
    ],
)
def test_parameters_must_change_something_be_sendable_and_hold_no_key(
    run: Run, parameters: dict[str, Any], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        supplements.estimate_supplement(run, parameters)
    with pytest.raises(Refused, match=why):
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


def test_a_cancel_after_the_last_reply_keeps_the_run(run: Run) -> None:
    """No worker has finished the run yet."""
    supplements.ask_again(run, None, MORE)
    answer(run)
    supplements.cancel(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"detected": 3})
    assert [one.stopped for one in supplements.list_supplements(run)] == [False]


def test_runs_combined_from_a_run_follow_what_its_cancelled_supplement_changed(
    run: Run, project: Project
) -> None:
    other = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
    lifecycle.plan_calls(other)
    answer(other)
    lifecycle.finish_if_done(other)
    votes = derived.derive_run(project, strategy=make_strategy("majority"), sources=[run, other])
    assert results(votes) == {"detected": 1, "undetected": 2}
    supplements.ask_again(run, None, MORE)
    answer(run, number=1)
    supplements.cancel(run, None)
    assert results(votes) == {"detected": 2, "undetected": 1}


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


def test_an_estimate_counts_requests_that_items_share_once_and_answered_ones_as_free(
    project: Project, client: Client
) -> None:
    """Three items share a gold answer, so six calls need four requests. Another run has sent one
    of them with the same limit."""
    same = {"prompt": "How many legs has an ant?", "gold": "6"}
    for item in make_items(project, 3):
        item.revisions.update(texts={**same, "perturbed": f"{item.position}"}, digest=item.key)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(0), price_out=Decimal(1000))
    run = make_run(project, endpoint, TWO_CALLS)
    lifecycle.plan_calls(run)
    assert answer(run, "no answer", tokens_out=20) == 4
    lifecycle.finish_if_done(run)
    other = make_run(project, endpoint, TWO_CALLS, own=RunOverrides(parameters=MORE))
    lifecycle.plan_calls(other)
    answer(other, number=1, tokens_out=20)
    lifecycle.cancel(other, None)
    found = supplements.estimate_supplement(run, MORE)
    assert (found.items, found.calls) == (3, 6)
    assert (found.requests, found.stored, found.to_ask) == (4, 1, 3)
    # Replies of 20 tokens as until now, up to 4,096 tokens, at 0.001 a token.
    assert found.price
    assert (found.price.low, found.price.high) == (Decimal("0.06"), Decimal("12.288"))
    client.force_login(make_member(project, "lead").account)
    page = f"/projects/{project.slug}/runs/{run.number}/supplement/"
    told = client.post(page, {"parameters": json.dumps(MORE), "step": "estimate"})
    said = told.content.decode()
    assert "6 calls, 4 distinct requests, 1 already answered and free: 3 requests to send" in said
    assert "0.06 to 12.29 USD" in said
    assert "also those that have a usable reply" in said
    before = Request.objects.count()
    supplements.ask_again(run, None, MORE)
    assert (answer(run), Request.objects.count()) == (3, before)


def test_an_estimate_says_what_is_left_of_the_cap_and_the_budget_if_that_is_less(
    project: Project, client: Client
) -> None:
    """Two replies of 10 tokens at 0.001 leave 0.98 of the cap. Two more cost up to 4,096 each."""
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(0), price_out=Decimal(1000))
    Budget.objects.create(project=project, cap=Decimal("0.03"))
    run = make_run(project, endpoint, ONE_CALL, cap=Decimal(1), own=RunOverrides(parameters=LESS))
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    client.force_login(make_member(project, "lead").account)
    page = f"/projects/{project.slug}/runs/{run.number}/supplement/"
    told = client.post(page, {"parameters": json.dumps(MORE), "step": "estimate"})
    said = unescape(told.content.decode())
    assert "The 0.98 USD left of the run's cap may not be enough." in said
    assert "The 0.01 USD left of the project's budget will not be enough." in said
    assert "Budget</a>" in said
    found = supplements.estimate_supplement(run, {"max_tokens": 12})
    assert [one.limit for one in found.shortages] == ["budget"]


def make_truncated_chain() -> Run:
    """A finished run of a strategy with three steps over one item, whose first reply was cut."""
    project = CASES["score-chain"].project()
    run = make_run(project, make_endpoint(NOWHERE), "score-chain", limit=1)
    lifecycle.plan_calls(run)
    answer(run, "<RESULT>ants</RESULT>", finish="length")
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def test_an_estimate_counts_each_later_call_of_a_chain() -> None:
    run = make_truncated_chain()
    found = supplements.estimate_supplement(run, MORE)
    assert (found.items, found.calls, found.to_ask) == (1, 3, 3)


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
    assert "were sent again with" in " ".join(methods._reply_sentences(asked))


def test_no_supplement_starts_with_other_parameters_than_were_estimated(
    run: Run, client: Client, project: Project
) -> None:
    client.force_login(make_member(project, "lead").account)
    page = f"/projects/{project.slug}/runs/{run.number}/supplement/"
    sent = {"parameters": '{"max_tokens": 90000}', "estimated": '{"max_tokens": 4096} '}
    shown = client.post(page, {**sent, "step": "ask"})
    assert (shown.status_code, run.calls.count()) == (409, 3)
    assert "This is the new estimate" in shown.content.decode()
    estimated = {**sent, "step": "ask", "estimated": f"{sent['parameters']} "}
    assert client.post(page, {**estimated, "timeout": "9"}).status_code == 409
    again = client.post(page, estimated)
    assert (again.status_code, run.calls.count()) == (302, 5)


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


def test_a_program_is_told_first_what_it_would_cost(project: Project, program: Client) -> None:
    """Each of two prompts may have 4,096 tokens at 2 per million; their input comes to less."""
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(1), price_out=Decimal(2))
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    path = f"/api/v1/projects/{project.slug}/runs/{run.number}/supplement/estimate/"
    told = program.post(path, {"parameters": MORE}, content_type="application/json").json()
    assert (told["items"], told["calls"], told["currency"]) == (2, 2, "USD")
    assert 2 * 4096 * 2 / 1e6 < float(told["cost"]) < 2 * 4096 * 2.5 / 1e6
    assert (told["requests"], told["stored"], told["to_ask"]) == (2, 0, 2)
    assert float(told["price"]["low"]) < float(told["price"]["high"]) == float(told["cost"])
    run.refresh_from_db()
    assert (run.state, run.calls.count()) == (Run.State.FINISHED, 2)
    refused = program.post(path, {"parameters": {}}, content_type="application/json")
    assert refused.status_code == 422
    assert "Change at least one parameter" in refused.json()["detail"]


def test_the_schema_describes_the_estimate_of_a_supplement() -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    path = "/api/v1/projects/{slug}/runs/{number}/supplement/estimate/"
    operation = schema["paths"][path]["post"]
    content = operation["responses"]["200"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/SupplementEstimate"}
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/SupplementRequest"
    }
    cost = schema["components"]["schemas"]["SupplementEstimate"]["properties"]["cost"]
    assert cost["type"] == ["string", "null"]


def test_the_command_asks_again_when_it_is_told_to_start(run: Run, project: Project) -> None:
    words = ("supplement_run", str(run.number), "--project", project.slug)
    call_command(*words, "--parameters", '{"max_tokens": 4096}')
    with pytest.raises(CommandError, match="required: --project"):
        call_command(*words[:2])
    run.refresh_from_db()
    assert run.state == Run.State.FINISHED
    call_command(*words, "--parameters", '{"max_tokens": 4096}', "--timeout", "600", "--start")
    run.refresh_from_db()
    assert (run.state, run.pinned["timeout"]) == (Run.State.RUNNING, 600)


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


def test_a_call_in_flight_ends_before_the_run_whose_supplement_is_cancelled(
    project: Project,
) -> None:
    """It is paid for, so its reply counts; what waits is not sent."""
    make_items(project, 3)
    endpoint = make_endpoint(NOWHERE, price_in=Decimal(1), price_out=Decimal(1))
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, MORE)
    came, lost = take(run, 2)
    supplements.cancel(run, None)
    assert (run.state, results(run)) == (Run.State.RUNNING, {"pending": 2, "unparsable": 1})
    [told] = supplements.list_supplements(run)
    assert (told.asked, told.stopped) == (2, True)
    late = [CallResult(came, make_answer()), CallResult(lost, error=ServerError("500"))]
    store.store_results(endpoint, "worker", late)
    store.decide_outcomes(late)
    assert lifecycle.finish_if_done(run)
    run.refresh_from_db()
    assert (run.state, run.reserved) == (Run.State.FINISHED, 0)
    assert results(run) == {"detected": 1, "unparsable": 2}
    assert [*CHECKS["spent"].find(), *CHECKS["spent-once"].find()] == []


def test_an_item_with_one_of_two_new_replies_keeps_its_result_if_its_supplement_is_cancelled(
    project: Project,
) -> None:
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOWHERE), "pairwise")
    lifecycle.plan_calls(run)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, MORE)
    assert run.calls.filter(supplement=1).count() == 4
    answer(run, number=1)
    supplements.cancel(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"unparsable": 2})
    assert run.calls.filter(supplement=1).count() == 1


def test_a_cancelled_chain_keeps_its_replies_and_the_item_its_original_result() -> None:
    """Of three steps the supplement has made the first."""
    run = make_truncated_chain()
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


@pytest.mark.django_db(transaction=True)
def test_calls_that_timed_out_are_sent_again_with_more_time(
    project: Project, evaluator: ScriptedEvaluator, client: Client
) -> None:
    """The evaluator takes 1.2 seconds for a reply, and its endpoint waits for one."""
    evaluator.script = Script(latency=1.2)
    make_items(project, 2)
    endpoint = make_endpoint(evaluator, timeout=1, price_in=Decimal(1), price_out=Decimal(1))
    run = make_run(project, endpoint, ONE_CALL)
    lifecycle.plan_calls(run)
    Request.objects.update(tried={"timed_out": 2})
    lifecycle.resume(work(run), None)
    run.refresh_from_db()
    assert (run.state, results(run)) == (Run.State.FINISHED, {"timed_out": 2})
    estimated = supplements.estimate_supplement(run, {}, 30)
    assert (estimated.items, estimated.calls) == (2, 2)
    assert estimated.cost
    before = run.digest
    assert supplements.ask_again(run, None, {}, 30) == 2
    run = work(run)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"detected": 2})
    assert (run.digest, supplements.list_supplements(run)) == (before, [])
    client.force_login(make_member(project, "lead").account)
    shown = client.get(f"/projects/{project.slug}/runs/{run.number}/").content.decode()
    assert "30 s per call" in shown
    assert "the run's own" in unescape(shown)


def test_calls_of_a_supplement_may_take_more_time(run: Run, program: Client) -> None:
    path = f"/api/v1/projects/{run.project.slug}/runs/{run.number}/supplement/"
    sent = program.post(path, {"parameters": MORE, "timeout": 600}, "application/json")
    assert sent.json()["run"]["pinned"]["timeout"] == 600
    run.refresh_from_db()
    assert [one.timeout for one in take(run)] == [600, 600]
    event = Event.objects.filter(kind="run running").latest("pk")
    assert (event.data["supplement"], event.data["timeout"]) == (1, 600)


def test_more_time_alone_needs_a_request_that_failed(
    run: Run, client: Client, project: Project
) -> None:
    with pytest.raises(Refused, match="more time alone changes nothing"):
        supplements.ask_again(run, None, {}, 600)
    with pytest.raises(Refused, match="1 to 32,767 seconds"):
        supplements.ask_again(run, None, MORE, 0)
    client.force_login(make_member(project, "lead").account)
    page = f"/projects/{project.slug}/runs/{run.number}/supplement/"
    said = client.post(page, {"parameters": "", "timeout": "600"}).content.decode()
    assert "more time alone changes nothing" in said
    assert 'value="600"' in said
    assert "Enter a whole number" in client.post(page, {"timeout": "much"}).content.decode()
    kept = f"Leave empty to keep {run.endpoint.timeout} s."
    assert kept in client.get(page).content.decode()


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
@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("calls", {"supplement": 7}),
        ("calls", {"supplement": -1}),
        ("runs", {"pinned": {"supplements": "x"}}),
        ("runs", {"pinned": {"supplements": [{"parameters": None}]}}),
    ],
)
def test_an_archive_with_calls_of_no_supplement_is_not_loaded(
    frozen: Path, table: str, values: dict[str, Any]
) -> None:
    def spoil(rows: list[dict[str, Any]]) -> None:
        for name, value in values.items():
            rows[-1][name] = rows[-1][name] | value if isinstance(value, dict) else value

    changed(frozen, table, spoil)
    with pytest.raises(FormatError, match="run 1 has calls of supplements that it lacks"):
        load.load_archive(frozen)


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


def test_a_parameter_that_a_supplement_changes_and_the_evaluator_refuses_stops_the_supplement_alone(
    run: Run,
) -> None:
    supplements.ask_again(run, None, {"temperature": 1})
    fail(run, Rejected("The provider answered 400: Unsupported value: 'temperature'.", 400), 1)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED
    assert "Every request of supplement 1 has temperature = 1." in run.reason
    with pytest.raises(Refused, match="no parameter of run 1 was refused"):
        lifecycle.restart_without_parameter(run, None)
    supplements.cancel(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"detected": 1, "unparsable": 2})


def test_a_cancel_from_before_the_supplement_began_keeps_the_run_and_its_results(run: Run) -> None:
    loaded_before = Run.objects.get(pk=run.pk)
    supplements.ask_again(run, None, MORE)
    supplements.cancel(loaded_before, None)
    assert (loaded_before.state, results(run)) == (
        Run.State.FINISHED,
        {"detected": 1, "unparsable": 2},
    )
    assert [one.stopped for one in supplements.list_supplements(loaded_before)] == [True]


def test_a_chain_of_a_supplement_that_was_just_cancelled_sends_no_further_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_truncated_chain()
    supplements.ask_again(run, None, MORE)
    go_on = outcomes._continue_chains

    def cancel_first(settled: Any) -> list[int]:
        supplements.cancel(Run.objects.get(pk=run.pk), None)
        return go_on(settled)

    monkeypatch.setattr(outcomes, "_continue_chains", cancel_first)
    answer(run, "<RESULT>ants</RESULT>")
    run.refresh_from_db()
    assert (run.state, results(run)) == (Run.State.FINISHED, {"truncated": 1})
    assert not run.calls.filter(request__state="waiting").exists()


def _at_once(*steps: Callable[[], object]) -> list[object]:
    """Run these steps at the same moment, each with its own connection; return their results or
    errors."""
    together = threading.Barrier(len(steps))

    def take_step(step: Callable[[], object]) -> object:
        together.wait(20)
        try:
            return step()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(steps)) as threads:
        return list(threads.map(take_step, steps))


@pytest.fixture
def failed_and_unusable(transactional_db: None) -> Run:
    """A finished run with 13 failed and 26 unusable requests."""
    project = make_project()
    make_items(project, 40)
    run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
    lifecycle.plan_calls(run)
    answer(run, number=1)
    fail(run, Rejected("The provider answered 400: no", 400), 13)
    answer(run, "no answer")
    lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 1, "rejected": 13, "unparsable": 26}
    return run


@pytest.mark.django_db(transaction=True)
def test_of_several_people_who_ask_again_at_the_same_moment_one_does(
    failed_and_unusable: Run,
) -> None:
    run = failed_and_unusable
    said = _at_once(*[lambda: supplements.ask_again(Run.objects.get(pk=run.pk), None, MORE)] * 3)
    assert said.count(26) == 1
    assert sum(isinstance(one, Refused) for one in said) == 2
    assert run.calls.filter(supplement=1).count() == 26


@pytest.mark.django_db(transaction=True)
def test_a_retry_and_a_supplement_at_the_same_moment_do_not_deadlock(
    failed_and_unusable: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, compute = failed_and_unusable, pinning.compute_digest

    def linger(held: Run) -> str:
        """While the supplement has its locks, the retry takes its own."""
        time.sleep(0.5)
        return compute(held)

    monkeypatch.setattr(pinning, "compute_digest", linger)
    said = _at_once(
        lambda: supplements.ask_again(Run.objects.get(pk=run.pk), None, MORE),
        lambda: lifecycle.retry_failed(Run.objects.get(pk=run.pk), None),
    )
    assert said[1] == 13
    assert said[0] == 26 or isinstance(said[0], Refused)
    run.refresh_from_db()
    assert run.state == Run.State.RUNNING


@pytest.mark.django_db(transaction=True)
def test_a_retry_and_the_cancel_of_a_supplement_at_the_same_moment_do_not_deadlock(
    failed_and_unusable: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, compute = failed_and_unusable, pinning.compute_digest
    supplements.ask_again(run, None, MORE)

    def linger(held: Run) -> str:
        time.sleep(0.5)
        return compute(held)

    monkeypatch.setattr(pinning, "compute_digest", linger)
    said = _at_once(
        lambda: supplements.cancel(Run.objects.get(pk=run.pk), None),
        lambda: lifecycle.retry_failed(Run.objects.get(pk=run.pk), None),
    )
    assert not [one for one in said if isinstance(one, Exception)]


@pytest.mark.django_db(transaction=True)
def test_a_cancel_while_replies_are_stored_leaves_a_finished_run_without_open_requests(
    failed_and_unusable: Run,
) -> None:
    run = failed_and_unusable
    supplements.ask_again(run, None, MORE)
    came = [CallResult(leased, make_answer()) for leased in take(run)]

    def store_each() -> None:
        for one in came:
            store.store_results(run.endpoint, "worker", [one])
            store.decide_outcomes([one])

    said = _at_once(lambda: supplements.cancel(Run.objects.get(pk=run.pk), None), store_each)
    assert said == [None, None]
    run.refresh_from_db()
    # A cancel that comes first waits for the calls in flight.
    lifecycle.finish_if_done(run)
    found = results(run)
    assert run.state == Run.State.FINISHED
    assert (found["rejected"], found["detected"] + found.get("unparsable", 0)) == (13, 27)
    assert not run.calls.filter(request__state__in=["waiting", "leased"]).exists()


@pytest.mark.parametrize("depth", [500, 100_000])
def test_parameters_that_are_nested_too_deep_are_refused(
    run: Run, project: Project, client: Client, depth: int
) -> None:
    client.force_login(make_member(project, "lead").account)
    text = '{"a": ' + "[" * depth + "]" * depth + "}"
    page = f"/projects/{project.slug}/runs/{run.number}/supplement/"
    shown = client.post(page, {"parameters": text, "step": "estimate"}).content.decode()
    assert "nested too deep" in shown


def test_a_parameter_and_a_model_called_items_are_shown(
    run: Run, project: Project, client: Client
) -> None:
    """Templates take `values.items` for the value of that name."""
    client.force_login(make_member(project, "lead").account)
    supplements.ask_again(run, None, {"items": 1})
    answer(run, model="items")
    lifecycle.finish_if_done(run)
    shown = client.get(f"/projects/{project.slug}/runs/{run.number}/").content.decode()
    assert "<code>items 1</code>" in shown
    assert "<code>items</code>" in shown


def test_a_run_that_moves_to_another_endpoint_leaves_its_supplements_behind(
    project: Project,
) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint(NOWHERE), ONE_CALL)
    lifecycle.plan_calls(run)
    for _ in range(2):
        waiting = Request.objects.wanted_by(run).filter(state="waiting")
        waiting.update(state="failed", cause="timed_out")
        lifecycle.finish_if_done(run)
        if run_config.SUPPLEMENTS_KEY not in run.pinned:
            supplements.ask_again(run, None, MORE)
    assert results(run) == {"timed_out": 1}
    lifecycle.move_to_endpoint(run, make_endpoint(NOWHERE), None)
    assert supplements.list_supplements(run) == []


def test_what_a_supplement_asked_with_other_parameters_is_no_drift(project: Project) -> None:
    make_items(project, 2)
    first = canaries.start_canary(
        project, strategy=make_strategy(), endpoint=make_endpoint(NOWHERE)
    )
    lifecycle.plan_calls(first)
    answer(first, number=1)
    answer(first, "no answer")
    lifecycle.finish_if_done(first)
    supplements.ask_again(first, None, MORE)
    answer(first)
    lifecycle.finish_if_done(first)
    again = canaries.repeat_canary(first)
    lifecycle.plan_calls(again)
    answer(again, '{"score": 10}')
    lifecycle.finish_if_done(again)
    [drift] = canaries.load_canary(again).drifts
    assert (drift.n, drift.changed) == (1, 1)
