"""Explanations of evaluators as items for people."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from annotation import tasktypes
from annotation.models import Item, Project, Resolution, Role, Slot
from annotation.projects import encrypted_archives
from annotation.tasktypes import versions
from judging.models import Request, Run
from judging.results import explanation_audits
from judging.runs import lifecycle, supplements
from judging.runs.engine import store
from judging.runs.engine.store import CallResult
from judging.strategies import frames
from tests.builders import browser_of, make_member, make_project
from tests.judging.builders_judging import (
    answer,
    make_answer,
    make_endpoint,
    make_items,
    make_run,
    take,
)

pytestmark = pytest.mark.django_db

LOW = '{"explanation": "It has two legs too few.", "score": 3}'
FIRST = '{"explanation": "It has two legs too few.", "verdict": "A"}'
TOP = '{"explanation": "All of it holds.", "score": 10}'
ADDRESS = "http://127.0.0.1:9/v1"


@pytest.fixture
def project() -> Project:
    made = make_project("spiders")
    make_items(made, 6)
    return made


def judged(project: Project, reply: str = LOW, strategy: str = "reference", **values: Any) -> Run:
    """A run of which every request got this reply."""
    run = make_run(project, make_endpoint(ADDRESS), strategy, **values)
    lifecycle.plan_calls(run)
    answer(run, reply)
    run.refresh_from_db()
    return run


def audit(
    project: Project, *found: Run, n: int = 3, **values: Any
) -> explanation_audits.CreatedAudit:
    return explanation_audits.create_audit(found, **{"n": n, "seed": 0, "into": "audit", **values})


def items() -> list[Item]:
    return list(Item.objects.filter(project__slug="audit").order_by("position"))


def test_an_item_shows_what_the_evaluator_saw_said_and_whether_it_was_right(
    project: Project,
) -> None:
    run = judged(project)
    made = audit(project, run, n=1)
    [item] = items()
    texts = item.revision().texts
    original = Item.objects.get(project=project, key=item.fields["item"])
    assert texts["response"] == original.revision().texts["perturbed"]
    assert texts["input"].startswith(original.revision().texts["prompt"])
    assert original.revision().texts["gold"] in texts["input"]
    assert texts["explanation"] == "It has two legs too few."
    assert texts["verdict"] == "3 on a scale of 1 to 10"
    assert texts["verdict_right"] == "Yes: it noticed the error."
    assert texts["truth"] == "The answer was changed so that it has an error (number errors)."
    assert (made.drawn, made.available, made.project.task_type.slug) == (
        1,
        6,
        explanation_audits.TASK,
    )
    assert Slot.objects.filter(item=item).count() == made.project.overlap


@pytest.mark.parametrize(("strategy", "reply"), [("reference", LOW), ("pairwise", FIRST)])
def test_the_reply_of_a_supplement_is_shown_in_place_of_the_unusable_one(
    project: Project, strategy: str, reply: str
) -> None:
    run = judged(project, "I cannot say.", strategy)
    lifecycle.finish_if_done(run)
    supplements.ask_again(run, None, {"max_tokens": 4096})
    answer(run, reply)
    lifecycle.finish_if_done(run)
    audit(project, run)
    texts = [one.revision().texts for one in items()]
    assert len(texts) == 3
    assert {one["explanation"] for one in texts} == {"It has two legs too few."}
    assert "None" not in {one["verdict"] for one in texts}


def test_an_audit_whose_task_type_was_adapted_takes_more_items(project: Project) -> None:
    make_member(project, role="lead")
    run = judged(project)
    audit(project, run, n=1)
    made = Project.objects.get(slug="audit")
    source = tasktypes.load_sources()["explanation-audit"].replace('"Correct"', '"All right"')
    adapted = versions.parse_source(made, source)
    versions.save_version(made, adapted, member=made.members.get(), shown=made.task_type_id)
    audit(project, run, n=3)
    assert len(items()) == 3


def test_fields_name_the_evaluator_and_no_text_does(project: Project) -> None:
    run = judged(project, TOP)
    audit(project, run, n=1)
    [item] = items()
    assert item.fields["endpoint"] == run.endpoint.name
    assert (item.fields["run"], item.fields["strategy"]) == (run.number, "reference")
    assert item.fields["verdict_is_right"] is False
    assert item.revision().texts["verdict_right"] == "No: it did not notice the error."
    assert run.endpoint.name not in str(item.revision().texts)


def test_texts_are_those_that_the_task_type_asks_for(project: Project) -> None:
    audit(project, judged(project), n=1)
    task = tasktypes.load_version(Project.objects.get(slug="audit").task_type)
    texts = items()[0].revision().texts
    assert {text.name for text in task.texts if text.required} <= set(texts)
    assert set(texts) <= {text.name for text in task.texts}


def test_every_evaluator_gets_the_same_items_in_mixed_order(project: Project) -> None:
    one, other = judged(project), judged(project, TOP)
    made = audit(project, one, other)
    keys = [(item.fields["run"], item.fields["item"]) for item in items()]
    by_run = {number: sorted(key for run, key in keys if run == number) for number, _ in keys}
    assert by_run[one.number] == by_run[other.number]
    assert (made.drawn, len(keys)) == (3, 6)
    assert [run for run, _ in keys] != sorted(run for run, _ in keys)


def test_only_items_that_all_runs_decided_and_that_are_still_held_so_are_drawn(
    project: Project,
) -> None:
    one, other = judged(project), judged(project)
    missing, changed = one.outcomes.order_by("pk")[:2]
    one.outcomes.filter(pk=missing.pk).update(result="missing", cause="refused")
    Resolution.objects.filter(item=changed.item_id).update(value="invalid")
    made = audit(project, one, other, n=20)
    drawn = {item.fields["item"] for item in items()}
    assert (made.drawn, made.available) == (4, 4)
    assert not drawn & {missing.item.key, changed.item.key}


def test_again_is_nothing_new_and_more_adds_to_what_was_drawn(project: Project) -> None:
    run = judged(project)
    audit(project, run, n=2)
    before = {item.key for item in items()}
    assert audit(project, run, n=2).report.unchanged == 2
    assert audit(project, run, n=4).report.new == 2
    assert before < {item.key for item in items()}


def test_an_audit_of_a_sealed_project_is_sealed(project: Project) -> None:
    run = judged(project)
    assert not audit(project, run).project.sealed
    encrypted_archives.seal_project(run.project)
    assert audit(project, run).project.sealed


def test_the_leads_of_the_runs_lead_the_audit_and_nobody_else_is_in_it(project: Project) -> None:
    lead = make_member(project, Role.LEAD)
    make_member(project, Role.LEAD, active=False)
    make_member(project)
    made = audit(project, judged(project)).project
    assert [(one.account, one.role) for one in made.members.all()] == [(lead.account, Role.LEAD)]
    assert browser_of(lead).get("/projects/audit/members/").status_code == 200
    audit(project, judged(project, TOP, "vanilla"), n=4)
    assert made.members.count() == 1


def test_the_seed_decides_which_items_are_drawn(project: Project) -> None:
    run = judged(project)
    drawn = set()
    for seed in range(6):
        audit(project, run, n=1, seed=seed, into=f"audit-{seed}")
        item = Item.objects.get(project__slug=f"audit-{seed}")
        drawn.add(item.fields["item"])
    assert len(drawn) > 1


def test_score_invariant_items_say_that_nothing_was_to_be_taken_off() -> None:
    project = make_project()
    make_items(project, 1, "score-invariant", category="formatting", ability="score-invariant")
    audit(project, judged(project, TOP), n=1)
    texts = items()[0].revision().texts
    assert texts["verdict_right"] == "Yes: it took nothing off."
    assert texts["truth"] == "The answer was changed, and is worth as much as before."


def test_of_several_axes_the_item_s_own_is_judged(project: Project) -> None:
    run = judged(project, strategy="axis")
    other = run.outcomes.filter(main=False)
    other.update(result="missing", cause="refused")
    made = audit(project, run, n=2)
    assert (made.drawn, made.available, made.report.rows) == (2, 6, 2)
    run.outcomes.filter(main=True).update(result="missing", cause="refused")
    other.update(result="undetected", cause="")
    with pytest.raises(
        explanation_audits.AuditRefused, match="have no common item with an outcome"
    ):
        audit(project, run)


def test_of_a_run_with_several_samples_each_has_an_explanation_of_its_own(
    project: Project,
) -> None:
    run = make_run(project, make_endpoint(ADDRESS), "reference", samples=3)
    lifecycle.plan_calls(run)
    leased = take(run)
    sample = dict(Request.objects.values_list("pk", "sample"))
    replies = (LOW, TOP, "[[nothing")
    results = [CallResult(one, make_answer(replies[sample[one.request_id]])) for one in leased]
    store.store_results(run.endpoint, "worker", results)
    store.decide_outcomes(results)
    run.refresh_from_db()
    made = audit(project, run, n=1)
    [first, second] = sorted(items(), key=lambda item: item.key)
    # The third sample could not be read, and is no verdict.
    assert made.report.new == 2
    assert (first.key, second.key) == (
        f"spiders/1/{first.fields['item']}/1", f"spiders/1/{first.fields['item']}/2",
    )  # fmt: skip
    assert [one.fields["verdict_is_right"] for one in (first, second)] == [True, False]
    assert [one.fields["sample"] for one in (first, second)] == [1, 2]
    assert first.revision().texts["explanation"] == "It has two legs too few."
    assert second.revision().texts["verdict_right"] == "No: it did not notice the error."
    assert audit(project, run, n=1).report.unchanged == 2


def test_a_verdict_on_two_answers_shows_both_as_the_evaluator_saw_them(project: Project) -> None:
    said = '{"explanation": "A counts right.", "verdict": "A"}'
    audit(project, judged(project, said, "pairwise"), n=1)
    texts = items()[0].revision().texts
    assert texts["response"].startswith("Answer A:\n")
    assert "\n\nAnswer B:\n" in texts["response"]
    assert (texts["verdict"], texts["explanation"]) == ("A", "A counts right.")


def test_two_scores_stand_beside_each_other(project: Project) -> None:
    audit(project, judged(project, LOW, "vanilla"), n=1)
    said = items()[0].revision().texts
    assert said["verdict"] == "3 on a scale of 1 to 10; it gave the unchanged answer 3"


def test_a_reply_without_a_parsed_explanation_is_shown_as_it_came(project: Project) -> None:
    audit(project, judged(project, "[[4]]"), n=1)
    assert items()[0].revision().texts["explanation"] == "[[4]]"


@pytest.mark.parametrize(
    "reply",
    ['{"score": 4}', '```json\n{"score": 4}\n```', ' {"explanation": " ", "score": 4}\n'],
)
def test_the_json_of_a_verdict_alone_is_no_explanation(project: Project, reply: str) -> None:
    run = judged(project, reply)
    [bad] = audit(project, run, n=1).report.bad
    assert not items()
    assert bad.field == "explanation"
    assert bad.reason.startswith(f"Run {run.number} has no explanation for item-")
    # The other run explains the same items.
    assert audit(project, judged(project), run).report.new == 3


@pytest.mark.parametrize(
    "reply",
    ['{"score": 4, "reason": "A leg is missing."}', 'A leg is missing. {"score": 4}'],
)
def test_words_beside_a_verdict_are_shown_as_they_came(project: Project, reply: str) -> None:
    audit(project, judged(project, reply), n=1)
    assert "A leg is missing." in items()[0].revision().texts["explanation"]


def test_a_long_key_stays_a_key_of_its_own() -> None:
    project = make_project("p" * 60)
    [item] = make_items(project, 1, key="k" * 190)
    audit(project, judged(project), n=1)
    [made] = items()
    assert len(made.key) == 200
    assert made.fields["item"] == item.key


def test_runs_that_explain_nothing_are_refused(project: Project) -> None:
    for run in (make_run(project), judged(project, strategy="vanilla-score")):
        with pytest.raises(explanation_audits.AuditRefused, match="asks for no explanation"):
            audit(project, run)
    assert not Project.objects.filter(slug="audit").exists()


def test_runs_without_a_shared_item_are_refused(project: Project) -> None:
    run = make_run(project, make_endpoint(ADDRESS))
    with pytest.raises(
        explanation_audits.AuditRefused, match="have no common item with an outcome"
    ):
        audit(project, run)


def test_a_project_of_another_task_type_is_refused(project: Project) -> None:
    with pytest.raises(
        explanation_audits.AuditRefused, match="An audit needs the task type 'explanation-audit'"
    ):
        audit(project, judged(project), into="spiders")


def test_a_project_whose_labels_would_not_count_is_refused(project: Project) -> None:
    judged_run = judged(project)
    other = make_project("audit", task_type="explanation-audit")
    lead = make_member(other, role="lead")
    with pytest.raises(explanation_audits.AuditRefused, match="would not count"):
        audit(project, judged_run, n=1)
    make_member(project, role="lead", account=lead.account)
    assert audit(project, judged_run, n=1).drawn == 1


def command(*numbers: int, project: str = "spiders", into: str = "audit", n: int = 2) -> str:
    said = io.StringIO()
    named = [f"--run={number}" for number in numbers]
    call_command("make_audit", *named, project=project, into=into, n=n, stdout=said)
    return said.getvalue()


def test_the_command_makes_an_audit_and_says_what_it_made(project: Project) -> None:
    one, other = judged(project), judged(project)
    said = command(one.number, other.number)
    assert (
        "audit: drew 2 of 6 items with a verdict in all runs; 4 explanations added, 0 unchanged"
        in said
    )


@pytest.mark.parametrize("n", ["0", "-1", "two"])
def test_the_command_draws_at_least_one_item(project: Project, n: str) -> None:
    run = judged(project)
    words = ["--project=spiders", f"--run={run.number}", "--into=audit"]
    with pytest.raises(CommandError, match="give a number of items, 1 or more"):
        call_command("make_audit", *words, f"--n={n}")
    call_command("make_audit", *words, "--n=1", stdout=io.StringIO())


@pytest.mark.parametrize(
    "number, names, reason",
    [
        (9, {}, "has no run 9"),
        (1, {"project": "p"}, "no project 'p'"),
        (1, {"into": "a b"}, "is not a valid project slug"),
        (1, {"into": "spiders"}, "Choose another project"),
    ],
)
def test_the_command_refuses_in_words(
    project: Project, number: int, names: dict[str, str], reason: str
) -> None:
    judged(project)
    with pytest.raises(CommandError, match=reason) as caught:
        command(number, **names)
    assert caught.value.returncode == 2


def test_every_frame_has_a_call_whose_explanation_is_shown() -> None:
    assert set(explanation_audits._CALLS_BY_FRAME) <= set(frames.FRAMES)
    assert all(
        spec in frames.FRAMES[frame]
        for frame, (spec, _) in explanation_audits._CALLS_BY_FRAME.items()
    )
