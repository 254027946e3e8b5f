"""Study 002's scores, brought in as those of five raters, against the figures that it prints; study
003's tables against its text.

People's scores come in as labels, the models' as recorded replies, by the commands that anybody
would use.
"""

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy import stats as scipy_stats

from annotation.models import Project
from judging.results.tables import rated_items
from judging.results.tables.alignment import tabulate_alignment
from judging.runs import estimate, lifecycle
from judging.runs.run_config import RunOverrides
from stats import groups
from tests.judging import published_scores
from tests.judging.builders_judging import make_endpoint, make_strategy
from tests.judging.builders_rated import bring_items, bring_labels, bring_scores, only, runs_of
from tests.judging.published_scores import POINTS, Evaluation
from tests.judging.published_tables import FOLDER, Printed

ALIGNMENT = FOLDER / "002-alignment.csv"
CORRELATIONS, MEANS = FOLDER / "003-correlations.csv", FOLDER / "003-means.csv"


def printed(path: Path, **wanted: str) -> list[Printed]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if wanted.items() <= row.items()]
    assert rows
    return rows


def digits(value: float, like: str, how: str) -> str:
    """A value with as many digits as were printed, rounded or cut as they were."""
    places = len(like.partition(".")[2])
    if how == "cut":
        value = math.floor(value * 10**places + 1e-9) / 10**places
    return f"{value:.{places}f}"


def bring(folder: Path, slug: str, found: Evaluation, task_type: str, strategy: str) -> Project:
    """The scores as a project: one person, and a run a model."""
    items = [
        {"key": key, "prompt": "Which animal?", "gold": f"of {key}", "response": f"to {key}"}
        for key in found.people
    ]
    project = bring_items(folder, slug, items, task_type)
    bring_labels(folder, project, ((key, "human", said) for key, said in found.people.items()))
    for model, said in found.models.items():
        bring_scores(folder, project, model, strategy, said.items())
    return project


def alignment(project: Project) -> list[dict[str, Any]]:
    return list(tabulate_alignment(project, runs_of(project), []))


def as_printed(rows: Iterable[dict[str, Any]], row: Printed) -> dict[str, Any]:
    """The row of our table that a printed figure is of: what is off the scale is kept there."""
    same = [one for one in rows if one["off_scale"] != "left out"]
    return only(same, endpoint=row["model"], metric=row["metric"])


@pytest.fixture
def evaluation_3(shared_data: Path, tmp_path: Path, db: None) -> tuple[Evaluation, Project]:
    found = published_scores.evaluation_3(published_scores.text(shared_data))
    task, strategy = "rubric-scoring", "score-matrix-animals"
    return found, bring(tmp_path, "animals", found, task, strategy)


def test_accuracies_of_figure_9(evaluation_3: tuple[Evaluation, Project]) -> None:
    rows = alignment(evaluation_3[1])
    agreeing = {"rounded": 0, "cut": 0}
    for row in printed(ALIGNMENT, table="figure 9"):
        found = as_printed(rows, row)
        assert found["n"] == int(row["n"]) == 25
        same = digits(found["accuracy002"], row["value"], row["printed"]) == row["value"]
        assert same is not bool(row["reason"]), row
        agreeing[row["printed"]] += same
        if row["printed"] == "cut":
            assert digits(found["accuracy002"], row["value"], "rounded") != row["value"]
    # Of 24 cells one contradicts its own tables.
    assert agreeing == {"rounded": 21, "cut": 2}


def test_errors_and_correlations_of_figures_7_and_8(
    evaluation_3: tuple[Evaluation, Project],
) -> None:
    rows = alignment(evaluation_3[1])
    for table in ("figure 7", "figure 8"):
        for row in printed(ALIGNMENT, table=table):
            value = as_printed(rows, row)[row["figure"]]
            same = digits(value, row["value"], row["printed"]) == row["value"]
            assert same is not bool(row["reason"]), row
    # "ranging from 0.11 to 1.0": so of all cells, and by Pearson's coefficient.
    found = [row["pearson"] for row in rows if row["off_scale"] != "left out"]
    assert (digits(min(found), "0.11", "rounded"), max(found)) == ("0.11", pytest.approx(1))


