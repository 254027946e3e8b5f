"""Repeats, votes, axes and the steps of chains, from calls to outcomes."""

import json
import re
from copy import deepcopy

import pytest

from annotation.models import Project
from judging.errors import Refused
from judging.evaluators.providers.errors import Rejected
from judging.models import Call, Outcome, Request, Run
from judging.runs import lifecycle, progress
from judging.runs.engine import outcomes, rendering, store
from judging.runs.engine.store import CallResult
from judging.runs.run_config import RunOverrides
from tests.builders import make_project
from tests.judging.builders_judging import (
    answer,
    answer_as,
    fail,
    make_answer,
    make_endpoint,
    make_items,
    make_responses,
    make_run,
    make_strategy,
    make_version,
    results,
    take,
)

pytestmark = pytest.mark.django_db
NOWHERE = "http://127.0.0.1:9/v1"
SCORES = "<RESULT>s1: 1, s2: 0, s3: -1</RESULT>"


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def chain(project: Project) -> Run:
    """A planned run of three steps over two items."""
    other = make_project(task_type="rubric-matrix")
    make_responses(other, ["1/0/1", "0/0/0"])
    run = make_run(other, make_endpoint(NOWHERE), "score-chain")
    lifecycle.plan_calls(run)
    return run


def planned(project: Project, slug: str, **values: object) -> Run:
    run = make_run(project, make_endpoint(NOWHERE), slug, **values)
    lifecycle.plan_calls(run)
    return run


def by_step(body: str) -> str:
    """What each step of the chain is answered, told apart by what it shows."""
    if "[BEGIN GROUND TRUTH]" in body:
        return SCORES
    if "[BEGIN KEYWORDS]" in body:
        return "<RESULT>Class: insect</RESULT>"
    found = re.search(r"\[BEGIN TEXT\]\\n(\d+ ants)", body)
    assert found  # items differ in their keywords, or they would share their later requests
    return f"<RESULT>{found[1]}</RESULT>"


def test_every_step_is_made_when_the_one_before_it_is_read(chain: Run) -> None:
    assert [answer_as(chain, by_step) for _ in range(4)] == [2, 2, 2, 0]
    lifecycle.finish_if_done(chain)
    chain.refresh_from_db()
    assert (chain.state, results(chain)) == ("finished", {"scored": 2})
    outcome = chain.outcomes.first()
    assert outcome is not None
    assert outcome.values == {"s1": 1, "s2": 0, "s3": -1, "total": 0}
    steps = outcome.calls.order_by("step").values_list("step", "fed_by__value")
    assert list(steps) == [(0, None), (1, "1 ants"), (2, "Class: insect")]


def test_a_later_step_shows_what_the_one_before_it_said(chain: Run) -> None:
    answer_as(chain, by_step)
    shown = [one.body.decode() for one in take(chain)]
    found = {words for body in shown for words in re.findall(r"KEYWORDS\]\\n(.+?)\\n", body)}
    assert found == {"1 ants", "2 ants"}


def test_what_a_step_said_is_shown_alike_whatever_order_a_database_keeps_it_in() -> None:
    assert rendering.format_value({"b": 1.5, "a": [2]}) == '{"a": [2], "b": 1.5}'
    assert [rendering.format_value(said) for said in (2.0, 0.25, "two")] == ["2", "0.25", "two"]


def test_a_step_that_cannot_be_read_leaves_the_item_missing_for_that(chain: Run) -> None:
    answer(chain, "<RESULT>ants</RESULT>", finish="length", number=1)
    answer_as(chain, by_step)
    answer_as(chain, by_step)
    answer_as(chain, by_step)
    assert results(chain) == {"truncated": 1, "scored": 1}


def test_a_chain_that_failed_goes_on_from_the_step_that_is_tried_again(chain: Run) -> None:
    answer_as(chain, by_step)
    fail(chain, Rejected("no"))
    lifecycle.finish_if_done(chain)
    assert results(chain) == {"rejected": 2}
    assert lifecycle.retry_failed(chain, None) == 2
    assert [answer_as(chain, by_step) for _ in range(2)] == [2, 2]
    assert results(chain) == {"scored": 2}


