"""Figures of runs, against numbers that were worked out by hand or by stats."""

from itertools import cycle

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project, Resolution
from judging.models import Outcome, Run
from judging.results.counted import UnknownField
from judging.results.tables import undetected as results_undetected
from judging.results.tables.left_out import tabulate_left_out
from stats.rates import clustered_wilson, sum_clusters
from tests.builders import make_project, make_resolution, make_revision
from tests.judging.builders_judging import make_items, make_judged, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return make_project()


def left_out(run: Run) -> tuple[int, int]:
    """How many are pending, and how many were judged as something else."""
    (row,) = tabulate_left_out([run])
    return row["pending"], row["other_revision"]


def said(items: list[Item], *results: str) -> list[tuple[Item, str]]:
    return list(zip(items, cycle(results), strict=False))


def test_rates_and_clustered_intervals_are_those_of_stats_on_the_same_outcomes(
    project: Project,
) -> None:
    judged, clusters = [], []
    # Clusters of 1, 2, 3 and 4 items of which 1, 0, 2 and 1 are undetected and one more is missing.
    for size, undetected in ((1, 1), (2, 0), (3, 2), (4, 1)):
        items = make_items(project, size + 1, cluster=f"question-{size}")
        results = ["undetected"] * undetected + ["detected"] * (size - undetected) + ["missing"]
        judged += list(zip(items, results, strict=True))
        clusters.append((size, undetected))
    # A cluster of which nothing was parsed is no cluster of the interval.
    judged += said(make_items(project, 2, cluster="nothing"), "missing")
    (row,) = results_undetected.tabulate_undetected([make_judged(project, judged)])
    assert (row["total"], row["missing"], row["parsed"], row["detected"], row["undetected"]) == (
        16,
        6,
        10,
        6,
        4,
    )
    assert row["rate"] == 0.4
    expected = clustered_wilson(sum_clusters(clusters))
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))


def test_with_one_item_a_cluster_the_interval_is_wilson_s(project: Project) -> None:
    items = make_items(project, 10)
    run = make_judged(project, said(items[:3], "undetected") + said(items[3:], "detected"))
    (row,) = results_undetected.tabulate_undetected([run])
    # Wilson 1927 with z = 1.959964, n = 10, y = 3:
    # centre (0.3 + z^2/20) / (1 + z^2/10) = 0.3555, half width 0.2477
    assert row["low"] == pytest.approx(0.10779, abs=1e-5)
    assert row["high"] == pytest.approx(0.60322, abs=1e-5)


def test_rows_stand_in_the_order_of_the_taxonomy_with_score_invariant_apart(
    project: Project,
) -> None:
    same = make_items(project, 2, "score-invariant")
    units = make_items(project, 1, category="incorrect-units", ability="reasoning")
    numbers = make_items(project, 2)
    spelling = make_items(project, 1, category="spelling", ability="long-form")
    judged = said(same, "detected", "undetected") + said(units + numbers + spelling, "detected")
    run = make_judged(project, judged)
    rows = results_undetected.tabulate_undetected([run])
    assert [row["category"] for row in rows] == [
        "spelling",
        "number-errors",
        "incorrect-units",
        "score-invariant",
    ]
    assert [row["rate"] for row in rows] == [0, 0, 0, 0.5]
    assert [row["total"] for row in results_undetected.tabulate_undetected([run], ["ability"])] == [
        1,
        2,
        1,
        2,
    ]


def test_a_row_without_ability_or_category_holds_error_items_alone(project: Project) -> None:
    judged = said(make_items(project, 2, "score-invariant"), "undetected")
    judged += said(make_items(project, 3), "detected")
    run = make_judged(project, judged)
    (row,) = results_undetected.tabulate_undetected([run], [])
    assert (row["total"], row["rate"]) == (3, 0)
    (row,) = results_undetected.tabulate_undetected([run], ["source_ability"])
    assert (row["source_ability"], row["total"]) == ("factual", 3)
    rows = results_undetected.tabulate_undetected([run], ["ability", "source_ability"])
    assert [(row["ability"], row["total"]) for row in rows] == [
        ("factual", 3),
        ("score-invariant", 2),
    ]


def test_repeats_of_other_items_are_in_no_total(project: Project) -> None:
    original, *_ = make_items(project, 1, "score-invariant")
    repeat = make_items(project, 1, "score-invariant", duplicate_of=original, category="formatting")
    run = make_judged(project, said([original, *repeat], "undetected"), with_duplicates=True)
    assert [row["total"] for row in results_undetected.tabulate_undetected([run], ["ability"])] == [
        1
    ]
    rows = results_undetected.tabulate_undetected([run])
    assert [(row["ability"], row["total"]) for row in rows] == [("score-invariant", 1), ("", 1)]


def test_repeats_are_in_no_row_of_a_category_alone(project: Project) -> None:
    original, *_ = make_items(project, 1)
    repeat = make_items(project, 1, duplicate_of=original)
    run = make_judged(project, said([original, *repeat], "undetected"), with_duplicates=True)
    assert [
        row["total"] for row in results_undetected.tabulate_undetected([run], ["category"])
    ] == [1]


