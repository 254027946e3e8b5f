"""What people turned down is made again, and the prompt says what they said of it."""

import json

import pytest
from django.test import Client

from annotation.labelling import queue
from annotation.models import Item, Project
from judging.errors import Refused
from judging.generation import bring_in, choices, regenerate
from judging.generation.bring_in import BringInRequest
from judging.models import Run
from judging.runs import lifecycle
from judging.runs.engine import rendering
from judging.runs.run_config import RunOverrides
from judging.strategies import editing
from tests.builders import make_item, make_member, make_project, make_resolution, say, take
from tests.judging.builders_judging import (
    answer_as,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
)

pytestmark = pytest.mark.django_db

NOBODY = "http://127.0.0.1:1/v1"
PERTURBED = {"perturbed": "Nine legs.", "claim": "8 became 9.", "rationale": "It has eight."}


def turned_down(project: Project, number: int = 1) -> list[Item]:
    """Items that a person held for invalid, with a comment each."""
    claim = {"claim": "8 became 6."}
    items = [
        make_item(project, f"made-{one}", texts=claim, cluster=f"{one:064x}")
        for one in range(1, 1 + number)
    ]
    member = make_member(project)
    for item in items:
        said = f"Nobody would notice in {item.key}."
        say(member, take(member), "invalid", comment=said)
    return items


def begin(project: Project, items: list[Item], slug: str = "generate-number-errors") -> Run:
    return regenerate.start(
        project,
        "number-errors",
        items=[item.pk for item in items],
        strategy=make_strategy(slug),
        endpoint=make_endpoint(NOBODY),
        member=None,
    )


def prompts(run: Run) -> list[str]:
    requests = list(run.calls.values_list("request", flat=True))
    return [body.decode() for body in rendering.render_bodies(run, requests).values()]


def test_what_people_said_goes_into_the_prompt_and_no_name_does(project: Project) -> None:
    items = turned_down(project, 2)
    run = begin(project, items)
    lifecycle.plan_calls(run)
    [first, second] = sorted(prompts(run), key=lambda body: "made-2" in body)
    assert "Nobody would notice in made-1." in first
    assert "Nobody would notice in made-2." in second
    assert "made-2" not in first
    assert "Invalid." in first
    assert "The change was: 8 became 6." in first
    assert "annotator" not in first


def test_mentions_in_remarks_name_nobody_in_the_prompt(project: Project) -> None:
    make_member(project, alias="Ben"), make_member(project, alias="ben k", active=False)
    item = make_item(project, "made", texts={"claim": "8 became 6."})
    member = make_member(project)
    comment = "@ben, @BEN K and @Ben: see ben@lab.org and @benign."
    say(member, take(member), "invalid", comment=comment)
    run = begin(project, [item])
    lifecycle.plan_calls(run)
    [prompt] = prompts(run)
    assert "a colleague, a colleague and a colleague: see ben@lab.org and @benign." in prompt


def test_the_requests_of_another_try_are_asked_anew(project: Project) -> None:
    items = turned_down(project)
    guided = begin(project, items)
    lifecycle.plan_calls(guided)
    items[0].refresh_from_db()
    plain = make_run(project, make_endpoint(NOBODY), "generate-number-errors")
    lifecycle.plan_calls(plain)
    assert "[BEGIN REMARKS]" in prompts(guided)[0]
    assert "[BEGIN REMARKS]" not in prompts(plain)[0]
    assert guided.digest != plain.digest


def test_what_is_made_again_names_what_it_was_made_of_and_is_not_offered_twice(
    project: Project,
) -> None:
    [item] = turned_down(project)
    assert regenerate.count_rejected(project) == {"number-errors": 1}
    run = begin(project, [item])
    lifecycle.plan_calls(run)
    answer_as(run, lambda prompt: json.dumps(PERTURBED))
    lifecycle.finish_if_done(run)
    done = bring_in.bring_in_replies(BringInRequest(run, project, bring_in.ReleasePolicy()), None)
    assert (done.report.new, done.opened) == (1, 1)
    made = project.items.get(parent=item)
    assert (made.category, made.cluster) == (item.category, item.cluster)
    assert regenerate.load_rejected(project, "number-errors") == []
    with pytest.raises(Refused, match="been regenerated or have a new final label"):
        begin(project, [item])


def test_what_is_made_again_goes_by_default_where_it_was_rejected(project: Project) -> None:
    lead, other = make_member(project, role="lead"), make_project("other")
    make_member(other, role="lead", account=lead.account)
    run = begin(project, turned_down(project))
    lifecycle.plan_calls(run)
    answer_as(run, lambda prompt: json.dumps(PERTURBED))
    lifecycle.finish_if_done(run)
    run.refresh_from_db()
    offered = choices.list_targets(run, lead.account)
    bring_in.enqueue(BringInRequest(run, other, bring_in.ReleasePolicy()), lead)
    assert choices.default_target(run, offered) == project.slug


