"""Runs of which nothing comes: paused after the first calls, and moved to another endpoint."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.db import clock
from annotation.models import Event, Membership, Project
from judging.errors import Refused
from judging.evaluators.providers.errors import (
    BrokenReply,
    EvaluatorError,
    RateLimited,
    Rejected,
    ServerError,
    TimedOut,
)
from judging.evaluators.retries import POLICIES
from judging.models import Call, Endpoint, Outcome, Request, Run
from judging.runs import canaries, lifecycle, pinning
from judging.runs.engine import lease, store
from judging.runs.engine.store import FUTILE_AFTER, CallResult
from tests.judging.builders_judging import (
    answer,
    fail,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
    results,
    take,
)

pytestmark = pytest.mark.django_db

NOWHERE = "http://127.0.0.1:9/v1"
WRONG = "The provider answered 404: the model does not exist"
PAGE = "/projects/fbi/runs/1/"


def rejected(words: str = WRONG, status: int = 404) -> Rejected:
    return Rejected(words, status)


def planned(project: Project, items: int = 30, **endpoint: object) -> Run:
    make_items(project, items)
    run = make_run(project, make_endpoint(NOWHERE, **endpoint))
    lifecycle.plan_calls(run)
    return run


def state(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def test_the_first_requests_rejected_alike_pause_a_run_once(project: Project) -> None:
    run = planned(project)
    fail(run, rejected(), number=FUTILE_AFTER - 1)
    assert state(run) == Run.State.RUNNING
    fail(run, rejected(), number=1)
    assert state(run) == Run.State.PAUSED
    assert run.reason.startswith(f"The first 20 requests were all rejected. {WRONG}. ")
    assert "Move this run to a corrected endpoint" in run.reason
    lifecycle.resume(run, None)
    fail(run, rejected(), number=5)
    assert state(run) == Run.State.RUNNING
    # Who asks them again wants to know again.
    lifecycle.retry_failed(run, None)
    fail(run, rejected(), number=FUTILE_AFTER)
    assert state(run) == Run.State.PAUSED


def test_fewer_requests_than_that_pause_a_run_when_all_are_rejected(project: Project) -> None:
    run = planned(project, 3)
    fail(run, rejected(), number=2)
    assert state(run) == Run.State.RUNNING
    fail(run, rejected())
    assert state(run) == Run.State.PAUSED
    assert run.reason.startswith("All 3 requests were rejected. ")
    lifecycle.resume(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"rejected": 3})


@pytest.mark.parametrize(
    "other", [None, rejected("The provider answered 400: too long", 400), Rejected("no metric")]
)
def test_a_run_goes_on_where_the_first_requests_did_not_fail_alike(
    project: Project, other: EvaluatorError | None
) -> None:
    run = planned(project)
    fail(run, other, number=1) if other else answer(run, number=1)
    fail(run, rejected(), number=FUTILE_AFTER + 5)
    assert state(run) == Run.State.RUNNING


def test_what_was_answered_before_a_run_began_does_not_hide_that_all_is_rejected_now(
    project: Project,
) -> None:
    first = planned(project, 30)
    answer(first, number=4)
    lifecycle.cancel(first, None)
    run = make_run(project, first.endpoint)
    lifecycle.plan_calls(run)
    fail(run, rejected(), number=FUTILE_AFTER)
    assert state(run) == Run.State.PAUSED
    assert "Clone this run with another endpoint" in run.reason
    with pytest.raises(Refused, match=r"already has answers\. Clone it with another endpoint"):
        lifecycle.move_to_endpoint(run, make_endpoint(NOWHERE), None)


def test_runs_that_share_the_rejected_requests_pause_together(project: Project) -> None:
    first = planned(project)
    second = make_run(project, first.endpoint)
    lifecycle.plan_calls(second)
    fail(first, rejected(), number=FUTILE_AFTER)
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
    assert "(7 s) or lower the calls in flight (4)" in run.reason
    # Nothing is used up. Whoever changed a number is told again, whoever did not has seen it.
    lifecycle.resume(run, None)
    assert not Request.objects.exclude(tried={}).exists()
    fail(run, slow, number=4)
    assert state(run) == Run.State.RUNNING
    Endpoint.objects.update(timeout=9)
    run = Run.objects.get()
    fail(run, slow, number=1)
    assert state(run) == Run.State.PAUSED
    assert "(9 s) or lower the calls in flight (4)" in run.reason


def test_a_run_with_a_timeout_of_its_own_names_that_and_not_the_endpoint_s(
    project: Project,
) -> None:
    run = planned(project, in_flight=4, timeout=7)
    run.pinned["timeout"] = 70
    run.save()
    fail(run, TimedOut("No full reply within 70 s.", retry_after=60), number=4)
    assert state(run) == Run.State.PAUSED
    assert "stopped after 70 s without a reply" in run.reason
    assert "ask again with more than 70 s per call" in run.reason
    assert "raise the timeout" not in run.reason


# A busy server is asked again after the other calls, however slow these are here.
@pytest.mark.parametrize("other", [None, ServerError("busy", retry_after=60), rejected()])
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
    before = Endpoint.objects.get(pk=run.endpoint_id)
    Endpoint.objects.update(timeout=70)
    store.store_results(
        before, "worker", [CallResult(one, error=TimedOut("slow")) for one in leased]
    )
    assert state(run) == Run.State.RUNNING


def give_up(run: Run, *errors: EvaluatorError, requests: int) -> None:
    """Let so many requests fail with these errors in turn, until they are asked no more."""
    last = POLICIES[errors[0].cause].attempts - 1
    some = run.calls.filter(request__state="waiting").values("request")[:requests]
    chosen = Request.objects.filter(pk__in=list(some.values_list("request", flat=True)))
    Request.objects.update(next_try=clock.now() + timedelta(hours=1))
    chosen.update(
        tried={error.cause: last for error in errors}, attempts=last, next_try=clock.now()
    )
    leased = take(run)
    assert len(leased) == requests
    results = [CallResult(one, error=errors[at % len(errors)]) for at, one in enumerate(leased)]
    store.store_results(run.endpoint, "worker", results)
    store.decide_outcomes(results)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ServerError("No server answers at the address: refused"),
            "given up after 6 tries each. No server answers at the address: refused. Check the "
            "endpoint's address and whether its server works.",
        ),
        (
            BrokenReply("The reply is not JSON: '<h1>Welcome</h1>'"),
            "given up after 6 tries each. The reply is not JSON: '<h1>Welcome</h1>'. Check the "
            "endpoint's address and whether its server works.",
        ),
        (
            RateLimited("The provider answered 429: too many requests"),
            "given up after 30 tries each. The provider answered 429: too many requests. Check "
            "your quota at the provider, and lower the calls in flight (3) or per minute (no "
            "limit) of endpoint busy.",
        ),
    ],
)
def test_the_first_requests_that_were_given_up_pause_a_run_once(
    project: Project, error: EvaluatorError, said: str
) -> None:
    run = planned(project, name="busy", in_flight=3)
    give_up(run, error, requests=FUTILE_AFTER - 1)
    assert state(run) == Run.State.RUNNING
    give_up(run, error, requests=1)
    assert state(run) == Run.State.PAUSED
    assert run.reason == (
        f"The first 20 requests were all {said} Move this run to a corrected endpoint, or retry "
        "the failed requests once the endpoint answers. Resume continues without them."
    )
    lifecycle.resume(run, None)
    give_up(run, error, requests=5)
    assert state(run) == Run.State.RUNNING


def test_fewer_requests_than_that_pause_a_run_when_all_are_given_up(project: Project) -> None:
    run = planned(project, 3)
    give_up(run, ServerError("busy"), requests=2)
    assert state(run) == Run.State.RUNNING
    give_up(run, ServerError("busy"), requests=1)
    assert state(run) == Run.State.PAUSED
    assert run.reason.startswith("All 3 requests were given up after 6 tries each. busy. ")
    lifecycle.resume(run, None)
    assert (run.state, results(run)) == (Run.State.FINISHED, {"unavailable": 3})


def test_a_server_that_fails_in_several_ways_pauses_a_run_all_the_same(project: Project) -> None:
    run = planned(project)
    busy, gone = RateLimited("The provider answered 429: no"), ServerError("gone")
    give_up(run, gone, requests=FUTILE_AFTER - 1)
    give_up(run, busy, requests=1)
    assert state(run) == Run.State.PAUSED


def test_what_waits_for_another_try_has_all_of_its_tries_again_when_a_paused_run_goes_on(
    project: Project,
) -> None:
    for step in (lifecycle.resume, lifecycle.retry_failed):
        run = planned(project, 30, name=f"to-{step.__name__.replace('_', '-')}")
        fail(run, ServerError("busy"), number=1)
        give_up(run, ServerError("busy"), requests=FUTILE_AFTER)
        assert state(run) == Run.State.PAUSED
        step(run, None)
        assert not Request.objects.wanted_by(run).filter(state="waiting").exclude(tried={}).exists()


@pytest.mark.parametrize("other", [None, rejected()])
def test_a_run_goes_on_where_not_all_of_its_first_requests_were_given_up(
    project: Project, other: EvaluatorError | None
) -> None:
    run = planned(project)
    fail(run, other, number=1) if other else answer(run, number=1)
    give_up(run, ServerError("busy"), requests=FUTILE_AFTER + 5)
    assert state(run) == Run.State.RUNNING


UNUSABLE = "have no usable answer"


def test_the_first_items_without_a_usable_answer_pause_a_run_once(project: Project) -> None:
    run = planned(project, 50)
    answer(run, "I like turtles.", number=12)
    answer(run, "", number=FUTILE_AFTER - 13, finish="filtered")
    assert state(run) == Run.State.RUNNING
    answer(run, "I like turtles.", number=1)
    assert state(run) == Run.State.PAUSED
    assert run.reason == (
        f"The first 20 items {UNUSABLE}: 13 unparsable, 7 filtered. Read their replies below. If "
        "the model cannot answer in the form that the strategy asks for, clone this run with "
        "another endpoint or start one with another strategy. Resume continues as before."
    )
    lifecycle.resume(run, None)
    answer(run, "I like turtles.", number=5)
    assert state(run) == Run.State.RUNNING


def test_a_run_goes_on_where_one_of_its_first_items_has_a_usable_answer(project: Project) -> None:
    run = planned(project, 50)
    answer(run, number=1)
    answer(run, "I like turtles.", number=40)
    assert state(run) == Run.State.RUNNING


def test_a_run_that_has_asked_all_is_not_paused_but_its_page_says_that_no_answer_is_usable(
    project: Project, browser: Client
) -> None:
    run = planned(project, FUTILE_AFTER)
    assert "No item of this run has a usable answer." not in browser.get(PAGE).content.decode()
    answer(run, "I like turtles.")
    assert state(run) == Run.State.RUNNING
    lifecycle.finish_if_done(run)
    assert state(run) == Run.State.FINISHED
    shown = browser.get(PAGE).content.decode()
    assert "No item of this run has a usable answer." in shown
    assert "other parameters may help" in shown


@pytest.mark.parametrize(("cut", "is_mostly_cut"), [(3, True), (2, False)])
def test_the_page_of_a_run_without_a_usable_answer_leads_to_a_higher_limit_if_most_were_cut_off(
    project: Project, browser: Client, cut: int, is_mostly_cut: bool
) -> None:
    run = planned(project, 4)
    answer(run, "Fi", number=cut, finish="length")
    answer(run, "I like turtles.")
    lifecycle.finish_if_done(run)
    page = browser.get(PAGE).content.decode()
    assert ("Ask the unusable items again</a> with a higher <code>max_tokens" in page) is (
        is_mostly_cut
    )
    assert ("lone this run with another endpoint" in page) is not is_mostly_cut


def test_a_run_whose_first_replies_were_cut_off_says_to_ask_with_a_higher_limit(
    project: Project,
) -> None:
    run = planned(project, 50)
    answer(run, "I like turtles.", number=5)
    answer(run, "Fi", number=FUTILE_AFTER - 5, finish="length")
    assert state(run) == Run.State.PAUSED
    assert "15 truncated, 5 unparsable. Read their replies below. Start another run" in run.reason
    assert "ask its unusable items again with a higher max_tokens" in run.reason
    assert "cannot answer in the form" not in run.reason


def paused(project: Project) -> Run:
    run = planned(project, 3)
    fail(run, rejected())
    assert state(run) == Run.State.PAUSED
    return run


def test_a_pilot_is_archived_from_the_first_on_and_by_nobody_s_hand() -> None:
    at = clock.now()
    for archived_at, pinned, by_hand in (
        (None, {}, False),
        (at, {}, True),
        (at, {lifecycle.PILOT: True}, False),
        (None, {lifecycle.PILOT: True}, False),
    ):
        run = Run(archived_at=archived_at, pinned=pinned)
        assert lifecycle.is_archived_by_hand(run) is by_hand


def test_a_run_that_nobody_answered_is_moved_and_asked_where_it_was_moved_to(
    project: Project, member: Membership
) -> None:
    run = paused(project)
    before, was = run.digest, run.endpoint.name
    there = make_endpoint(NOWHERE, name="corrected", model="right", parameters={"top_p": 0.5})
    lifecycle.move_to_endpoint(run, there, member)
    assert (run.state, run.reason, run.endpoint) == (Run.State.PLANNING, "", there)
    assert (run.pinned["name"], run.pinned["model"]) == ("corrected", "right")
    assert run.pinned["parameters"]["top_p"] == 0.5
    assert run.digest == pinning.compute_digest(run) != before
    assert results(run) == {"pending": 3}
    event = Event.objects.get(kind="run moved")
    assert event.member == member
    assert event.old == {"endpoint": was, "state": "paused"}
    assert event.new == {"endpoint": "corrected", "state": "planning"}
    lifecycle.plan_calls(run)
    assert answer(run) == 3
    assert lifecycle.finish_if_done(run)
    assert results(run) == {"detected": 3}
    # The same as if it had been started there.
    assert not Call.objects.exclude(request__endpoint=there).exists()
    assert lease.find_due_endpoints(run.created_at) == []


def test_a_run_is_moved_only_while_nothing_rests_on_it(project: Project) -> None:
    run, there = planned(project, 3), make_endpoint(NOWHERE)
    with pytest.raises(Refused, match=r"is running\. Pause it"):
        lifecycle.move_to_endpoint(run, there, None)
    leased = take(run, 1)
    lifecycle.pause(run, None)
    with pytest.raises(Refused, match="still in flight"):
        lifecycle.move_to_endpoint(run, there, None)
    store.store_results(run.endpoint, "worker", [CallResult(leased[0])])
    with pytest.raises(Refused, match=r"already uses evaluator-"):
        lifecycle.move_to_endpoint(run, run.endpoint, None)
    with pytest.raises(Refused, match="is only for imported or combined replies"):
        lifecycle.move_to_endpoint(run, make_endpoint(NOWHERE, provider="recorded"), None)
    Run.objects.filter(pk=run.pk).update(archived_at=clock.now())
    with pytest.raises(Refused, match=r"is archived\. Unarchive it"):
        lifecycle.move_to_endpoint(run, there, None)
    Run.objects.filter(pk=run.pk).update(archived_at=None)
    assert (state(run), Outcome.objects.count(), Call.objects.count()) == (Run.State.PAUSED, 3, 3)
    lifecycle.move_to_endpoint(run, there, None)
    assert state(run) == Run.State.PLANNING


def test_a_canary_that_is_asked_again_stays_at_its_endpoint(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE)
    first = canaries.start_canary(project, strategy=make_strategy(), endpoint=endpoint)
    lifecycle.plan_calls(first)
    answer(first)
    lifecycle.finish_if_done(first)
    again = canaries.repeat_canary(first)
    lifecycle.plan_calls(again)
    fail(again, rejected())
    with pytest.raises(Refused, match="at the same evaluator"):
        lifecycle.move_to_endpoint(again, make_endpoint(NOWHERE), None)


def test_the_page_of_a_run_offers_to_move_it_and_the_next_page_does(
    project: Project, browser: Client
) -> None:
    paused(project)
    there = make_endpoint(NOWHERE, name="corrected")
    page = browser.get(PAGE).content.decode()
    assert "All 3 requests were rejected." in page
    assert f'href="{PAGE}move/"' in page
    asked = browser.get(f"{PAGE}move/").content.decode()
    assert '<option value="corrected">' in asked
    assert "baseline" not in asked
    assert browser.post(f"{PAGE}move/", {"endpoint": "nobody"}).status_code == 422
    answered = browser.post(f"{PAGE}move/", {"endpoint": "corrected"}, follow=True)
    assert "Run 1 now uses corrected." in answered.content.decode()
    assert Run.objects.get().endpoint == there
    assert browser.post(f"{PAGE}move/", {"endpoint": "corrected"}).status_code == 422


def test_a_program_and_a_command_move_a_run_or_clone_it_with_another_endpoint(
    project: Project, program: Client
) -> None:
    paused(project)
    for name in ("corrected", "third"):
        make_endpoint(NOWHERE, name=name)
    api = "/api/v1/projects/fbi/runs/1/"
    assert "move" in program.get(api).json()["steps"]
    said = program.post(f"{api}move/", {"endpoint": "nobody"}, "application/json")
    assert (said.status_code, "corrected" in said.json()["detail"]) == (422, True)
    said = program.post(f"{api}move/", {"endpoint": "corrected"}, "application/json").json()
    assert (said["run"]["endpoint"], said["run"]["state"]) == ("corrected", "planning")
    said = program.post(f"{api}clone/", {"endpoint": "third"}, "application/json").json()
    assert (said["run"]["number"], said["run"]["endpoint"]) == (2, "third")
    run = Run.objects.get(number=1)
    lifecycle.plan_calls(run)
    lifecycle.pause(run, None)
    out = StringIO()
    call_command("move_run", "1", "--project", "fbi", "--endpoint", "third", stdout=out)
    assert out.getvalue() == "Run 1 of fbi has been moved to third.\n"
    call_command("clone_run", "1", "--project", "fbi", "--endpoint", "corrected", stdout=out)
    assert Run.objects.get(number=3).endpoint.name == "corrected"
    assert state(run) == Run.State.PLANNING