def test_a_chain_whose_next_step_cannot_be_sent_has_nothing_to_retry(chain: Run) -> None:
    answer_as(chain, by_step)
    for outcome in chain.outcomes.select_related("revision"):
        outcome.revision.texts.pop("gold")
        outcome.revision.save()
    answer_as(chain, by_step)
    lifecycle.finish_if_done(chain)
    assert results(chain) == {"rejected": 2}
    with pytest.raises(Refused, match="This run has no failed requests"):
        lifecycle.retry_failed(chain, None)
    assert not Run.objects.to_retry().exists()


def test_a_worker_that_died_before_it_made_the_next_calls_costs_nothing(
    chain: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(outcomes.calls, "create_calls", lambda *parts: [])
        answer_as(chain, by_step)
    assert Call.objects.filter(step=1).count() == 0
    assert not lifecycle.finish_if_done(chain)
    assert Call.objects.filter(step=1).count() == 2
    # Settled once more, nothing is made twice.
    outcomes.settle(chain.outcomes.values_list("pk", flat=True))
    assert Request.objects.count() == 4


def test_a_chain_that_is_cancelled_makes_no_more_calls(chain: Run) -> None:
    leased = take(chain)
    lifecycle.cancel(chain, None)

    said = [CallResult(one, make_answer("<RESULT>ants</RESULT>")) for one in leased]
    store.store_results(chain.endpoint, "worker", said)
    store.decide_outcomes(said)
    assert Call.objects.filter(step=1).count() == 0


def test_progress_counts_the_steps_that_are_still_to_come(chain: Run) -> None:
    done = progress.count_progress(chain)
    assert (done.requests, done.to_come, done.share) == (2, 4, 0)
    answer_as(chain, by_step)
    done = progress.count_progress(chain)
    assert (done.answered, done.waiting, done.to_come) == (2, 2, 2)
    assert done.share == pytest.approx(1 / 3)
    answer_as(chain, by_step)
    answer_as(chain, by_step)
    assert (progress.count_progress(chain).to_come, progress.count_progress(chain).share) == (0, 1)


def test_what_steps_showed_is_rendered_again_to_the_byte(chain: Run) -> None:
    for _ in range(3):
        answer_as(chain, by_step)
    wanted = dict(Request.objects.values_list("pk", "digest"))
    bodies = rendering.render_bodies(chain, list(wanted))
    assert {
        pk: rendering.compute_request_digest(chain, body) for pk, body in bodies.items()
    } == wanted


def test_a_repeat_of_gold_goes_with_the_same_repeat_of_the_perturbed_answer(
    project: Project,
) -> None:
    make_items(project, 1)
    run = planned(project, "vanilla-score", samples=3)
    assert Request.objects.count() == 6
    said = {("gold", 0): 8, ("gold", 1): 6, ("gold", 2): 5, ("perturbed", 0): 7}
    said |= {("perturbed", 1): 7, ("perturbed", 2): 4}
    place = dict(enumerate(said))
    for number, (role, sample) in place.items():
        made = run.calls.filter(role=role, sample=sample).values("request")
        Request.objects.filter(pk__in=made).update(place=number - 10)
    for score in said.values():
        answer(run, json.dumps({"score": score}), number=1)
    outcome = run.outcomes.get()
    # 8 against 7 and 5 against 4 detect, 6 against 7 does not.
    assert (outcome.result, outcome.share) == ("detected", pytest.approx(2 / 3))


def test_repeats_ask_as_often_as_they_are_wanted_and_share_what_is_there(project: Project) -> None:
    make_items(project, 2)
    endpoint = make_endpoint(NOWHERE)
    first = make_run(project, endpoint, "reference")
    lifecycle.plan_calls(first)
    answer(first)
    run = make_run(project, endpoint, "reference", samples=3)
    lifecycle.plan_calls(run)
    assert Request.objects.count() == 6
    assert answer(run) == 4


def test_a_repeat_that_failed_is_decided_anew_when_it_is_tried_again(project: Project) -> None:
    make_items(project, 1)
    run = planned(project, "reference", samples=3)
    answer(run, '{"score": 10}', number=1)
    answer(run, '{"score": 3}', number=1)
    fail(run, Rejected("no"))
    lifecycle.finish_if_done(run)
    assert run.outcomes.get().share == 0.5
    lifecycle.retry_failed(run, None)
    answer(run, '{"score": 3}')
    assert run.outcomes.get().share == pytest.approx(2 / 3)


def test_votes_are_one_verdict_and_have_no_share(project: Project) -> None:
    other = make_project(task_type="error-detection")
    make_responses(other, ["error"])
    run = planned(other, "detect-self-consistency")
    assert run.samples == 5
    assert run.pinned["parameters"] == {"temperature": 0.5, "max_tokens": 4096}
    answer(run, "Therefore, the model response contains an error.", number=3)
    answer(run, "Therefore, the model response contains no error.")
    outcome = run.outcomes.get()
    assert (outcome.result, outcome.detail, outcome.share) == ("detected", "error", None)


def test_each_axis_is_an_outcome_and_that_of_the_ability_is_the_item_s_own(
    project: Project,
) -> None:
    make_items(project, 1)
    make_items(project, 1, "score-invariant", source_ability="reasoning")
    run = planned(project, "axis", own=RunOverrides(axes=("all",)))
    own = run.outcomes.main().values_list("item__key", "axis")
    assert dict(own) == {"item-1": "hallucination", "item-2": "reasoning-accuracy"}
    assert run.outcomes.count() == 2 * len(make_strategy("axis").strategy().axes)
    answer(run, '{"score": 2}')
    assert set(run.outcomes.values_list("result", "detail")) == {("undetected", "equal")}
    assert set(Call.objects.values_list("axis", flat=True)) == set(
        Outcome.objects.values_list("axis", flat=True)
    )
    done = progress.count_progress(run)
    assert (done.items, done.settled) == (2, 2)


def test_parameters_of_the_strategy_lie_over_those_of_the_endpoint(project: Project) -> None:
    make_items(project, 1)
    endpoint = make_endpoint(NOWHERE, parameters={"temperature": 0.1, "seed": 7})
    version = make_version("reference", parameters={"temperature": 0.9})
    run = lifecycle.start_run(
        project, strategy=version, endpoint=endpoint, config=lifecycle.RunConfig(seed=1)
    )
    assert run.pinned["parameters"] == {"temperature": 0.9, "seed": 7}


def test_a_task_type_s_own_words_are_pinned_as_metrics(project: Project) -> None:
    other = make_project(task_type="rating")
    make_responses(other, ["3/2/1"])
    run = planned(other, "likert")
    before = [one.body for one in take(run)]
    other.task_type.definition = deepcopy(other.task_type.definition)
    other.task_type.definition["fields"][0]["help"] = "Something else."
    other.task_type.save()
    slugs = [metric.slug for metric in run.pinned_strategy().metrics]
    assert slugs == ["naturalness", "relatedness", "correctness"]
    pks = list(Request.objects.values_list("pk", flat=True))
    assert list(rendering.render_bodies(Run.objects.get(pk=run.pk), pks).values()) == before
    assert run.outcomes.get().truth == ""


def test_an_item_without_the_text_is_missing_and_the_others_are_asked(project: Project) -> None:
    first, _ = make_items(project, 2)
    texts = {"prompt": "How many?", "gold": "Eight."}
    first.revisions.update(texts=texts)
    run = planned(project, "vanilla-score", samples=2)
    assert results(run) == {"rejected": 1, "pending": 1}
    assert run.calls.count() == 4
    outcome = run.outcomes.get(item=first)
    assert "perturbed" in outcome.values["reason"]
