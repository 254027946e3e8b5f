"""Explanations of detectors, raters and rubrics, live and recorded, as items for people."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.models import Item, Label, Project
from judging.models import Run
from judging.results import explanation_audits
from judging.results.tables import audits
from judging.runs import lifecycle
from tests.builders import make_item, make_member, make_project, make_slot
from tests.judging.builders_judging import answer, make_endpoint, make_responses, make_run
from tests.judging.builders_rated import bring_scores, command, write

pytestmark = pytest.mark.django_db

ERROR = "Ants have six legs. Therefore, the model response contains an error."
NO_ERROR = "All of it holds. Therefore, the model response contains no error."
ADDRESS = "http://127.0.0.1:9/v1"


def responses(task_type: str, *values: str, **said: Any) -> Project:
    made = make_project("ants", task_type=task_type)
    make_responses(made, values, **said)
    return made


def judged(project: Project, reply: str, strategy: str, **values: Any) -> Run:
    run = make_run(project, make_endpoint(ADDRESS), strategy, **values)
    lifecycle.plan_calls(run)
    answer(run, reply)
    run.refresh_from_db()
    return run


def recorded(folder: Path, project: Project, strategy: str, *rows: dict[str, Any]) -> Run:
    path = write(folder / "replies.jsonl", rows)
    named = {"project": project.slug, "endpoint": "detector", "strategy": strategy}
    command("import_replies", str(path), format="jsonl", **named)
    return Run.objects.latest("number")


def audit(*found: Run, n: int = 9) -> list[Item]:
    """The items of an audit of these runs, in the order of what they are about."""
    made = explanation_audits.create_audit(found, n=n, seed=0, into="audit")
    assert not made.report.bad
    return sorted(made.project.items.all(), key=lambda one: one.key)


def shown(item: Item) -> dict[str, Any]:
    return dict(item.revision().texts)


def test_of_a_detector_the_resolution_says_whether_it_was_right() -> None:
    project = responses("error-detection", "error", "no_error", "not_sure")
    held = {"verdict": "error", "error_type": ["reasoning-correctness"]}
    first = project.items.get(key="item-1")
    first.resolutions.update(values=held, comment="Six, not eight.")
    found, none = audit(judged(project, ERROR, "detect-1a"))
    assert shown(found) == {
        "input": "How many legs have 1 ants?",
        "response": "1 ants have 8 legs.",
        "explanation": ERROR,
        "verdict": "An error",
        "verdict_right": "Yes: it found that there is an error.",
        "truth": "Verdict: Error\nWhich error categories? Reasoning correctness",
        "known_errors": "Six, not eight.",
    }
    texts = shown(none)
    assert texts["verdict_right"] == "No: it saw an error where there is none."
    assert texts["truth"] == "Verdict: No error"
    assert "known_errors" not in texts
    assert [one.fields["verdict_is_right"] for one in (found, none)] == [True, False]


def test_what_labels_said_of_an_error_is_shown_where_nobody_decided() -> None:
    project = responses("error-detection", "error")
    [item] = project.items.all()
    for choice, why in (("error", "Six legs."), ("no_error", "Nothing."), ("error", "Six legs.")):
        member = make_member(project)
        Label.objects.create(
            project=project,
            item=item,
            revision=item.revision(),
            slot=make_slot(item, number=item.slots.count() + 1, state="filled", member=member),
            member=member,
            choice=choice,
            answers={"verdict": choice, "explanation": why},
            submission=f"label-{item.slots.count()}",
            task_type=project.task_type,
        )
    [made] = audit(judged(project, NO_ERROR, "detect-1a"))
    assert shown(made)["known_errors"] == "Six legs."
    assert shown(made)["verdict_right"] == "No: it did not see that there is an error."


def test_recorded_replies_are_audited_by_what_was_stored_with_each(tmp_path: Path) -> None:
    project = responses("error-detection", "error", "no_error")
    rows = [
        {"item": "item-1", "sample": 0, "text": ERROR, "value": "error", "decided": "error"},
        {"item": "item-1", "sample": 1, "text": "Hm.", "value": "no_error", "decided": "error"},
        {"item": "item-2", "sample": 0, "text": NO_ERROR, "value": "error", "decided": "error"},
        {"item": "item-2", "sample": 1, "text": "Hm.", "value": None, "decided": "error"},
    ]
    run = recorded(tmp_path, project, "detect-self-consistency", *rows)
    made = audit(run)
    assert [(one.fields["item"], one.fields["verdict_is_right"]) for one in made] == [
        ("item-1", True), ("item-1", False), ("item-2", False),
    ]  # fmt: skip
    assert [shown(one)["explanation"] for one in made] == [ERROR, "Hm.", NO_ERROR]
    rows = audits.tabulate(project, list(Run.objects.for_results()))
    assert [(row["verdict"], row["total"]) for row in rows] == [("right", 0.5), ("wrong", 1.5)]


def test_a_rating_is_right_if_it_is_peoples_on_what_decides() -> None:
    held = {"naturalness": 1, "relatedness": 2, "correctness": 3}
    project = responses("rating", "1/2/3", "1/2/2", **held)
    project.items.get(key="item-2").resolutions.update(values=held | {"correctness": 2})
    said = {"explanation": "It counts.", "naturalness": 3, "relatedness": 9, "correctness": 3}
    right, wrong = audit(judged(project, json.dumps(said), "likert"))
    texts = shown(right)
    assert texts["input"] == "\n".join(
        ("How many legs have 1 ants?", "", explanation_audits.REFERENCE, "1 ants have 6 legs.")
    )
    assert texts["explanation"] == "It counts."
    assert texts["verdict"] == (
        "Naturalness 3 on a scale of 1 to 3\nRelatedness – on a scale of 1 to 3\n"
        "Correctness 3 on a scale of 1 to 3"
    )
    assert texts["verdict_right"] == "Yes: it gave what people gave (Correctness 3)."
    assert texts["truth"].splitlines()[0] == "Naturalness: 1 Not natural"
    assert shown(wrong)["verdict_right"] == "No: people gave something else (Correctness 2)."


def test_a_rating_that_is_right_no_more_is_no_part_of_the_figures() -> None:
    held = {"naturalness": 1, "relatedness": 2, "correctness": 3}
    project = responses("rating", "1/2/3", "1/2/3", **held)
    said = {"explanation": "It counts.", "naturalness": 3, "relatedness": 3, "correctness": 3}
    run = judged(project, json.dumps(said), "likert", samples=2)
    assert len(audit(run)) == 4
    decided = project.items.get(key="item-2").resolutions
    # What does not decide may change.
    decided.update(values=held | {"naturalness": 2}, value="2/2/3")
    assert [row["total"] for row in audits.tabulate(project, [run])] == [2]
    decided.update(values=held | {"correctness": 2}, value="1/2/2")
    assert [row["total"] for row in audits.tabulate(project, [run])] == [1]
    # Anybody can import items with such fields.
    by_hand = {"project": project.slug, "run": run.number, "item": "item-2"}
    audited = Project.objects.get(task_type__slug=explanation_audits.TASK)
    for place, more in enumerate(({"sample": [1]}, {"sample": "2"}, {"sample": 9}, {"item": []})):
        make_item(audited, f"by-hand-{place}", fields=by_hand | more)
    assert audits.tabulate(project, [run])


def test_an_evaluator_that_saw_no_reference_is_shown_without_one() -> None:
    project = responses("rating", "3", correctness=3)
    said = {"explanation": "So.", "naturalness": 1, "relatedness": 1, "correctness": 1}
    [made] = audit(judged(project, json.dumps(said), "likert-no-gold"))
    assert shown(made)["input"] == "How many legs have 1 ants?"


def test_a_score_matrix_is_right_if_its_total_is_peoples_and_a_chain_by_its_last_step() -> None:
    project = responses("rubric-matrix", "1", s1=1, s2=-1, s3=1)
    run = make_run(project, make_endpoint(ADDRESS), "score-chain")
    lifecycle.plan_calls(run)
    for reply in ("<RESULT>ant</RESULT>", "<RESULT>Class: ant</RESULT>"):
        answer(run, reply)
    answer(run, "An ant it is. <RESULT>S1: 1, S2: 0, S3: 0</RESULT>")
    run.refresh_from_db()
    [made] = audit(run)
    texts = shown(made)
    assert texts["verdict"].splitlines()[-1] == "Total 1 on a scale of -3 to 3"
    assert texts["verdict_right"] == "Yes: it gave what people gave (Total 1)."
    assert texts["truth"].splitlines()[1:] == [
        "S2 Family: -1 Wrong",
        "S3 Species: 1 Right",
        "Total: 1",
    ]
    assert texts["explanation"].startswith("An ant it is.")


def test_an_item_without_peoples_number_is_not_drawn() -> None:
    project = responses("rating", "3", "3", correctness=3)
    project.items.get(key="item-1").resolutions.update(values={"naturalness": 3})
    said = {"explanation": "So.", "naturalness": 1, "relatedness": 1, "correctness": 1}
    [made] = audit(judged(project, json.dumps(said), "likert"))
    assert made.fields["item"] == "item-2"


def test_what_cannot_be_audited_is_refused_with_the_reason(tmp_path: Path) -> None:
    project = responses("rating", "3", correctness=3, naturalness=3, relatedness=3)
    numbers = {"naturalness": 3, "relatedness": 3, "correctness": 3}
    wordless = bring_scores(tmp_path, project, "rater", "likert", [("item-1", numbers)])
    with pytest.raises(
        explanation_audits.AuditRefused, match="recorded without the texts of its replies"
    ):
        audit(wordless)
    other = judged(project, "<RESULT>S1: 1, S2: 0, S3: 0</RESULT>", "score-chain")
    with pytest.raises(
        explanation_audits.AuditRefused, match="criteria or a scale that annotators did not use"
    ):
        audit(other)
    assert not Project.objects.filter(slug="audit").exists()
