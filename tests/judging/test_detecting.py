"""The detector table of study 001, against counts that were worked out by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from annotation.models import Item, Project
from judging.models import Run
from judging.results import detectors, tables
from judging.results.counted import UnknownField
from judging.results.tables import detector
from tests.builders import make_project, make_resolution
from tests.judging.builders_judging import make_endpoint, make_items, make_judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project(task_type="error-detection")


def make_sets(project: Project) -> list[Item]:
    """Four errors and two others of one task, two errors of another."""
    first = make_items(project, 4, "error", fields={"task": "sums", "level": 1})
    first += make_items(project, 2, "no_error", fields={"task": "sums", "level": 2})
    return first + make_items(project, 2, "error", fields={"task": "facts", "level": 1})


def judge(items: Sequence[Item], results: str, strategy: str = "detect-1a", **values: Any) -> Run:
    """A run over the items; D, U and - stand for detected, undetected and missing."""
    words = {"D": "detected", "U": "undetected", "-": "missing"}
    said = [(item, words[one]) for item, one in zip(items, results, strict=True)]
    return make_judged(items[0].project, said, strategy=strategy, **values)


def rows(project: Project, *by: str) -> list[dict[str, Any]]:
    runs = list(Run.objects.in_project(project).for_results())
    return detector.tabulate_detector(project, runs, by)


def test_an_item_without_a_verdict_is_no_error_in_recall_and_wrong_in_accuracy(
    project: Project,
) -> None:
    judge(make_sets(project), "DDU-DUUU", endpoint=make_endpoint("http://a"))
    first = rows(project, "task")[1]
    # Of sums: 2 of 4 errors detected, one of them missing; 1 of 2 others accused.
    assert (first["task"], first["n"], first["invalid"]) == ("sums", 6, 1)
    assert first["precision"] == pytest.approx(2 / 3)
    assert first["recall"] == pytest.approx(2 / 4)
    assert first["accuracy"] == pytest.approx(3 / 6)
    assert first["f1"] == pytest.approx(4 / 7)
    # tp 2, fp 1, fn 2, tn 1: (2 * 1 - 1 * 2) / ... = 0
    assert first["mcc"] == pytest.approx(0)
    assert first["reason"] is None


def test_where_nothing_was_called_an_error_figures_are_zero_and_say_why(project: Project) -> None:
    judge(make_sets(project), "DDU-DUUU", endpoint=make_endpoint("http://a"))
    other = rows(project, "task")[0]
    assert (other["task"], other["precision"], other["recall"], other["f1"]) == ("facts", 0, 0, 0)
    assert (other["accuracy"], other["mcc"], other["reason"]) == (0, None, "no positive")


def test_items_are_grouped_by_several_fields_or_by_none(project: Project) -> None:
    judge(make_sets(project), "DDDDUUDD", endpoint=make_endpoint("http://a"))
    found = rows(project, "task", "level")
    groups = [(row["task"], row["level"], row["n"]) for row in found if row["run"]]
    assert groups == [("facts", "1", 2), ("sums", "1", 4), ("sums", "2", 2)]
    assert [row["n"] for row in rows(project) if row["run"]] == [8]


def test_a_field_that_no_item_has_is_refused_and_names_those_there_are(project: Project) -> None:
    judge(make_sets(project), "DDDDUUDD", endpoint=make_endpoint("http://a"))
    with pytest.raises(UnknownField, match=r"grouped by colour. Choose from: .*level, task"):
        rows(project, "colour")


def test_the_mean_is_that_of_the_four_prompts_values(project: Project) -> None:
    items, endpoint = make_sets(project)[:6], make_endpoint("http://a")
    said = ("DDDDUU", "DDUUUU", "UUUUUU", "----UU")
    for slug, results in zip(detectors.PROMPTS, said, strict=True):
        judge(items, results, slug, endpoint=endpoint)
    judge(items, "DDDDDD", "detect-steps", endpoint=endpoint)
    mean = rows(project, "task")[-1]
    assert (mean["run"], mean["strategy"], mean["endpoint"]) == (None, "mean", endpoint.name)
    assert (mean["n"], mean["invalid"]) == (6, 1)
    # 0/0 enters as 0: precision (1 + 1 + 0 + 0) / 4, recall (1 + 1/2 + 0 + 0) / 4
    assert mean["precision"] == pytest.approx(0.5)
    assert mean["recall"] == pytest.approx(0.375)
    assert mean["accuracy"] == pytest.approx((6 + 4 + 2 + 2) / 6 / 4)


def test_baselines_are_counted_once_over_all_items_that_any_run_judged(project: Project) -> None:
    items, endpoint = make_sets(project), make_endpoint("http://a")
    judge(items[:4], "DDUU", endpoint=endpoint)
    judge(items[:6], "DDUUU-", "detect-1b", endpoint=endpoint)
    found = {row["strategy"]: row for row in rows(project, "task") if row["endpoint"] is None}
    assert list(found) == ["random", "always-error"]
    chance, always = found["random"], found["always-error"]
    # 4 of 6 are errors: precision, recall and F1 2/3; accuracy 4/9 + 1/9.
    assert (chance["task"], chance["n"], chance["invalid"]) == ("sums", 6, 0)
    assert (chance["f1"], chance["accuracy"]) == (pytest.approx(2 / 3), pytest.approx(5 / 9))
    # Everything an error: F1 2 * 4 / (2 * 4 + 2)
    assert (always["recall"], always["f1"]) == (1, pytest.approx(0.8))


def test_without_all_four_prompts_there_is_no_mean_and_the_row_says_why(project: Project) -> None:
    items, endpoint = make_sets(project)[:6], make_endpoint("http://a")
    for slug in ("detect-1a", "detect-2a"):
        judge(items, "DDDDUU", slug, endpoint=endpoint)
    judge(items, "DDDDUU", "detect-1a", endpoint=make_endpoint("http://b"))
    found = [row for row in rows(project) if row["strategy"] == "mean"]
    assert len(found) == 1
    assert found[0]["f1"] is None
    assert found[0]["reason"] == "no run of detect-1b, detect-2b"


def test_of_two_runs_of_a_prompt_the_later_one_enters_the_mean(project: Project) -> None:
    items, endpoint = make_sets(project)[:6], make_endpoint("http://a")
    for slug in ("detect-1a", *detectors.PROMPTS):
        judge(items, "UUUUUU" if slug == "detect-1a" else "DDDDUU", slug, endpoint=endpoint)
    judge(items, "DDDDUU", "detect-1a", endpoint=endpoint)
    assert rows(project)[-1]["recall"] == 1


def test_an_item_that_is_held_for_something_else_now_is_not_counted(project: Project) -> None:
    items = make_sets(project)
    judge(items, "DDDDUUDD", endpoint=make_endpoint("http://a"))
    items[0].resolutions.update(current=False)
    make_resolution(items[0], "no_error")
    assert rows(project)[0]["n"] == 7


def test_the_table_has_the_columns_of_the_figures(project: Project) -> None:
    judge(make_sets(project), "DDDDUUDD", endpoint=make_endpoint("http://a"))
    columns = tables.RESULT_TABLES["detector"].list_columns(["task"])
    assert columns == (
        "run", "endpoint", "strategy", "total", "missing", "task", "n", "invalid", "accuracy",
        "precision", "recall", "f1", "mcc", "reason",
    )  # fmt: skip
    assert set(rows(project, "task")[0]) == set(columns)
