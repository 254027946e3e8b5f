"""Runs in the browser that are made of runs: cloned, archived, derived, read again, asked again."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from judging.models import Endpoint, Run
from judging.runs import canaries, lifecycle
from judging.runs.run_config import RunOverrides
from tests.builders import make_member, make_project, make_slot
from tests.judging.builders_judging import (
    answer,
    answer_as,
    make_endpoint,
    make_items,
    make_judged,
    make_responses,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture
def judge() -> Endpoint:
    return make_endpoint(NOBODY, name="judge")


def page(name: str, *args: object) -> str:
    return reverse(name, args=["fbi", *args])


def shown(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status
    return " ".join(answer.content.decode().split())


def ended(project: Project, judge: Endpoint, text: str = '{"score": 5}', **values: Any) -> Run:
    """A finished run whose requests were all answered with this text."""
    run = make_run(project, judge, **values)
    return answered(run, text)


def answered(run: Run, text: str) -> Run:
    lifecycle.plan_calls(run)
    answer(run, text)
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    return run


def last_run() -> Run:
    run = Run.objects.order_by("number").last()
    assert run
    return run


def numbers_in(said: str) -> set[int]:
    return {number for number in range(1, 20) if f"/runs/{number}/" in said}


@pytest.mark.parametrize(
    "query, numbers",
    [
        ("", {1, 2, 4}),
        ("?archived=on", {1, 2, 3, 4}),
        ("?state=running", {2}),
        ("?kind=derived", {4}),
        ("?strategy=vanilla-score", {2}),
        ("?endpoint=judge&state=finished", {1, 4}),
        ("?endpoint=nobody", set()),
        ("?state=nonsense", {1, 2, 4}),
    ],
)
def test_runs_are_narrowed_down_and_archived_ones_left_out(
    browser: Client, project: Project, judge: Endpoint, query: str, numbers: set[int]
) -> None:
    make_items(project, 1)
    ended(project, judge)
    lifecycle.plan_calls(make_run(project, judge, "vanilla-score"))
    ended(project, judge)
    Run.objects.filter(number=3).update(archived_at=Run.objects.get(number=3).created_at)
    derived = ended(project, judge)
    Run.objects.filter(pk=derived.pk).update(kind="derived")
    assert numbers_in(shown(browser.get(page("runs") + query))) == numbers


def test_a_run_is_archived_and_taken_back(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    run = ended(project, judge)
    assert "is archived. It no longer appears in lists and results" in shown(
        browser.post(page("run-archive", 1), follow=True)
    )
    assert "Unarchive" in shown(browser.get(page("run", 1)))
    browser.post(page("run-unarchive", 1))
    run.refresh_from_db()
    assert run.archived_at is None


def test_a_run_that_goes_on_is_not_archived(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    make_run(project, judge)
    assert "Cancel it, or wait until it has finished." in shown(
        browser.post(page("run-archive", 1)), 422
    )


def test_a_clone_asks_nothing_that_is_answered(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    [item] = make_items(project, 1)
    run = ended(project, judge)
    item.revisions.update(texts={**item.revisions.get().texts, "prompt": "Mended?"})
    browser.post(page("run-clone", 1), {"as_pinned": "1", "cap": ""})
    copy = last_run()
    lifecycle.plan_calls(copy)
    assert (copy.number, copy.digest) == (2, run.digest)


def test_what_asked_nobody_is_not_cloned(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    run = ended(project, judge)
    Run.objects.filter(pk=run.pk).update(kind="recorded")
    assert "was imported, so it cannot be cloned" in shown(
        browser.post(page("run-clone", 1), {}), 422
    )
    said = shown(browser.get(page("run", 1)))
    assert "so it cannot be resumed, retried or cloned" in said
    assert page("run-clone", 1) not in said


def test_the_votes_of_chosen_runs_are_counted(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    items = make_items(project, 3)
    for said in (
        ["detected", "detected", "undetected"],
        ["detected", "undetected", "undetected"],
        ["undetected", "detected", "missing"],
    ):
        make_judged(project, zip(items, said, strict=True))
    asked = shown(browser.get(page("run-derive") + "?run=1&run=2&run=3"))
    assert "Majority vote" in asked
    assert "Panel mean" in asked
    sent = browser.post(page("run-derive"), {"run": [1, 2, 3], "strategy": "majority"})
    made = last_run()
    assert sent.headers["Location"] == page("run", made.number)
    # Two of three, two of three, none of three.
    results = made.outcomes.order_by("item__position").values_list("result", flat=True)
    assert list(results) == ["detected", "detected", "undetected"]
    said = shown(browser.get(page("run", made.number)))
    for number in (1, 2, 3):
        assert f'<a href="{page("run", number)}">run {number}</a>' in said
    assert "is combined from other runs and sends no requests" in said


def test_chosen_runs_have_weights(browser: Client, project: Project, judge: Endpoint) -> None:
    items = make_items(project, 2)
    for said in (["detected", "undetected"], ["undetected", "detected"]):
        make_judged(project, zip(items, said, strict=True))
    Run.objects.filter(number=1).update(name="Small judge")
    asked = shown(browser.get(page("run-derive") + "?run=1&run=2"))
    assert 'Run 1 (“Small judge”) <input type="number" name="weight-1" value="1"' in asked
    assert "Minority veto" in asked
    assert "Weighted votes" in asked
    chosen = {"run": [1, 2], "strategy": "weighted-votes", "weight-1": "2.5"}
    assert "Give run 2 a weight" in shown(browser.post(page("run-derive"), chosen), 422)
    browser.post(page("run-derive"), {**chosen, "weight-2": "1"})
    made = last_run()
    results = made.outcomes.order_by("item__position").values_list("result", flat=True)
    assert list(results) == ["detected", "undetected"]
    assert "<dt>Weights</dt><dd>2.5, 1.0, in the order of the runs</dd>" in shown(
        browser.get(page("run", made.number))
    )
    # They are used by weighted votes alone.
    browser.post(page("run-derive"), {**chosen, "strategy": "minority-veto", "weight-2": "1"})
    assert "own" not in last_run().pinned


@pytest.mark.parametrize(
    "numbers, fold, words",
    [
        ([1], "majority", "Choose two or more runs"),
        ([1, 2], "mean", "ask in different ways"),
        ([], "majority", "Choose two or more runs"),
        ([1, 2], "none", "Select a valid choice"),
    ],
)
def test_what_cannot_be_derived_is_said(
    browser: Client, project: Project, judge: Endpoint, numbers: list[int], fold: str, words: str
) -> None:
    make_items(project, 1)
    ended(project, judge)
    ended(project, judge, "A", strategy="pairwise-verdict")
    sent = browser.post(page("run-derive"), {"run": numbers, "strategy": fold})
    assert words in shown(sent, 422)
    assert Run.objects.count() == 2


def test_a_run_that_is_not_there_cannot_be_chosen(browser: Client, project: Project) -> None:
    assert browser.get(page("run-derive") + "?run=9").status_code == 404


def detected(project: Project, judge: Endpoint) -> Run:
    """Two items of which study 001's parser reads no error, since that phrase wins there, and the
    strict one an error."""
    make_responses(project, ["error", "no_error"])
    text = "At first the response is correct. Therefore, the model response contains an error."
    run = make_run(project, judge, "detect-1a")
    return answered(run, text)


def test_what_another_parser_would_change_is_shown_and_then_applied(
    browser: Client, judge: Endpoint
) -> None:
    project = make_project("errors", task_type="error-detection")
    lead = make_member(project, role="researcher")
    browser.force_login(lead.account)
    run = detected(project, judge)
    address = reverse("run-reparse", args=["errors", run.number])
    before = list(run.outcomes.values_list("result", "detail"))
    preview = shown(browser.post(address, {"parser": "strict"}))
    assert "<b>2</b> of 2 outcomes would change." in preview
    assert "<td>undetected no_error</td><td>detected error</td>" in preview
    assert list(run.outcomes.values_list("result", "detail")) == before
    browser.post(address, {"parser": "strict", "apply": "1"})
    run.refresh_from_db()
    assert "strict" in run.parser
    assert run.state == "finished"
    assert set(run.outcomes.values_list("detail", flat=True)) == {"error"}


@pytest.mark.parametrize("kind", ["recorded", "derived"])
def test_what_has_no_replies_of_ours_is_not_read_again(
    browser: Client, project: Project, judge: Endpoint, kind: str
) -> None:
    make_items(project, 1)
    run = ended(project, judge)
    Run.objects.filter(pk=run.pk).update(kind=kind)
    for body in ({"parser": ""}, {"parser": "", "apply": "1"}):
        said = shown(browser.post(page("run-reparse", 1), body), 422)
        assert (
            "import the replies again" if kind == "recorded" else "and this run is updated"
        ) in said
    assert "Parse again…" not in shown(browser.get(page("run", 1)))


def test_a_canary_is_asked_again_and_its_drift_shown(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 10)
    first = canaries.start_canary(
        project,
        strategy=make_strategy("reference"),
        endpoint=judge,
        config=lifecycle.RunConfig(seed=1),
    )
    answered(first, '{"score": 10}')
    assert "This canary has run once." in shown(browser.get(page("run", 1)))
    browser.post(page("run-again", 1))
    second = last_run()
    lifecycle.plan_calls(second)
    # Only the prompts about item 1 say "1 spiders" after a word that is no digit.
    answer_as(
        second, lambda body: '{"score": %s}' % (8 if "many legs have 1 spiders" in body else 10)
    )
    lifecycle.finish_if_done(second)
    [drift] = canaries.load_canary(second).drifts
    assert (drift.n, drift.changed, drift.share.value) == (10, 1, 0.1)
    said = shown(browser.get(page("run", second.number)))
    assert "Repeats of this canary" in said
    assert 'data-chart="drift"' in said


def test_what_is_no_canary_is_not_asked_again(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    ended(project, judge)
    assert "Run 1 is not a canary" in shown(browser.post(page("run-again", 1)), 422)


def test_a_canary_over_items_that_are_being_labelled_needs_a_lead(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    [item] = make_items(project, 1)
    answered(
        canaries.start_canary(project, strategy=make_strategy("reference"), endpoint=judge), "5"
    )
    make_slot(item)
    refused = browser.post(page("run-again", 1), {"while_labelling": "on"})
    assert "ask a lead to allow it" in shown(refused, 422)
    browser.force_login(make_member(project, role="lead").account)
    browser.post(page("run-again", 1), {"while_labelling": "on"})
    assert last_run().while_labelling


def test_the_page_says_what_is_the_runs_own(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    make_items(project, 1)
    run = make_run(
        project,
        judge,
        "axis",
        samples=3,
        own=RunOverrides(parameters={"top_p": 0.9}, axes=("main",), votes=True),
    )
    said = shown(browser.get(page("run", run.number)))
    for words in ("Each item&#x27;s own axis", "3, as votes", "<code>top_p = 0.9</code>"):
        assert words in said


def test_spent_stands_beside_the_cap(browser: Client, project: Project) -> None:
    make_items(project, 1)
    judge = make_endpoint(NOBODY, price_in=Decimal(10), price_out=Decimal(20))
    run = make_run(project, judge, cap=Decimal(2))
    lifecycle.plan_calls(run)
    answer(run)
    # 100 tokens in at 10 and 10 out at 20 a million.
    assert '<dd>0.0012 USD <small class="hint">of 2 USD</small></dd>' in shown(
        browser.get(page("run", run.number))
    )


def test_results_offer_an_archived_run_only_where_it_is_chosen(
    browser: Client, project: Project
) -> None:
    items = make_items(project, 1)
    for _ in range(3):
        make_judged(project, [(items[0], "detected")])
    browser.post(page("run-archive", 2))
    address = page("results") + "overview/"
    assert 'name="run" value="2"' not in shown(browser.get(address))
    assert 'name="run" value="2" checked' in shown(browser.get(address + "?run=2&run=3"))


def test_a_derived_run_can_be_named_and_weights_that_nothing_uses_are_not_checked(
    browser: Client, project: Project, judge: Endpoint
) -> None:
    items = make_items(project, 1)
    for said in ("detected", "undetected", "detected"):
        make_judged(project, [(items[0], said)])
    chosen = {"run": [1, 2, 3], "strategy": "majority", "weight-2": "much"}
    named = {"name": "Jury", "tags": "panel, main", "note": "All three."}
    refused = browser.post(page("run-derive"), {**chosen, **named, "strategy": "weighted-votes"})
    assert "Enter a number." in shown(refused, 422)
    browser.post(page("run-derive"), {**chosen, **named})
    made = last_run()
    assert (made.name, made.tags, made.note) == ("Jury", ["panel", "main"], "All three.")
    assert made.outcomes.get().result == "detected"
    again = browser.post(page("run-derive"), {**chosen, **named})
    assert "Run 4 already has the name “Jury”." in shown(again, 422)
