"""Generators: runs that make texts of items go the way of all runs, and judge nothing."""

import json

import pytest
from django.test import Client

from annotation.models import Item, Project
from judging.errors import Refused
from judging.models import Reading, Run
from judging.results import figures
from judging.runs import lifecycle, selection
from judging.strategies import preview
from tests.builders import make_member, make_project, make_slot
from tests.judging.builders_judging import (
    answer,
    make_endpoint,
    make_items,
    make_run,
    make_strategy,
    results,
    work,
)
from tests.services.scripted_evaluator import Script, ScriptedEvaluator

NOBODY = "http://127.0.0.1:1/v1"
GOLD = "A spider is an animal that has eight legs, and this is what it is known for by all of us."
UNFIT = {"swapped", "echoed", "language", "unrelated"}
PARTS = {"perturbed": "Nine legs.", "claim": "8 became 9.", "rationale": "Spiders have 8."}


@pytest.mark.django_db(transaction=True)
def test_each_reply_makes_a_text_and_none_is_an_opinion_of_an_item(
    project: Project, evaluator: ScriptedEvaluator
) -> None:
    make_items(project, 3)
    run = work(make_run(project, make_endpoint(evaluator), "generate-number-errors", samples=2))
    assert (run.state, run.generates, results(run)) == ("finished", True, {"made": 3})
    assert {str(one.values) for one in run.outcomes.all()} == {"{'made': 2, 'missing': {}}"}
    made = Reading.objects.filter(reply__request__calls__run=run)
    assert made.count() == 6
    assert all(isinstance(one.value, dict) and one.value.keys() == PARTS.keys() for one in made)
    assert not Item.objects.exclude(first_reply_at=None).exists()


@pytest.mark.django_db
def test_items_that_people_are_labelling_can_be_started_from(project: Project) -> None:
    [item, _] = make_items(project, 2)
    make_slot(item)
    member = make_member(project, role="researcher")
    run = make_run(project, make_endpoint(NOBODY), "generate-entity", member=member)
    assert not run.while_labelling


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "finish", "cause"),
    [
        ("I would rather not.", "stop", "unparsable"),
        (json.dumps(PARTS | {"claim": ""}), "stop", "incomplete"),
        (json.dumps(PARTS), "length", "truncated"),
        (json.dumps(PARTS), "refused", "refused"),
    ],
)
def test_a_reply_that_makes_nothing_is_counted_by_its_cause(
    project: Project, text: str, finish: str, cause: str
) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint(NOBODY), "generate-entity")
    lifecycle.plan_calls(run)
    assert answer(run, text, finish=finish) == 1
    assert results(run) == {cause: 1}
    assert run.outcomes.get().values == {"made": 0, "missing": {cause: 1}}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("strategy", "fault", "cause"),
    [
        ("generate-entity", "no_json", "unparsable"),
        ("generate-entity", "truncated", "truncated"),
        ("generate-entity", "incomplete", "incomplete"),
        ("generate-entity", "swapped", "swapped"),
        ("generate-entity", "echoed", "echoed"),
        ("generate-entity", "other_language", "language"),
        ("generate-entity", "only_claim", "swapped"),
        ("generate-claims", "no_json", "unparsable"),
        ("generate-claims", "incomplete", "incomplete"),
        ("generate-claims", "echoed", "echoed"),
        ("generate-claims", "other_language", "language"),
    ],
)
def test_what_is_of_no_use_is_counted_by_its_cause_and_not_asked_again(
    project: Project, evaluator: ScriptedEvaluator, strategy: str, fault: str, cause: str
) -> None:
    for item in make_items(project, 2):
        item.revisions.update(texts={"prompt": f"{item.key}: {GOLD}", "gold": GOLD + item.key})
    evaluator.script = Script(faults={fault: ""})
    run = work(make_run(project, make_endpoint(evaluator), strategy))
    assert (run.state, results(run)) == ("finished", {cause: 2})
    assert {one.values["missing"][cause] for one in run.outcomes.all()} == {1}
    assert {entry["attempt"] for entry in evaluator.log} == {1}
    # What was read stays, so that people see what it was.
    read = {one.cause for one in Reading.objects.all()}
    assert read == ({""} if cause in UNFIT else {cause})
    with pytest.raises(Refused, match="This run has no failed requests"):
        lifecycle.retry_failed(run, None)
    assert (len(evaluator.log), results(run)) == (2, {cause: 2})


@pytest.mark.django_db
def test_of_several_replies_the_one_of_use_makes_the_item(
    project: Project, browser: Client
) -> None:
    [item] = make_items(project, 1)
    item.revisions.update(texts={"prompt": "What?", "gold": GOLD, "perturbed": GOLD[:-1]})
    run = make_run(project, make_endpoint(NOBODY), "generate-entity", samples=2)
    lifecycle.plan_calls(run)
    answer(run, json.dumps(PARTS | {"perturbed": GOLD.replace(" ", "\n")}), 1)
    answer(run, json.dumps(PARTS))
    assert run.outcomes.get().values == {"made": 1, "missing": {"echoed": 1}}
    other = make_run(project, make_endpoint(NOBODY), "generate-entity")
    lifecycle.plan_calls(other)
    answer(other, json.dumps(PARTS | {"perturbed": GOLD}))
    page = browser.get(f"/projects/fbi/runs/{other.number}/items/{item.key}/").content.decode()
    assert "Missing because: echoed, the reply repeats its source" in page
    assert "<h3>Perturbed</h3>" in page
    assert "{&#x27;perturbed" not in page
    assert "1 echoed" in browser.get(f"/projects/fbi/runs/{other.number}/").content.decode()


