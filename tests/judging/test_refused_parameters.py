"""Models that refuse a parameter of ours: asked without it, or stopped at the first refusal."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from annotation.models import Event, Membership, Project
from judging.errors import Refused
from judging.evaluators import trial_call
from judging.evaluators.providers.errors import Rejected
from judging.models import Request, Run
from judging.runs import archiving, lifecycle
from judging.runs.engine import lease, store
from judging.runs.run_config import RunOverrides
from tests.builders import make_project
from tests.judging.builders_judging import (
    answer,
    fail,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
    results,
    take,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

NOBODY = "http://127.0.0.1:9/v1"
WORDS = "The provider answered 400: 'temperature' does not support 0 with this model."
PRICES = {"price_in": Decimal(1), "price_out": Decimal(1)}
ITEMS = 24


def refusing(project: Project, **values: Any) -> Run:
    """A planned run, one request of which was answered by a refusal of its temperature."""
    run = make_run(project, make_endpoint(NOBODY, **PRICES), **values)
    lifecycle.plan_calls(run)
    fail(run, Rejected(WORDS), number=1)
    run.refresh_from_db()
    return run


def page(run: int, way: str = "") -> str:
    return f"/projects/fbi/runs/{run}/{way}"


def text(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


@pytest.mark.django_db(transaction=True)
def test_a_run_stops_at_the_first_refusal_and_another_asks_without(
    evaluator: ScriptedEvaluator, project: Project, browser: Client
) -> None:
    evaluator.script = Script(latency=0.05, faults={"no_temperature": ""})
    make_items(project, ITEMS)
    run = work(make_run(project, make_endpoint(evaluator, in_flight=2)))
    assert (run.state, len(evaluator.log) < ITEMS) == (Run.State.PAUSED, True)
    assert "does not support 0 with this model. Every request of this run has tem" in run.reason
    assert "Run without temperature" in text(browser.get(page(1)))

    evaluator.script = Script(faults={"no_temperature": ""})
    shown = text(browser.post(page(1, "ask-without/"), follow=True))
    assert "Run 2 started without the refused parameter." in shown
    again = work(Run.objects.get(number=2))
    assert (again.state, "rejected" in results(again)) == (Run.State.FINISHED, False)
    assert again.pinned["parameters"] == {"temperature": None}
    assert "temperature" not in again.sends()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("latency", [0.0, 0.2])
@pytest.mark.parametrize(("items", "in_flight"), [(73, 4), (9, 4), (9, 16)])
def test_the_first_refusal_stops_a_run_however_fast_the_provider_is(
    evaluator: ScriptedEvaluator,
    project: Project,
    browser: Client,
    latency: float,
    items: int,
    in_flight: int,
) -> None:
    evaluator.script = Script(latency=latency, faults={"no_temperature": ""})
    make_items(project, items)
    run = work(make_run(project, make_endpoint(evaluator, in_flight=in_flight)))
    assert run.state == Run.State.PAUSED
    assert run.reason.startswith("The provider answered 400: ")
    assert run.reason.endswith("Every request of this run has temperature = 0.")
    # What was in flight with it comes back, and no more.
    assert len(evaluator.log) <= in_flight
    assert Request.objects.filter(state="failed").count() == len(evaluator.log)
    assert "Run without temperature" in text(browser.get(page(1)))


@pytest.mark.django_db(transaction=True)
def test_who_resumes_has_all_that_is_left_asked_once(
    evaluator: ScriptedEvaluator, project: Project
) -> None:
    evaluator.script = Script(faults={"no_temperature": "0.5"})
    make_items(project, 60)
    run = work(make_run(project, make_endpoint(evaluator, in_flight=4)))
    assert (run.state, len(evaluator.log) < 60) == (Run.State.PAUSED, True)
    lifecycle.resume(run, None)
    assert work(run).state == Run.State.FINISHED
    assert len({entry["digest"] for entry in evaluator.log}) == len(evaluator.log) == 60
    assert 10 < results(run)["rejected"] < 50


@pytest.mark.django_db
@pytest.mark.parametrize(("items", "number"), [(30, 20), (30, 30), (3, 3), (1, 1)])
def test_a_refused_parameter_is_the_reason_where_all_were_rejected_alike_too(
    project: Project, items: int, number: int
) -> None:
    make_items(project, items)
    runs = [make_run(project, make_endpoint(NOBODY))]
    runs.append(make_run(project, runs[0].endpoint))
    for run in runs:
        lifecycle.plan_calls(run)
    fail(runs[0], Rejected(WORDS, 400), number=number)
    for run in runs:
        run.refresh_from_db()
        assert run.state == Run.State.PAUSED
        assert run.reason == f"{WORDS} Every request of this run has temperature = 0."


@pytest.mark.django_db
def test_the_api_offers_it_and_the_record_says_what_became_of_both_runs(
    program: Client, project: Project, member: Membership
) -> None:
    make_items(project, 3)
    refusing(project, member=member)
    said = program.get(f"/api/v1{page(1)}").json()
    assert (said["refused"], said["run"]["sends"]) == ("temperature", {"temperature": 0})
    assert "ask-without" in said["steps"]

    sent = program.post(f"/api/v1{page(1, 'ask-without/')}", {}, content_type="application/json")
    assert sent.status_code == 201
    assert (sent.json()["run"]["number"], sent.json()["run"]["sends"]) == (2, {})
    first, second = Run.objects.order_by("number")
    assert first.state == Run.State.CANCELLED
    assert first.reason == "Run 2 continues without temperature."
    before, after = (
        set(run.outcomes.values_list("revision", flat=True)) for run in (first, second)
    )
    assert before == after
    started = Event.objects.get(kind="run started", subject="run 2")
    assert started.data == {"items": 3, "instead_of": 1, "without": "temperature"}
    assert started.member == Event.objects.get(kind="run cancelled").member == member

    # What is cancelled has its place taken already.
    once_more = program.post(
        f"/api/v1{page(1, 'ask-without/')}", {}, content_type="application/json"
    )
    assert (once_more.status_code, Run.objects.count()) == (422, 2)
    assert "no parameter of run 1 was refused" in once_more.json()["detail"]


@pytest.mark.django_db
def test_what_a_run_has_of_its_own_goes_with_it(project: Project) -> None:
    make_items(project, 4)
    own = RunOverrides(parameters={"seed": 7}, axes=("main",))
    run = refusing(project, strategy="axis", own=own, pilot=True, cap=Decimal(3), samples=2)
    Run.objects.filter(pk=run.pk).update(spent=1)
    run.refresh_from_db()
    copy = lifecycle.restart_without_parameter(run, None)
    assert copy.pinned["own"] == {
        "parameters": {"seed": 7, "temperature": None},
        "axes": ["main"],
    }
    assert (copy.seed, copy.samples, copy.cap) == (run.seed, 2, Decimal(2))
    assert copy.pinned["pilot"]
    assert copy.archived_at is not None
    assert copy.digest != run.digest


@pytest.mark.django_db
def test_its_cap_is_what_is_left_at_that_moment_with_the_calls_in_flight(project: Project) -> None:
    make_items(project, 4)
    run = refusing(project, cap=Decimal(3))
    Run.objects.filter(pk=run.pk).update(spent=1, reserved="0.5")
    assert lifecycle.restart_without_parameter(run, None).cap == Decimal("1.5")


@pytest.mark.django_db
def test_a_run_that_ended_stays_and_can_still_be_asked_without(
    project: Project, browser: Client
) -> None:
    make_items(project, 2)
    run = refusing(project)
    lifecycle.resume(run, None)
    answer(run)
    lifecycle.finish_if_done(run)
    shown = text(browser.get(page(1)))
    assert "Run without temperature" in shown
    assert "this run is then cancelled" not in shown
    browser.post(page(1, "ask-without/"))
    assert list(Run.objects.order_by("number").values_list("state", flat=True)) == [
        "finished",
        "planning",
    ]
    # Once is enough, though the first one stays as it is.
    assert "Run without temperature" not in text(browser.get(page(1)))
    with pytest.raises(Refused, match="another run already leaves the parameter out"):
        lifecycle.restart_without_parameter(run, None)


@pytest.mark.django_db
def test_a_limit_goes_on_by_the_name_that_the_refusal_says_to_use(
    project: Project, program: Client, browser: Client
) -> None:
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOBODY, parameters={"max_tokens": 300}))
    lifecycle.plan_calls(run)
    words = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    fail(run, Rejected(f"The provider answered 400: Unsupported parameter: {words}"), number=1)
    shown = text(browser.get(page(1)))
    assert "Run with max_completion_tokens" in shown
    assert "{&quot;max_tokens&quot;: null, &quot;max_completion_tokens&quot;: 300}" in shown
    assert "The new run has no token limit" not in shown
    said = program.get(f"/api/v1{page(1)}").json()
    assert (said["refused"], said["instead"]) == ("max_tokens", "max_completion_tokens")
    copy = lifecycle.restart_without_parameter(run, None)
    assert copy.sends() == {"temperature": 0, "max_completion_tokens": 300}
    run.refresh_from_db()
    assert run.reason == ("Run 2 continues with max_completion_tokens instead of max_tokens.")
    started = Event.objects.get(kind="run started", subject="run 2")
    assert (started.data["without"], started.data["with"]) == (
        "max_tokens", "max_completion_tokens"
    )  # fmt: skip


@pytest.mark.django_db
def test_without_a_limit_that_is_refused_the_offer_says_that_none_holds(
    project: Project, browser: Client
) -> None:
    make_items(project, 2)
    run = make_run(project, make_endpoint(NOBODY, parameters={"max_tokens": 300}))
    lifecycle.plan_calls(run)
    fail(run, Rejected("The provider answered 400: 'max_tokens' is not supported."), number=1)
    shown = text(browser.get(page(1)))
    assert "Run without max_tokens" in shown
    assert "The new run has no token limit" in shown


@pytest.mark.django_db
def test_who_resumes_is_not_stopped_a_second_time(project: Project) -> None:
    make_items(project, 9)
    run = make_run(project, make_endpoint(NOBODY))
    lifecycle.plan_calls(run)

    def state_after(words: str, *leased: lease.LeasedRequest) -> str:
        rejected = [store.CallResult(one, error=Rejected(words)) for one in leased]
        store.store_results(run.endpoint, "worker", rejected)
        run.refresh_from_db()
        return run.state

    one, two, three, four, *_ = take(run, 5)
    assert state_after("The provider answered 400: too long", one) == Run.State.RUNNING
    assert state_after(WORDS, two, three) == Run.State.PAUSED
    # One that was in flight then.
    assert state_after(WORDS, four) == Run.State.PAUSED
    lifecycle.resume(run, None)
    five, six, *_ = take(run, 4)
    assert state_after(WORDS, five) == Run.State.RUNNING
    # It is not ours, since nobody sent it.
    assert state_after("`seed` is not supported", six) == Run.State.RUNNING


@pytest.mark.django_db
def test_a_run_that_was_moved_stops_at_a_refusal_of_its_new_endpoint(
    project: Project,
) -> None:
    make_items(project, 3)
    run = refusing(project)
    assert run.state == Run.State.PAUSED
    lifecycle.move_to_endpoint(run, make_endpoint(NOBODY), None)
    lifecycle.plan_calls(run)
    fail(run, Rejected(WORDS), number=1)
    run.refresh_from_db()
    assert run.state == Run.State.PAUSED


@pytest.mark.django_db
def test_a_run_without_a_refusal_offers_nothing(project: Project, browser: Client) -> None:
    make_items(project, 3)
    run = make_run(project, make_endpoint(NOBODY))
    lifecycle.plan_calls(run)
    fail(run, Rejected("The provider answered 400: this cannot be asked"))
    assert "Ask without" not in text(browser.get(page(1)))
    assert "ask-without" not in archiving.list_open_steps(run, 3, answered=0)
    refused = browser.post(page(1, "ask-without/"))
    assert (refused.status_code, Run.objects.count()) == (422, 1)
    assert "no parameter of run 1 was refused" in text(refused)


@pytest.mark.django_db
def test_a_known_family_is_asked_as_one_for_which_somebody_says_so(project: Project) -> None:
    make_items(project, 3)
    known = make_run(project, make_endpoint(NOBODY, model="gpt-5-mini"))
    told = make_endpoint(NOBODY, model="gpt-5-mini", parameters={"temperature": None})
    for run in (known, make_run(project, told)):
        lifecycle.plan_calls(run)
        assert run.sends() == {}
    # The very same requests, so that neither pays for what the other asked.
    assert Request.objects.count() == 3
    sent = lease.lease_requests(known.endpoint, "worker", 1, known.created_at).leased[0].body
    assert b"temperature" not in sent


@pytest.mark.django_db
def test_the_page_of_an_endpoint_says_what_is_left_to_the_provider(browser: Client) -> None:
    for model, left in (("gpt-5-mini", True), ("gpt-5.1", False)):
        endpoint = make_endpoint(NOBODY, model=model)
        shown = text(browser.get(f"/endpoints/{endpoint.name}/"))
        assert ("<code>temperature</code> is not sent" in shown) is left
        assert ("temperature = 0" in shown) is not left


@pytest.mark.django_db
def test_self_consistency_says_that_such_a_model_cannot_be_asked_so() -> None:
    project = make_project(task_type="error-detection")
    make_responses(project, ["error", "no_error"])
    slug, model = "detect-self-consistency", "claude-opus-4-7"
    endpoint = make_endpoint(NOBODY, provider="anthropic", model=model)
    with pytest.raises(Refused, match=r"claude-opus-4-7 does not accept temperature = 0.5, which"):
        make_run(project, endpoint, slug)
    run = make_run(project, endpoint, slug, own=RunOverrides(parameters={"temperature": None}))
    assert run.sends() == {"max_tokens": 4096}
    # An unknown model is asked, and so is one of which somebody says that it takes it.
    assert make_run(project, make_endpoint(NOBODY), slug).sends() == {
        "temperature": 0.5,
        "max_tokens": 4096,
    }
    told = RunOverrides(parameters={"temperature": 0.7})
    assert make_run(project, endpoint, slug, own=told).sends()["temperature"] == 0.7


@pytest.mark.django_db
def test_a_test_call_says_how_to_ask_without(evaluator: ScriptedEvaluator) -> None:
    evaluator.script = Script(faults={"no_temperature": ""})
    endpoint = make_endpoint(evaluator)
    problem = trial_call.run_trial(endpoint, endpoint.created_at).problem
    assert problem.endswith('Set the parameters {"temperature": null} to ask without it.')
    endpoint.parameters = {"temperature": None}
    assert trial_call.run_trial(endpoint, endpoint.created_at).problem == ""


@pytest.mark.django_db
def test_test_calls_have_a_largest_number_in_an_hour(
    evaluator: ScriptedEvaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost money, and no cap counts them."""
    monkeypatch.setattr(trial_call, "MOST_TRIALS", 2)
    endpoint, other = make_endpoint(evaluator), make_endpoint(evaluator, name="other")
    for _ in range(2):
        assert trial_call.run_trial(endpoint, endpoint.created_at).problem == ""
    assert (
        "tested 2 times in this hour" in trial_call.run_trial(endpoint, endpoint.created_at).problem
    )
    assert trial_call.run_trial(other, other.created_at).problem == ""
