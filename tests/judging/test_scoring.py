"""Scores by category, against counts that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project, Resolution
from judging.models import Run
from judging.results.tables import scores as results_scores
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

BY = ("ability", "category")


@pytest.fixture
def apart(project: Project) -> Run:
    """Gold and perturbed scores (10, 7), (10, 10), (1, 2), either reply cut, and one left out."""
    said = [(10, 7), (10, 10), (1, 2), (9, None), (None, 9), (10, 1)]
    items = make_items(project, len(said))
    run = make_replied(
        project, "vanilla", zip(items, [scores(*pair) for pair in said], strict=True)
    )
    Resolution.objects.filter(item=items[-1]).update(current=False)
    return run


def test_scores_apart_have_directions_means_and_golds_at_the_ends(apart: Run) -> None:
    (row,) = results_scores.tabulate_scores([apart], BY)
    assert (row["total"], row["missing"], row["parsed"]) == (5, 2, 3)
    assert (row["lower"], row["equal"], row["higher"]) == (1, 1, 1)
    # (10 + 10 + 1) / 3 and (7 + 10 + 2) / 3: the reply beside a cut one is in no mean.
    assert (row["mean_gold"], row["mean_pert"]) == (7, pytest.approx(19 / 3))
    assert row["mean_change"] == pytest.approx(-2 / 3)
    assert (row["mean_gold_low"], row["mean_gold_reason"]) == (None, "under 10 clusters")
    assert (row["gold_at_bottom"], row["gold_at_top"]) == (1, 2)
    assert (row["bottom"], row["at_top"]) == (1, 10)
    assert {row[name] for name in results_scores.BINS} == {None}


def test_mean_scores_have_intervals_over_questions(project: Project) -> None:
    items = make_items(project, 20)
    said = [scores(9, 5), scores(10, 10), scores(8, 3), scores(9, 8)] * 5
    run = make_replied(project, "vanilla", zip(items, said, strict=True))
    (row,) = results_scores.tabulate_scores([run], BY)
    # Changes -4, 0, -5, -1: standard deviation (17 x 20 / 19 / 4)^.5, t of 19 degrees of freedom.
    half = 2.093024 * (17 * 20 / 19 / 4) ** 0.5 / 20**0.5
    assert row["mean_change"] == -2.5
    ends = (row["mean_change_low"], row["mean_change_high"])
    assert ends == pytest.approx((-2.5 - half, -2.5 + half), abs=1e-4)


def test_changes_of_scores_add_up_to_what_was_parsed(apart: Run) -> None:
    rows = results_scores.tabulate_changes([apart], BY)
    assert [(row["change"], row["n"]) for row in rows] == [(-3, 1), (0, 1), (1, 1)]
    assert {row["parsed"] for row in rows} == {3}
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_scores_against_gold_stand_in_bins_below_the_top(project: Project) -> None:
    said = [10, 10, 9, 8, 7, 1, None]
    items = make_items(project, len(said))
    run = make_replied(project, "reference", zip(items, [scores(one) for one in said], strict=True))
    (row,) = results_scores.tabulate_scores([run], BY)
    assert [row[name] for name in results_scores.BINS] == [2, 1, 1, 2]
    assert (row["parsed"], row["mean_pert"]) == (6, 45 / 6)
    assert row["lower"] is row["mean_gold"] is row["gold_at_top"] is None
    assert row["mean_gold_reason"] == "gold answers are not scored"
    assert results_scores.tabulate_changes([run], BY) == []


def test_a_change_of_repeats_goes_to_the_nearest_step(project: Project) -> None:
    (item,) = make_items(project, 1)
    # Means of 8 and 20 / 3: a change of -4/3.
    replies = scores(8, 7, 8, 7, 8, 6)
    run = make_replied(project, "vanilla", [(item, replies)], samples=3)
    (row,) = results_scores.tabulate_changes([run], BY)
    assert (row["change"], row["n"]) == (-1, 1)
    assert results_scores.tabulate_scores([run], BY)[0]["mean_pert"] == pytest.approx(20 / 3)


def test_nothing_parsed_has_no_mean_and_no_golds_at_an_end(project: Project) -> None:
    run = make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(5, None))])
    (row,) = results_scores.tabulate_scores([run], BY)
    assert (row["missing"], row["mean_gold"], row["gold_at_top"]) == (1, None, None)
    assert results_scores.tabulate_changes([run], BY) == []


def test_pairs_have_no_scores(project: Project) -> None:
    run = make_replied(project, "pairwise", [])
    assert (
        results_scores.tabulate_scores([run], BY)
        == results_scores.tabulate_changes([run], BY)
        == []
    )


def test_scores_of_any_number_of_runs_are_one_query(
    apart: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_replied(apart.project, "reference", [])
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(1):
        results_scores.tabulate_scores(runs, BY)
    with django_assert_num_queries(2):
        results_scores.tabulate_changes(runs, BY)