@pytest.mark.django_db
def test_a_category_is_made_where_its_ability_is_and_once_a_question(project: Project) -> None:
    make_items(project, 2)
    make_items(project, 1, source_ability="reasoning", ability="reasoning")
    [twin] = make_items(project, 1, cluster="cluster-1")
    made = make_items(project, 1, parent=twin)
    run = make_run(project, make_endpoint(NOBODY), "generate-entity")
    assert {one.item.key for one in run.outcomes.all()} == {"item-1", "item-2"}
    invariant = make_run(project, make_endpoint(NOBODY), "generate-score-invariant")
    assert invariant.outcomes.count() == 3
    with pytest.raises(Refused, match="not what the strategy makes its category from"):
        make_run(project, make_endpoint(NOBODY), "generate-grammar")
    assert not selection.accepts_item(project, "gold", made[0])


@pytest.mark.django_db
@pytest.mark.parametrize("needs", ["gold", selection.PERTURBATION])
def test_a_duplicate_is_previewed_though_no_run_begins_with_it(
    project: Project, needs: str
) -> None:
    [original] = make_items(project, 1)
    [copy] = make_items(project, 1, duplicate_of=original)
    [other] = make_items(make_project("other"), 1)
    accepted = [selection.accepts_item(project, needs, one) for one in (original, copy, other)]
    assert accepted == [True, True, False]
    assert selection.find_first_item(project, needs) == original.pk


@pytest.mark.django_db
def test_what_has_no_such_text_cannot_be_started_from(project: Project) -> None:
    items = make_items(project, 2)
    for item in items:
        item.revisions.update(texts={"prompt": "What?", "perturbed": "That."})
    with pytest.raises(Refused, match="No item of this project has the source text 'gold'"):
        make_run(project, make_endpoint(NOBODY), "generate-entity")
    assert make_run(project, make_endpoint(NOBODY), "generate-gold").outcomes.count() == 2
    assert selection.find_first_item(project, "gold") is None
    assert selection.find_first_item(project, "prompt") == items[0].pk


@pytest.mark.django_db
def test_an_input_of_study_001_is_answered_as_it_is(project: Project) -> None:
    [one, other] = make_items(project, 2)
    one.revisions.update(texts={"input": "Is this so?", "context": "It is.", "response": "Yes."})
    other.revisions.update(texts={"response": "No."})
    run = make_run(project, make_endpoint(NOBODY), "generate-response")
    assert [outcome.item for outcome in run.outcomes.all()] == [one]
    shown = preview.build_preview(project, make_strategy("generate-response"), item=one)
    assert shown.prompt
    assert (shown.prompt.system, shown.prompt.user) == ("", "Is this so?\n\nIt is.")


@pytest.mark.django_db
def test_figures_are_never_made_of_generators(project: Project, browser: Client) -> None:
    make_items(project, 1)
    generator = make_run(project, make_endpoint(NOBODY), "generate-entity")
    judge = make_run(project, make_endpoint(NOBODY))
    page = browser.get("/projects/fbi/results/overview/")
    assert figures.select_project_runs(project, page.wsgi_request.GET) == [judge]
    assert browser.get(f"/projects/fbi/results/overview/?run={generator.number}").status_code == 404
    assert list(Run.objects.in_project(project).judging()) == [judge]
    listed = browser.get("/projects/fbi/runs/").content.decode()
    assert "Generate: entity" in listed or "generate-entity" in listed
    assert browser.get(f"/projects/fbi/runs/{generator.number}/").status_code == 200


@pytest.mark.django_db
def test_what_a_generator_is_sent_can_be_read_before(project: Project, browser: Client) -> None:
    [item] = make_items(project, 1)
    shown = preview.build_preview(project, make_strategy("generate-entity"), item=item)
    assert (shown.problem, shown.notes) == ("", ())
    assert shown.prompt
    assert "1 spiders have 8 legs." in shown.prompt.user
    assert "{{" not in shown.prompt.user
    page = browser.get("/projects/fbi/strategies/generate-entity/").content.decode()
    assert "The prompt with the gold answer" in page


@pytest.mark.django_db
@pytest.mark.parametrize("needs", ["gold", "prompt"])
def test_a_further_item_of_a_question_is_drawn_for_no_run_and_can_be_looked_at(
    project: Project, needs: str
) -> None:
    first, further = make_items(project, 2, cluster="one question")
    assert [*selection.select_sources(project, needs)] == [first]
    assert selection.accepts_item(project, needs, further)
