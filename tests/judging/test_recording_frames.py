"""Recorded replies in every frame: the scores and verdicts of any rater or model come in."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Project
from judging.models import Outcome
from judging.results.tables import methods
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_items, make_responses
from tests.judging.builders_rated import bring_scores, command

pytestmark = pytest.mark.django_db

M = ("m1", "m2", "m3", "m4", "m5")


def recorded(folder: Path, strategy: str, *rows: dict[str, Any]) -> Outcome:
    """The one outcome that these rows about the first item make."""
    path = folder / "replies.jsonl"
    path.write_text("".join(json.dumps({"item": "item-1"} | row) + "\n" for row in rows))
    named = {"project": "p", "endpoint": "rater-1", "strategy": strategy, "format": "jsonl"}
    call_command("import_replies", str(path), **named, stdout=io.StringIO())
    return Outcome.objects.get(main=True)


def project(task_type: str = "perturbation-vetting") -> Project:
    made = make_project("p", task_type=task_type)
    make_items(made, 1, "error" if task_type == "error-detection" else "valid")
    return made


@pytest.mark.parametrize(
    ("strategy", "rows", "result", "detail"),
    [
        ("vanilla", [{"role": "gold", "value": 9}, {"role": "perturbed", "value": 7}],
         "detected", "lower"),
        ("vanilla-score", [{"role": "gold", "text": "8"}, {"role": "perturbed", "text": "8"}],
         "undetected", "equal"),
        ("axis", [{"role": role, "axis": "hallucination", "value": value}
                  for role, value in (("gold", 2), ("perturbed", 3))], "undetected", "higher"),
        ("pairwise", [{"role": "pair", "order": 1, "value": "A"},
                      {"role": "pair", "order": 2, "value": "B"}], "detected", "G"),
        ("pairwise-verdict", [{"role": "pair", "order": 1, "text": "both good"},
                              {"role": "pair", "order": 2, "text": "A"}], "undetected", "mixed"),
        ("reference", [{"role": "perturbed", "value": 9}], "detected", "top-1"),
        ("prometheus", [{"text": "Well done. [RESULT] 5"}], "undetected", "top"),
        ("rouge-l", [{"value": 0.5}], "detected", "lower"),
        ("explanation-check", [{"text": '{"flag": true}'}], "detected", "found"),
    ],
)  # fmt: skip
def test_scores_and_verdicts_about_perturbed_answers(
    tmp_path: Path, strategy: str, rows: list[dict[str, Any]], result: str, detail: str
) -> None:
    project()
    outcome = recorded(tmp_path, strategy, *rows)
    assert (outcome.result, outcome.detail) == (result, detail)


def test_samples_of_a_detector_are_its_votes(tmp_path: Path) -> None:
    project("error-detection")
    rows = [{"sample": n, "value": said} for n, said in enumerate(["error", "no_error", "error"])]
    outcome = recorded(tmp_path, "detect-self-consistency", *rows)
    assert (outcome.result, outcome.detail) == ("detected", "error")
    assert [part["result"] for part in outcome.values["parts"]] == [
        "detected", "undetected", "detected",
    ]  # fmt: skip


def test_ratings_by_the_metrics_of_the_task_type(tmp_path: Path) -> None:
    make_responses(make_project("p", task_type="rating"), ["3"], naturalness=3)
    said = {"naturalness": 3, "relatedness": 2, "correctness": 1}
    outcome = recorded(tmp_path, "likert", {"values": said, "text": json.dumps(said)})
    assert outcome.result == "scored"
    assert {name: outcome.values[name] for name in said} == said
    assert "differs" not in outcome.values


def test_a_rating_that_one_metric_lacks_keeps_the_others(tmp_path: Path) -> None:
    make_responses(make_project("p", task_type="rating"), ["3"], naturalness=3)
    outcome = recorded(tmp_path, "likert", {"values": {"correctness": 1}})
    assert outcome.values["correctness"] == 1
    assert outcome.values["missing"] == {"naturalness": "unparsable", "relatedness": "unparsable"}


def test_a_matrix_of_scores_has_a_total(tmp_path: Path) -> None:
    make_responses(make_project("p", task_type="rating"), ["3"])
    outcome = recorded(tmp_path, "score-matrix-animals", {"values": dict.fromkeys(M, 1)})
    assert outcome.values["total"] == 5


def test_a_value_beyond_its_scale_is_no_score_and_is_kept_with_its_row(tmp_path: Path) -> None:
    """Study 002 prints 4 where a metric ends at 3: figures are made with it and without."""
    make_responses(make_project("p", task_type="rating"), ["3"])
    said = dict.fromkeys(M, 1) | {"m5": 4}
    outcome = recorded(tmp_path, "score-matrix-animals", {"values": said})
    assert (outcome.values["m5"], outcome.values["total"]) == (None, None)
    assert outcome.values["missing"] == {"m5": "off_scale"}
    assert outcome.values["off_scale"] == [{"role": "response", "sample": 0, "said": said}]


def test_a_score_beyond_its_scale_leaves_the_item_missing_and_is_kept(tmp_path: Path) -> None:
    project()
    rows = [{"role": "gold", "value": 9}, {"role": "perturbed", "value": -1}]
    outcome = recorded(tmp_path, "vanilla-score", *rows)
    assert (outcome.result, outcome.cause) == ("missing", "off_scale")
    assert outcome.values["off_scale"] == [{"role": "perturbed", "sample": 0, "said": -1}]


def test_scores_alone_are_called_scores_by_command_page_and_methods_paragraph(
    client: Client, tmp_path: Path
) -> None:
    task = make_project("p", task_type="rubric-scoring")
    make_responses(task, ["1", "12", "4", "3", "15"])
    client.force_login(make_member(task, role="researcher").account)
    said = dict.fromkeys(M, 1)
    run = bring_scores(tmp_path, task, "judge", "score-matrix-animals", [("item-1", said)])
    path = tmp_path / "p-judge-score-matrix-animals.jsonl"
    named = {"project": "p", "strategy": "score-matrix-animals", "format": "jsonl"}
    told = command("import_replies", str(path), endpoint="other", **named)
    assert "p: 1 score recorded in 1 run; 0 already imported." in told
    page = " ".join(client.get(f"/projects/p/runs/{run.number}/").content.decode().split())
    assert "<dt>Scores recorded</dt><dd>1 <small" in page
    assert "Recorded scores</h2>" in page
    assert "Requests answered" not in page
    text = methods.write_methods(task, [run]).text
    assert "5 of them have a final label" in text
    assert "5. Values: total 1 to 15, median 4." in text
    assert "Run 1 uses scores recorded elsewhere" in text
    assert "The recorded values are used as they are." in text
    assert "Replies were parsed" not in text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([{"correctness": 1}, {"correctness": "good"}, {"naturalness": 2}], "Correctness 1 to 1"),
        ([{"correctness": "good"}] * 3, "Values: x 3"),
    ],
)
def test_final_labels_without_a_number_do_not_stop_the_methods_paragraph(
    values: list[dict[str, Any]], said: str
) -> None:
    task = make_project("p", task_type="rating")
    for item, held in zip(make_responses(task, ["x"] * 3), values, strict=True):
        item.resolutions.update(values=held)
    assert said in methods.write_methods(task, []).text


def test_replies_with_texts_are_called_replies(client: Client, tmp_path: Path) -> None:
    of = project()
    client.force_login(make_member(of, role="researcher").account)
    recorded(tmp_path, "prometheus", {"text": "Well done. [RESULT] 5"})
    page = " ".join(client.get("/projects/p/runs/1/").content.decode().split())
    assert "<dt>Replies recorded</dt><dd>1</dd>" in page
    assert "Recorded replies</h2>" in page