def test_its_one_question_of_25_pictures_is_asked_with_examples_and_without(
    evaluation_3: tuple[Evaluation, Project],
) -> None:
    _, project = evaluation_3
    asked = {
        number: estimate.estimate_run(
            project,
            strategy=make_strategy("score-matrix-animals"),
            endpoint=make_endpoint(f"http://127.0.0.1:9/{number}"),
            config=lifecycle.RunConfig(seed=1, own=RunOverrides(examples=number)),
        )
        for number in (None, 0)
    }
    assert [(one.items, len(one.examples)) for one in asked.values()] == [(22, 3), (25, 0)]


def test_errors_and_correlations_of_every_metric_are_scipy_s(
    evaluation_3: tuple[Evaluation, Project],
) -> None:
    told, project = evaluation_3
    rows = alignment(project)
    for model, said in told.models.items():
        for metric in (*POINTS, "total"):
            people, theirs = (
                [sum(one.values()) if metric == "total" else one[metric] for one in side.values()]
                for side in (told.people, said)
            )
            row = as_printed(rows, {"model": model, "metric": metric})
            squares = [(b - a) ** 2 for a, b in zip(people, theirs, strict=True)]
            assert row["rmse"] == pytest.approx(math.sqrt(sum(squares) / 25))
            assert row["pearson"] == pytest.approx(scipy_stats.pearsonr(people, theirs)[0])
            assert row["rho"] == pytest.approx(scipy_stats.spearmanr(people, theirs)[0])
            if theirs == people:
                assert (row["rmse_low"], row["rmse_reason"]) == (None, "all draws agree")
            else:
                assert row["rmse_low"] <= row["rmse"] <= row["rmse_high"]


def test_the_score_above_its_scale_is_flagged_with_figures_both_ways(
    evaluation_3: tuple[Evaluation, Project],
) -> None:
    """Table A4, DSI12: 4 points of 3 in M5, and so a total of 14 of 15."""
    project = evaluation_3[1]
    both = [row for row in alignment(project) if row["off_scale"]]
    assert {(row["endpoint"], row["metric"]) for row in both} == {
        ("Llama-2", "m5"), ("Llama-2", "total"),
    }  # fmt: skip
    kept, left_out = (only(both, metric="m5", off_scale=way) for way in ("kept", "left out"))
    assert (kept["n"], kept["missing"], left_out["n"], left_out["missing"]) == (25, 0, 24, 1)
    # People gave it 1: 9 of the squares' sum of 57 are that item's.
    assert kept["rmse"] == pytest.approx(math.sqrt(57 / 25))
    assert left_out["rmse"] == pytest.approx(math.sqrt(48 / 24))
    points = list(rated_items.tabulate_points(project, runs_of(project), []))
    flagged = [row for row in points if row["off_scale"]]
    assert {(row["item"], row["metric"], row["evaluator"]) for row in flagged} == {
        ("DSI12", "m5", 4), ("DSI12", "total", 14),
    }  # fmt: skip


def test_the_mean_of_section_7_4(evaluation_3: tuple[Evaluation, Project]) -> None:
    rows = alignment(evaluation_3[1])
    for row in printed(ALIGNMENT, table="section 7.4"):
        value = 100 * as_printed(rows, row)["mean_evaluator"]
        assert (digits(value, row["value"], row["printed"]) == row["value"]) is not bool(
            row["reason"]
        )