def test_error_items_and_score_invariant_ones_are_in_no_row_together(project: Project) -> None:
    meant = {"ability": "score-invariant", "category": "formatting"}
    same = make_items(project, 3, "score-invariant", **meant)
    wrong = make_items(project, 1, **meant)
    repeats = make_items(project, 1, "score-invariant", duplicate_of=same[0], **meant)
    repeats += make_items(project, 1, duplicate_of=wrong[0], **meant)
    judged = said([*same, *wrong, *repeats], "detected")
    run = make_judged(project, judged, with_duplicates=True)
    rows = results_undetected.tabulate_undetected([run], ["ability"])
    assert [(row["score_invariant"], row["total"]) for row in rows] == [(False, 1), (True, 3)]
    repeated = [row for row in results_undetected.tabulate_undetected([run]) if not row["ability"]]
    assert [(row["score_invariant"], row["total"]) for row in repeated] == [(False, 1), (True, 1)]
    assert [row["score_invariant"] for row in repeated] == [False, True]


def test_an_item_that_was_corrected_after_the_run_is_left_out(project: Project) -> None:
    items = make_items(project, 4)
    run = make_judged(project, said(items, "undetected"))
    make_revision(items[0], items[0].revision().texts | {"perturbed": "Corrected."})
    # The old resolution is of the texts that were judged; ended, it holds no more.
    items[0].resolutions.update(current=False)
    make_resolution(items[0])
    (row,) = results_undetected.tabulate_undetected([run])
    assert row["total"] == 3
    assert left_out(run) == (0, 1)


def test_an_item_that_is_held_for_something_else_now_is_left_out(project: Project) -> None:
    items = make_items(project, 5)
    run = make_judged(project, [*said(items[:4], "detected", "missing"), (items[4], "pending")])
    Resolution.objects.filter(item=items[0]).update(value="invalid")
    Resolution.objects.filter(item=items[1]).update(value="score-invariant")
    Resolution.objects.filter(item=items[2]).update(current=False)
    (row,) = results_undetected.tabulate_undetected([run])
    assert (row["total"], row["missing"]) == (1, 1)
    assert left_out(run) == (1, 3)


def test_nothing_parsed_is_no_rate_and_never_zero(project: Project) -> None:
    run = make_judged(project, said(make_items(project, 2), "missing"))
    (row,) = results_undetected.tabulate_undetected([run])
    assert (row["total"], row["missing"], row["parsed"]) == (2, 2, 0)
    assert (row["rate"], row["low"], row["reason"]) == (None, None, "no items")


def test_one_cluster_has_a_rate_and_no_interval(project: Project) -> None:
    items = make_items(project, 2, cluster="one")
    run = make_judged(project, said(items, "detected", "undetected"))
    (row,) = results_undetected.tabulate_undetected([run])
    assert (row["rate"], row["low"], row["reason"]) == (0.5, None, "one cluster")


@pytest.mark.parametrize("by", [(), ("ability",), ("ability", "category")])
def test_a_run_without_settled_outcomes_has_no_rows(project: Project, by: tuple[str, ...]) -> None:
    make_items(project, 2)
    run = make_run(project)
    assert results_undetected.tabulate_undetected([run], by) == []
    assert results_undetected.tabulate_undetected([], by) == []
    assert left_out(run) == (2, 0)


def test_a_field_that_outcomes_do_not_have_is_refused_with_those_they_have(
    project: Project,
) -> None:
    with pytest.raises(UnknownField, match=r"grouped by cluster\. Choose from: ability"):
        results_undetected.tabulate_undetected([], ["cluster"])


def test_an_item_asked_repeatedly_counts_once_by_the_share_of_its_repeats(project: Project) -> None:
    run = make_judged(project, said(make_items(project, 3), "detected", "undetected", "missing"))
    run.outcomes.filter(result="detected").update(share=2 / 3)
    run.outcomes.filter(result="undetected").update(share=1 / 3)
    (row,) = results_undetected.tabulate_undetected([run])
    # One third of the first item and two thirds of the second went unnoticed.
    assert (row["parsed"], row["undetected"], row["detected"], row["missing"]) == (2, 1, 1, 1)
    assert row["rate"] == pytest.approx(0.5)


def test_of_several_axes_that_of_the_item_s_ability_counts(project: Project) -> None:
    (item,) = make_items(project, 1)
    run = make_judged(project, said([item], "detected"))
    own = run.outcomes.get()
    Outcome.objects.create(
        run=run, item=item, revision=own.revision, axis="coherence", main=False,
        category=own.category, ability=own.ability, cluster=own.cluster, invariant=False,
        truth="valid", result="undetected",
    )  # fmt: skip
    (row,) = results_undetected.tabulate_undetected([run])
    assert (row["total"], row["undetected"]) == (1, 0)
    assert left_out(run) == (0, 0)


def test_an_outcome_with_any_truth_counts_while_its_item_is_held_for_something(
    project: Project,
) -> None:
    items = make_items(project, 3)
    run = make_judged(project, said(items, "detected"))
    run.outcomes.update(truth="")
    Resolution.objects.filter(item=items[0]).update(value="2/3/3")
    Resolution.objects.filter(item=items[1]).update(current=False)
    assert results_undetected.tabulate_undetected([run])[0]["total"] == 2
    assert run.outcomes.counted().count() == 2


def test_a_table_of_a_run_is_one_query(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_judged(project, said(make_items(project, 3), "detected"))
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(1):
        list(results_undetected.tabulate_undetected(runs))
