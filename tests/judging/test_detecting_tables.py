"""What stands beside the detector table: intervals and bounds, kinds of error, people."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.labelling import human_baseline
from annotation.models import Item, Project
from judging.models import Run
from judging.results import tables
from judging.results.detectors import FIGURES, PROMPTS
from judging.results.tables import detector
from stats.rates import clustered_wilson, sum_clusters
from tests.builders import make_member, make_project, make_resolution
from tests.judging.builders_detecting import judge, label_blind, make_sets, say_kinds
from tests.judging.builders_judging import make_endpoint

pytestmark = pytest.mark.django_db

OF_RUNS = ("detector", "detector_ranges", "error_kinds", "changes", "bias")


@pytest.fixture
def project() -> Project:
    return make_project(task_type="error-detection")


def rows(project: Project, table: str, *by: str) -> list[dict[str, Any]]:
    runs = list(Run.objects.in_project(project).for_results())
    return list(tables.RESULT_TABLES[table].rows(project, runs, by))


def ranges(project: Project, strategy: str) -> dict[str, dict[str, Any]]:
    found = rows(project, "detector_ranges", "task")
    return {row["figure"]: row for row in found if row["strategy"] == strategy}


def test_a_figure_has_bounds_by_what_has_no_verdict(project: Project) -> None:
    judge(make_sets(project), "DDU-U-", endpoint=make_endpoint("http://a"))
    found = ranges(project, "detect-1a")
    # Of 4 errors 2 detected, 1 open; of 2 others none accused, 1 open.
    precision, recall, accuracy = (found[name] for name in ("precision", "recall", "accuracy"))
    assert (recall["value"], recall["lowest"], recall["highest"]) == (0.5, 0.5, 0.75)
    assert recall["valid"] == pytest.approx(2 / 3)
    assert (precision["lowest"], precision["highest"]) == (pytest.approx(2 / 3), 1)
    assert (accuracy["value"], accuracy["lowest"]) == (0.5, 0.5)
    assert accuracy["highest"] == pytest.approx(5 / 6)
    assert (recall["total"], recall["missing"]) == (6, 2)
    # Wilson for 2 of 4; F1 is drawn, for which there are too few.
    assert (recall["low"], recall["high"]) == pytest.approx((0.1500, 0.8500), abs=1e-4)
    assert (found["f1"]["low"], found["f1"]["reason"]) == (None, "under 10 clusters")


def test_no_figure_has_an_interval_of_no_width(project: Project) -> None:
    items, endpoint = make_sets(project, 15, 10), make_endpoint("http://a")
    for slug in PROMPTS:
        judge(items, "D" * 15 + "U" * 10, slug, endpoint=endpoint)
    for strategy in ("detect-1a", "mean"):
        found = ranges(project, strategy)
        for name, n in (("accuracy", 25), ("precision", 15), ("recall", 15)):
            # Wilson for all of n, whatever the number of prompts that agree.
            assert found[name]["low"] == pytest.approx(n / (n + 1.96**2), abs=1e-4)
            assert (found[name]["high"], found[name]["reason"]) == (1, None)
        for name in ("f1", "mcc"):
            assert (found[name]["value"], found[name]["low"], found[name]["high"]) == (
                1,
                None,
                None,
            )
            assert found[name]["reason"] == "all draws agree"


def test_a_figure_has_an_interval_that_is_drawn_the_same_again(project: Project) -> None:
    judge(make_sets(project, 20, 10), "D" * 10 + "U" * 20, endpoint=make_endpoint("http://a"))
    recall = ranges(project, "detect-1a")["recall"]
    # 10 of 20, so some 0.11 either way of one standard error.
    assert recall["low"] == pytest.approx(0.5 - 1.96 * 0.11, abs=0.04)
    assert recall["high"] == pytest.approx(0.5 + 1.96 * 0.11, abs=0.04)
    assert recall["reason"] is None
    assert ranges(project, "detect-1a")["recall"] == recall


def test_ranges_have_the_values_of_the_detector_table(project: Project) -> None:
    items, endpoint = make_sets(project, 8, 4), make_endpoint("http://a")
    for slug, said in zip(PROMPTS, ("D" * 12, "U" * 12, "DU" * 6, "D-" * 6), strict=True):
        judge(items, said, slug, endpoint=endpoint)
    keyed = {
        (row["run"], row["strategy"]): row
        for row in rows(project, "detector", "task")
        if row["endpoint"]
    }
    found = rows(project, "detector_ranges", "task")
    assert len(found) == len(FIGURES) * len(keyed) == 25
    for row in found:
        beside = keyed[row["run"], row["strategy"]]
        assert row["value"] == pytest.approx(beside[row["figure"]])
        assert (row["total"], row["missing"]) == (beside["n"], beside["invalid"])


def test_a_mean_over_prompts_that_judged_other_items_has_no_interval(project: Project) -> None:
    items, endpoint = make_sets(project), make_endpoint("http://a")
    for slug in PROMPTS[:3]:
        judge(items[:5], "DDDDU", slug, endpoint=endpoint)
    assert ranges(project, "mean")["f1"]["reason"] == "no run of detect-2b"
    judge([*items[:4], items[5]], "DDDDU", "detect-2b", endpoint=endpoint)
    f1 = ranges(project, "mean")["f1"]
    assert (f1["value"], f1["low"]) == (1, None)
    assert f1["reason"] == "the prompts judged different items"


def test_recall_is_told_by_kind_of_error(project: Project) -> None:
    items = make_sets(project)
    both = ["reasoning-correctness", "instruction-following"]
    say_kinds(items[:4], both, both[:1], both[1:], [])
    judge(items, "DU-DDU", endpoint=make_endpoint("http://a"))
    found = {row["value"]: row for row in rows(project, "error_kinds", "task")}
    # An error of both kinds counts in both; what has no verdict was not detected.
    told = {value: (row["detected"], row["n"], row["missing"]) for value, row in found.items()}
    assert told == {
        "": (1, 1, 0),
        "instruction-following": (1, 2, 1),
        "reasoning-correctness": (1, 2, 0),
    }
    assert {row["field"] for row in found.values()} == {"error_type"}
    one = found["reasoning-correctness"]
    expected = clustered_wilson(sum_clusters([(1, 1), (1, 0)]))
    assert (one["recall"], one["reason"]) == (0.5, None)
    assert (one["low"], one["high"]) == pytest.approx((expected.low, expected.high))


def test_the_recall_of_a_kind_is_the_mean_over_prompts(project: Project) -> None:
    items, endpoint = make_sets(project), make_endpoint("http://a")
    say_kinds(items[:4], *[["reasoning-correctness"]] * 4)
    for slug, said in zip(PROMPTS, ("DDDDUU", "DDUUUU", "UUUUUU", "D---UU"), strict=True):
        judge(items, said, slug, endpoint=endpoint)
    mean = rows(project, "error_kinds")[-1]
    assert (mean["strategy"], mean["run"], mean["n"]) == ("mean", None, 4)
    # 4 + 2 + 0 + 1 of four prompts with 4 errors each; 3 without a verdict.
    assert (mean["detected"], mean["missing"]) == (pytest.approx(7 / 4), pytest.approx(3 / 4))
    assert mean["recall"] == pytest.approx(7 / 16)


def test_people_are_a_baseline_on_the_items_that_they_were_given(project: Project) -> None:
    items = make_sets(project)
    judge(items, "DDDDUU", endpoint=make_endpoint("http://a"))
    ada, ben = (make_member(project, alias=name) for name in ("ada", "ben"))
    label_blind(ada, items[2:6], ["error", "error", "no_error", "no_error"])
    label_blind(ben, items[3:6], ["not_sure", "error", "no_error"])
    people = next(row for row in rows(project, "detector", "task") if row["strategy"] == "people")
    # Ada has all right. Ben is not sure of the one error and accuses one other: recall 0,
    # precision 0, accuracy 1 of 3.
    assert (people["run"], people["endpoint"], people["task"]) == (None, None, "sums")
    assert (people["n"], people["invalid"]) == (4, 0.5)
    assert (people["recall"], people["precision"]) == (0.5, 0.5)
    assert people["accuracy"] == pytest.approx((1 + 1 / 3) / 2)


def test_people_are_no_baseline_on_items_that_became_control_items(project: Project) -> None:
    items = make_sets(project)
    judge(items, "DDDDUU", endpoint=make_endpoint("http://a"))
    label_blind(make_member(project), items[2:6], ["no_error", "error", "no_error", "no_error"])
    Item.objects.filter(pk=items[2].pk).update(purpose="probe")
    people = next(row for row in rows(project, "detector") if row["strategy"] == "people")
    assert (people["n"], people["accuracy"]) == (3, 1)
    [person] = human_baseline.agreement_by_person(project)
    assert (person.labels, person.agreeing) == (3, 3)


def test_a_persons_label_counts_against_what_is_held_true_now(project: Project) -> None:
    items = make_sets(project)
    judge(items, "DDDDUU", endpoint=make_endpoint("http://a"))
    label_blind(make_member(project), items[:2], ["no_error", "error"])
    items[0].resolutions.update(current=False)
    make_resolution(items[0], "no_error")
    people = next(row for row in rows(project, "detector") if row["strategy"] == "people")
    assert (people["n"], people["accuracy"]) == (2, 1)


@pytest.mark.parametrize("table", OF_RUNS)
def test_a_table_has_its_columns_and_asks_the_database_as_often_for_many_runs(
    project: Project, table: str
) -> None:
    items, endpoint = make_sets(project), make_endpoint("http://a")
    for slug in (*PROMPTS, "detect-steps"):
        judge(items, "DDDDUU", slug, endpoint=endpoint)
    runs = list(Run.objects.in_project(project).for_results())

    def queries(chosen: list[Run]) -> int:
        with CaptureQueriesContext(connection) as found:
            for row in tables.RESULT_TABLES[table].rows(project, chosen, ["task"]):
                assert set(row) == set(tables.RESULT_TABLES[table].list_columns(["task"]))
        return len(found)

    assert queries(runs) == queries(runs[:2]) <= 4


def test_a_run_that_judged_no_error_item_has_no_rows(project: Project) -> None:
    assert detector.tabulate_detector(project, [], []) == []
    assert not rows(project, "detector_ranges")


def test_no_text_counts_twice_in_a_run_with_duplicates(project: Project) -> None:
    first, *others = make_sets(project)
    [again] = make_sets(project, errors=1, others=0)
    again.duplicate_of = first
    again.save()
    items = [first, *others, again]
    judge(items, "DDUUUU" + "U", endpoint=make_endpoint("http://a"), with_duplicates=True)
    counts = {row["strategy"]: (row["n"], row["recall"]) for row in rows(project, "detector")}
    assert counts["detect-1a"] == (6, 0.5)
    assert counts["always-error"] == (6, 1.0)
    [left] = rows(project, "left_out")
    assert (left["items"], left["items_with_duplicates"]) == (6, 7)
    [spent] = rows(project, "cost")
    assert (spent["total"], spent["detected"]) == (4, 2)
    [lacking] = rows(project, "missing")
    assert (lacking["total"], lacking["parsed"]) == (6, 6)
