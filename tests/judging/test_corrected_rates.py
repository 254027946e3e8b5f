"""Runs of error detection over items without a final label, and the rates they correct."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from annotation.models import Item, Membership, Project
from judging.errors import Refused
from judging.models import Endpoint, Outcome, Run
from judging.results import tables
from judging.runs.models import UNLABELLED
from judging.runs.run_config import RunOverrides
from stats import corrected
from tests.builders import make_project, make_resolution
from tests.judging.builders_detecting import judge_all, make_sets, make_unlabelled
from tests.judging.builders_judging import api_client, make_endpoint, make_judged, make_run
from tests.judging.test_result_pages import lines

pytestmark = pytest.mark.django_db
WIDE = RunOverrides(unlabelled=True)


@pytest.fixture
def project() -> Project:
    return make_project("lab", task_type="error-detection")


def judge(items: Sequence[Item], results: str) -> Run:
    return judge_all(items, results, "detect-1a", endpoint=_endpoint())


def _endpoint() -> Endpoint:
    return make_endpoint("https://judge.invalid/v1")


def rows(project: Project, table: str, *by: str) -> list[dict[str, Any]]:
    runs = list(Run.objects.in_project(project).for_results())
    return list(tables.RESULT_TABLES[table].rows(project, runs, by))


def show(browser: Client, query: str) -> str:
    answer = browser.get(f"/projects/lab/results/corrected/?{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_a_run_covers_unlabelled_items_only_if_asked_to(project: Project) -> None:
    labelled, bare = make_sets(project, 2, 1), make_unlabelled(project, 3)
    endpoint = _endpoint()
    usual = make_run(project, endpoint, "detect-1a")
    wide = make_run(project, endpoint, "detect-1a", own=WIDE)
    assert set(usual.outcomes.values_list("item", flat=True)) == {one.pk for one in labelled}
    truths = dict(wide.outcomes.values_list("item", "truth"))
    assert {truths.pop(one.pk) for one in bare} == {UNLABELLED}
    assert sorted(truths.values()) == ["error", "error", "no_error"]
    assert (usual.is_part, wide.is_part) == (False, False)
    assert usual.digest != wide.digest


def test_only_error_detection_judges_items_without_a_label(project: Project) -> None:
    make_sets(project)
    with pytest.raises(Refused, match="Only error detection and ROUGE-L of responses can also"):
        make_run(make_project("other"), strategy="rouge-l", own=WIDE)


def test_a_label_given_later_does_not_put_an_item_into_other_figures(project: Project) -> None:
    labelled, bare = make_sets(project, 2, 2), make_unlabelled(project, 2)
    judge([*labelled, *bare], "DUDU" + "DD")
    [before] = [row for row in rows(project, "detector") if row["strategy"] == "detect-1a"]
    make_resolution(bare[0], "no_error")
    [after] = [row for row in rows(project, "detector") if row["strategy"] == "detect-1a"]
    assert (after["n"], after) == (4, before)
    [left_out] = rows(project, "left_out")
    assert (left_out["items"], left_out["other_revision"], left_out["unlabelled"]) == (4, 0, 2)


def test_rates_are_corrected_by_the_labels_of_today(project: Project) -> None:
    labelled = make_sets(project, 4, 4)
    bare = make_unlabelled(project, 12)
    # Of four errors three are found, of four others one is taken for one; 6 of 12 unlabelled.
    judge([*labelled, *bare], "DDDU" + "DUUU" + "DDDDDDUUUUU-")
    [row] = rows(project, "corrected")
    assert (row["total"], row["missing"], row["labelled"], row["unlabelled"]) == (20, 1, 8, 11)
    assert (row["people"], row["evaluator"]) == (0.5, pytest.approx(6 / 11))
    # Rogan and Gladen: sensitivity and specificity 3/4 each.
    assert row["rogan_gladen"] == pytest.approx((6 / 11 + 3 / 4 - 1) / 0.5)
    # PPI: the labels exceed the verdicts by 4/8 - 4/8.
    assert row["ppi"] == pytest.approx(6 / 11)
    make_resolution(bare[0], "no_error")
    [later] = rows(project, "corrected")
    verdicts = [1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    labels = [1, 1, 1, 1, 0, 0, 0, 0, 0, *[float("nan")] * 10]
    wanted = corrected.correct_rate(verdicts, labels, range(19)).ppi_plus
    assert (later["ppi_plus"], later["ppi_plus_low"], later["ppi_plus_high"]) == pytest.approx(
        (wanted.value, wanted.low, wanted.high)
    )


def test_what_is_neither_an_error_nor_none_is_left_out(project: Project) -> None:
    labelled, bare = make_sets(project, 2, 2), make_unlabelled(project, 6)
    judge([*labelled, *bare], "DUDU" + "DDDUUU")
    make_resolution(bare[0], "invalid")
    Item.objects.filter(pk=bare[1].pk).update(revision_number=2)
    [row] = rows(project, "corrected")
    assert (row["total"], row["unlabelled"], row["evaluator"]) == (8, 4, 0.25)


def test_what_is_no_part_of_the_data_set_is_left_out(project: Project) -> None:
    labelled, bare = make_sets(project, 2, 1), make_unlabelled(project, 3)
    judge([*labelled, *bare], "DUU" + "DUD")
    [before] = rows(project, "corrected")
    Item.objects.filter(pk=labelled[0].pk).update(purpose="probe")
    Item.objects.filter(pk=bare[0].pk).update(deleted_at=timezone.now())
    [after] = rows(project, "corrected")
    assert (before["total"], after["total"]) == (6, 4)


def test_runs_over_labelled_items_alone_have_no_row(project: Project) -> None:
    items = make_sets(project)
    said = [(one, "detected") for one in items]
    make_judged(project, said, endpoint=_endpoint(), strategy="detect-1a")
    assert rows(project, "corrected") == []


def test_the_page_shows_each_estimate_by_group_and_what_is_left_out(
    project: Project, member: Membership, browser: Client
) -> None:
    labelled, bare = make_sets(project, 6, 6), make_unlabelled(project, 20, task="terms")
    judge([*labelled, *bare], "DDDDDU" + "DUUUUU" + "D" * 10 + "U" * 10)
    page = show(browser, "intervals=yes")
    [line] = lines(page)
    assert line[0].startswith("1 · detect-1a")
    assert line[1:3] == ["12", "20"]
    assert [one[:6] for one in line[3:5]] == ["50.0 %", "50.0 %"]
    assert "20 items had no final label when evaluated" in page
    by_task = lines(show(browser, "by=task"))
    assert [line[1:4] for line in by_task] == [["sums", "12", "0"], ["terms", "0", "20"]]
    assert "all items have labels of people" in by_task[0][6]


def test_command_and_api_ask_for_unlabelled_items(project: Project, member: Membership) -> None:
    make_sets(project), make_unlabelled(project, 3)
    endpoint = _endpoint()
    asked = {"project": "lab", "endpoint": endpoint.name, "unlabelled": True}
    call_command("run_strategy", strategy="detect-1a", **asked)
    body = {"strategy": "detect-2a", "endpoint": endpoint.name, "unlabelled": True}
    said = api_client(member).post(
        "/api/v1/projects/lab/runs/", body, content_type="application/json",
        headers={"Idempotency-Key": "one"},
    )  # fmt: skip
    assert said.status_code == 201, said.content
    counts = [run.outcomes.filter(truth=UNLABELLED).count() for run in Run.objects.all()]
    assert counts == [3, 3]
    assert Outcome.objects.count() == 2 * (6 + 3)