def test_an_item_made_in_another_way_does_not_count_as_regenerated(project: Project) -> None:
    [item] = turned_down(project)
    run = begin(project, [item])
    for number, (category, origin) in enumerate(
        [("final-errors", "perturber"), ("number-errors", "generated")]
    ):
        make_item(project, f"child-{number}", category=category, origin=origin, parent=item)
    assert regenerate.count_rejected(project) == {"number-errors": 1}
    again = f"{item.key}+number-errors.{run.number}.1"
    made = make_item(project, again, origin="generated", parent=item)
    assert regenerate.count_rejected(project) == {}
    # What was made of the regenerated item is none of it, whatever its key begins with.
    make_resolution(made, "invalid")
    make_item(project, f"{again}+final-errors.p.1", category="final-errors", parent=made)
    assert [one.item for one in regenerate.load_rejected(project, "number-errors")] == [made]


def test_a_generated_item_of_the_other_effect_can_be_regenerated(project: Project) -> None:
    member = make_member(project)
    unharmed = make_item(project, "unharmed", origin="generated")
    say(member, take(member), "score-invariant")
    harmed = make_item(project, "harmed", category="score-invariant", origin="generated")
    say(member, take(member), "valid", comment="Now it is wrong.")
    make_item(project, "as-meant", category="score-invariant", origin="generated")
    say(member, take(member), "score-invariant")
    make_item(project, "imported", category="score-invariant")
    say(member, take(member), "valid")
    assert regenerate.count_rejected(project) == {"number-errors": 1, "score-invariant": 1}
    [one] = regenerate.load_rejected(project, "number-errors")
    assert (one.item, one.said) == (unharmed, "Score-invariant.")
    [one] = regenerate.load_rejected(project, "score-invariant")
    assert one.item == harmed
    assert one.said == "The intended label was: Score-invariant.\nValid. “Now it is wrong.”"
    run = regenerate.start(
        project,
        "score-invariant",
        items=[harmed.pk],
        strategy=make_strategy("generate-score-invariant"),
        endpoint=make_endpoint(NOBODY),
        member=None,
    )
    lifecycle.plan_calls(run)
    assert "Now it is wrong." in prompts(run)[0]


def test_only_what_was_turned_down_can_be_made_again(project: Project) -> None:
    member = make_member(project)
    item = make_item(project)
    say(member, take(member), "valid")
    assert regenerate.load_rejected(project, item.category) == []
    assert regenerate.collect_feedback(project, [item.pk]) == {item.pk: "Valid."}


def test_of_what_nobody_said_anything_the_same_would_come_again(project: Project) -> None:
    [item] = make_items(project, 1, "invalid")
    with pytest.raises(Refused, match="item-1 has no comment"):
        begin(project, [item])


def test_a_strategy_must_make_the_category_and_take_guidance(project: Project) -> None:
    items = turned_down(project)
    with pytest.raises(Refused, match="does not generate number-errors"):
        begin(project, items, "generate-entity")
    guidance = {"made-1": "Too easy."}
    with pytest.raises(Refused, match="has no slot for guidance"):
        make_run(project, make_endpoint(NOBODY), own=RunOverrides(guidance=guidance))


def test_gold_answers_that_people_turned_down_are_no_source() -> None:
    project = make_project("prompts", task_type="gold-verification")
    member = make_member(project)
    for number in (1, 2):
        make_item(project, f"q{number}", texts={"gold": f"{number}."}, category="")
    answers = {"verdict": "wrong", "explanation": "No."}
    queue.store_label(member, take(member).submission(answers))
    run = make_run(project, make_endpoint(NOBODY), "generate-number-errors")
    assert [one.item.key for one in run.outcomes.all()] == ["q2"]


def test_the_versions_that_are_offered_make_the_category(project: Project) -> None:
    [version] = regenerate.list_strategies(project, "number-errors")
    assert version.slug == "generate-number-errors"


def test_the_project_s_own_versions_are_offered_first(project: Project) -> None:
    lead, shipped = make_member(project, role="lead"), make_strategy("generate-number-errors")
    for slug in ("a-numbers", "z-numbers"):
        editing.copy_strategy(project, shipped, slug=slug, member=lead)
    found = [version.slug for version in regenerate.list_strategies(project, "number-errors")]
    assert found == ["a-numbers", "z-numbers", "generate-number-errors"]


def test_of_what_no_reply_was_of_use_somebody_can_ask_again(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 3)
    run = make_run(project, make_endpoint(NOBODY), "generate-number-errors", samples=2)
    lifecycle.plan_calls(run)
    bad = f"{items[1].position} spiders"
    answer_as(run, lambda prompt: "No." if bad in prompt else json.dumps(PERTURBED))
    with pytest.raises(Refused, match="still running"):
        regenerate.retry_missing(run, None)
    lifecycle.finish_if_done(run)
    page = browser.get("/projects/fbi/runs/1/").content.decode()
    assert "Retry items without a result" in page
    browser.post("/projects/fbi/runs/1/anew/")
    anew = Run.objects.latest("pk")
    assert [one.item for one in anew.outcomes.all()] == [items[1]]
    lifecycle.plan_calls(anew)
    assert answer_as(anew, lambda prompt: json.dumps(PERTURBED)) == 2
    lifecycle.finish_if_done(anew)
    assert anew.outcomes.get().result == "made"
    assert run.outcomes.get(item=items[1]).cause == "unparsable"
    page = browser.get("/projects/fbi/runs/2/").content.decode()
    assert "Retry items without a result" not in page
    assert "canary" not in page
    anew.refresh_from_db()
    with pytest.raises(Refused, match="generated a text for every item"):
        regenerate.retry_missing(anew, None)