@pytest.mark.django_db
def test_errors_of_figure_6(shared_data: Path, tmp_path: Path) -> None:
    """The sum of three scores: of 25 items by table A6, of four by figure 5."""
    study = published_scores.text(shared_data)
    found = {"25": published_scores.evaluation_2(study), "4": published_scores.figure_5(study)}
    for row in printed(ALIGNMENT, table="figure 6"):
        project = bring(
            tmp_path, f"of-{row['n']}", found[row["n"]], "rubric-matrix", row["strategy"]
        )
        rows = alignment(project)
        value = as_printed(rows, row)["rmse"]
        assert (digits(value, row["value"], row["printed"]) == row["value"]) is not bool(
            row["reason"]
        )
    phi = only(rows, endpoint="Phi-medium", metric="total")
    # The total has -3 to 3 points, so its range is 6, not the 15 of evaluation 3.
    assert (phi["rmse"], phi["accuracy002"]) == (0.5, pytest.approx(100 - 100 * 0.5 / 6))


@pytest.mark.django_db
def test_errors_of_figure_4(shared_data: Path, tmp_path: Path) -> None:
    """Where no score was available the study has -1, which is off its scale."""
    study = published_scores.figure_3(published_scores.text(shared_data))
    project = bring(tmp_path, "rubric-one-score", study, "rubric-one-score", "score-rubric")
    rows = alignment(project)
    for row in printed(ALIGNMENT, table="figure 4"):
        value = as_printed(rows, row)["rmse"]
        assert digits(value, row["value"], row["printed"]) == row["value"]
    last = only(rows, endpoint="Meta-Llama-3-8B-Instruct", metric="score", off_scale="left out")
    assert (last["n"], last["missing"], last["rmse"]) == (2, 2, 2)


# Study 003


def of_models(table: str, language: str = "") -> dict[str, float]:
    """A table of correlations by model, of those that were tested in a language."""
    rows = printed(CORRELATIONS, table=table)
    return {one["model"]: float(one["value"]) for one in rows if language in one["group"]}


def test_the_text_contradicts_table_3_where_the_file_says_so() -> None:
    found = of_models("3")
    low, high = (
        row for row in printed(CORRELATIONS, table="4.2") if row["model"] in found and row["reason"]
    )
    assert (found[low["model"]], min(found.values())) == (0.44, 0.43)
    assert (found[high["model"]], max(found.values())) == (0.63, 0.66)
    assert (low["value"], high["value"]) == ("0.42", "0.66")


def test_means_in_the_text_are_those_of_the_tables_and_one_is_of_all_models() -> None:
    """Over models of a language; both sides are rounded, so they may lie 0.01 apart."""
    table = {"rouge-l-response": "3", "likert": "4", "likert-no-gold": "5"}
    means = [row for row in printed(CORRELATIONS, model="mean", figure="rho") if row["n"]]
    assert len(means) == 6
    for row in means:
        language = "" if row["reason"] else row["group"]
        of_group = list(of_models(table[row["strategy"]], language).values())
        assert groups.mean_over_groups(of_group).mean == pytest.approx(
            float(row["value"]), abs=0.0101
        )
    contradicted = only(means, value="0.84")
    assert contradicted["reason"]
    assert contradicted["group"] == "en"
    assert fmean(of_models("4", "en").values()) == pytest.approx(0.8317, abs=1e-4)


def test_gpt_4_varies_a_third_as_much_between_models_as_rouge_l() -> None:
    """Section 4.3: "slightly less than one third of a standard deviation"."""
    rouge, gpt = (
        groups.mean_over_groups(list(of_models(table).values())).sd for table in ("3", "4")
    )
    assert rouge
    assert gpt
    assert 0.28 < gpt / rouge < 1 / 3


@pytest.mark.parametrize("path", [ALIGNMENT, CORRELATIONS, MEANS], ids=lambda path: path.stem)
def test_every_printed_figure_has_its_denominator_and_place(path: Path) -> None:
    for row in printed(path):
        assert row["denominator"] == "total"
        assert "" not in (row["table"], row["strategy"], row["metric"])
