"""What a changed question does to a detector's figures, against values worked out by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from annotation.models import Item, Project
from judging.models import Endpoint, Run
from judging.results import tables
from judging.results.tables import prompts
from tests.builders import make_project
from tests.judging.builders_judging import make_endpoint, make_items, make_judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project(task_type="error-detection")


@pytest.fixture
def endpoint() -> Endpoint:
    return make_endpoint("http://a", name="a")


def make_sets(project: Project, errors: int = 4, others: int = 2) -> list[Item]:
    made = make_items(project, errors, "error", fields={"task": "sums"})
    return made + make_items(project, others, "no_error", fields={"task": "sums"})


def judge(items: Sequence[Item], results: str, strategy: str, endpoint: Endpoint) -> Run:
    """A run over the items; D, U and - stand for detected, undetected and missing."""
    words = {"D": "detected", "U": "undetected", "-": "missing"}
    said = [(item, words[one]) for item, one in zip(items, results, strict=True)]
    picked = {"items": {item.pk for item in items}}
    return make_judged(items[0].project, said, strategy=strategy, endpoint=endpoint, **picked)


def changes(project: Project, *by: str) -> list[dict[str, Any]]:
    runs = list(Run.objects.in_project(project).for_results())
    return list(prompts.tabulate_changes(project, runs, by))


def biases(project: Project, *by: str) -> list[dict[str, Any]]:
    runs = list(Run.objects.in_project(project).for_results())
    return prompts.tabulate_bias(project, runs, by)


def test_a_run_is_put_beside_prompt_1a_on_the_items_that_both_judged(
    project: Project, endpoint: Endpoint
) -> None:
    items = make_sets(project)
    judge(items, "DUUUDU", "detect-1a", endpoint)
    judge(items[:3] + items[4:], "DD-UU", "detect-steps", endpoint)
    found = {row["figure"]: row for row in changes(project, "task")}
    recall, precision = found["recall"], found["precision"]
    assert (recall["run"], recall["against"], recall["task"]) == (2, 1, "sums")
    assert (recall["total"], recall["missing"], recall["n"], recall["left_out"]) == (5, 1, 5, 1)
    # Of the three errors that both judged 1 before, 2 after; accused were 2 before, 2 after.
    assert (recall["before"], recall["after"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert recall["difference"] == pytest.approx(1 / 3)
    assert (precision["before"], precision["after"]) == (0.5, 1)
    assert set(found) == {"accuracy", "precision", "recall", "f1", "mcc"}
    assert (recall["low"], recall["p"], recall["reason"]) == (None, None, "under 10 clusters")


def test_a_clear_gain_is_starred_and_a_loss_is_not(project: Project, endpoint: Endpoint) -> None:
    items = make_sets(project, 20, 10)
    judge(items, "D" * 10 + "U" * 20, "detect-1a", endpoint)
    judge(items, "D" * 18 + "U" * 12, "detect-steps", endpoint)
    judge(items, "D" * 5 + "U" * 25, "detect-1b", endpoint)
    found = {(row["strategy"], row["figure"]): row for row in changes(project)}
    gain, loss = found["detect-steps", "recall"], found["detect-1b", "recall"]
    assert gain["difference"] == pytest.approx(0.4)
    assert gain["low"] < 0.4 < gain["high"]
    # 8 of 30 items gained and none lost: no draw of 30 has none of them, (22/30)^30 = 0.00009.
    assert (gain["p"], gain["starred"]) == (pytest.approx(0, abs=0.002), True)
    assert (loss["difference"], loss["p"], loss["starred"]) == (pytest.approx(-0.25), 1, False)
    assert changes(project) == changes(project)


def test_parts_that_are_runs_of_their_own_are_put_beside_their_own_prompt_1a(
    project: Project, endpoint: Endpoint
) -> None:
    first = make_sets(project)
    other = make_items(project, 2, "error", fields={"task": "facts"})
    for items, before, after in ((first, "DUUUUU", "DDUUUU"), (other, "UU", "DD")):
        judge(items, before, "detect-1a", endpoint)
        judge(items, after, "detect-1b", endpoint)
    found = {row["task"]: row for row in changes(project, "task") if row["figure"] == "recall"}
    assert {task: (row["run"], row["against"]) for task, row in found.items()} == {
        "sums": (2, 1),
        "facts": (4, 3),
    }
    assert (found["sums"]["difference"], found["facts"]["difference"]) == (0.25, 1)
    orders = [row for row in biases(project, "task") if row["bias"] == "order-1"]
    recalls = [(row["task"], row["difference"]) for row in orders if row["figure"] == "recall"]
    assert recalls == [("facts", -1), ("sums", -0.25), (None, -0.625)]


def test_an_evaluator_without_prompt_1a_has_nothing_to_be_put_beside(
    project: Project, endpoint: Endpoint
) -> None:
    items = make_sets(project)
    judge(items, "DDDDUU", "detect-steps", endpoint)
    judge(items, "DDDDUU", "detect-1a", make_endpoint("http://b", name="b"))
    assert changes(project) == []


def test_a_bias_is_the_recall_of_one_way_to_ask_minus_that_of_the_other(
    project: Project, endpoint: Endpoint
) -> None:
    items = make_sets(project)
    for slug, results in zip(
        ("detect-1a", "detect-1b", "detect-2a", "detect-2b"),
        ("DDDDUU", "DDUUUU", "DDDUUU", "UUUU--"),
        strict=True,
    ):
        judge(items, results, slug, endpoint)
    found = {
        (row["endpoint"], row["bias"]): row for row in biases(project) if row["figure"] == "recall"
    }
    # Recall 1, 1/2, 3/4 and 0; order 1 - 1/2 and 3/4 - 0; wording 3/4 - 3/8.
    assert found["a", "order-1"]["difference"] == pytest.approx(1 / 2)
    assert found["a", "order-2"]["difference"] == pytest.approx(3 / 4)
    wording = found["a", "wording"]
    assert (wording["first"], wording["second"]) == (pytest.approx(3 / 4), pytest.approx(3 / 8))
    assert (wording["total"], wording["missing"], wording["cells"]) == (6, 0.5, 1)


def test_the_mean_of_biases_is_over_evaluators_and_groups_with_the_populations_deviation(
    project: Project, endpoint: Endpoint
) -> None:
    items = make_sets(project)
    for one, results in ((endpoint, "DDDDUU"), (make_endpoint("http://b", name="b"), "DUUUUU")):
        judge(items, results, "detect-1a", one)
        judge(items, "DUUUUU", "detect-1b", one)
    found = [row for row in biases(project, "task") if row["figure"] == "recall"]
    mean = found[-1]
    # Differences 3/4 and 0: mean 3/8, population deviation 3/8 (with n - 1 it would be 0.53).
    assert (mean["endpoint"], mean["strategy"], mean["task"]) == (None, "mean", None)
    assert (mean["bias"], mean["cells"]) == ("order-1", 2)
    assert (mean["difference"], mean["sd"]) == (pytest.approx(3 / 8), pytest.approx(3 / 8))
    other = next(row for row in found if row["bias"] == "wording")
    assert (other["difference"], other["reason"]) == (None, "no run of detect-2a, detect-2b")


@pytest.mark.parametrize("table", ["changes", "bias"])
def test_the_tables_have_the_columns_of_their_rows(
    project: Project, endpoint: Endpoint, table: str
) -> None:
    items = make_sets(project)
    for slug in ("detect-1a", "detect-1b"):
        judge(items, "DDDDUU", slug, endpoint)
    runs = list(Run.objects.for_results())
    for row in tables.RESULT_TABLES[table].rows(project, runs, ["task"]):
        assert tuple(row) == tables.RESULT_TABLES[table].list_columns(["task"])
