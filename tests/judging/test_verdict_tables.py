"""Verdicts of pairs and repeats, against counts that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project
from judging.models import Run
from judging.results.tables import verdicts
from stats.rates import clustered_wilson, sum_clusters
from tests.judging import builders_decided
from tests.judging.builders_decided import CUT, make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

BY = ("ability", "category")
SAID = [
    "G", "G", "P", "both_good", "both_good", "both_good", "both_bad",
    "first_twice", "first_twice", "second_twice", "half_tie",
]  # fmt: skip


@pytest.fixture
def pairs(project: Project) -> Run:
    """Eleven parsed pairs, one of which one order is missing, and one of which both are."""
    items = make_items(project, len(SAID) + 2)
    gold, _ = builders_decided.verdicts("G")
    replies = [*map(builders_decided.verdicts, SAID), (gold, CUT), (CUT, CUT)]
    return make_replied(project, "pairwise", zip(items, replies, strict=True))


def test_verdicts_are_counted_and_both_good_has_its_interval(pairs: Run) -> None:
    (row,) = verdicts.tabulate_verdicts([pairs], BY)
    assert [row[name] for name in verdicts.DETAILS] == [2, 1, 3, 1, 4]
    assert [row[name] for name in verdicts.EFFECTS] == [2, 1, 1]
    assert (row["total"], row["missing"], row["parsed"], row["one_order"]) == (13, 2, 11, 1)
    expected = clustered_wilson(sum_clusters([(1, 1)] * 3 + [(1, 0)] * 8))
    assert row["both_good_rate"] == 3 / 11
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high))


def test_the_order_effect_is_a_rate_of_parsed_pairs(pairs: Run) -> None:
    rows = {row["effect"]: row for row in verdicts.tabulate_order_effect([pairs], BY)}
    assert {name: row["n"] for name, row in rows.items()} == {
        "first_twice": 2,
        "second_twice": 1,
        "half_tie": 1,
    }
    assert rows["first_twice"]["rate"] == 2 / 11
    assert 0 < rows["first_twice"]["low"] < 2 / 11 < rows["first_twice"]["high"] < 1


def test_of_pairs_that_were_asked_repeatedly_nothing_is_said_of_their_order(
    project: Project,
) -> None:
    replies = builders_decided.verdicts("first_twice") * 3
    run = make_replied(project, "pairwise", [(make_items(project, 1)[0], replies)], samples=3)
    (row,) = verdicts.tabulate_verdicts([run], BY)
    assert (row["mixed"], row["first_twice"]) == (1, None)
    assert verdicts.tabulate_order_effect([run], BY) == []


def test_single_scores_have_no_verdicts(project: Project) -> None:
    run = make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 5))])
    assert verdicts.tabulate_verdicts([run], BY) == verdicts.tabulate_order_effect([run], BY) == []


@pytest.mark.parametrize("votes", [False, True])
def test_repeats_stand_beside_the_first_sample_alone(project: Project, votes: bool) -> None:
    said = [
        (None, 9, 9),  # no first sample; two that agree
        (5, 9, 9),  # the first detects, the others do not
        (5, 5, 5),
        (9, None, None),  # one sample is nothing that could change
        (None, None, None),
    ]
    items = make_items(project, len(said))
    replies = [scores(*(score for one in row for score in (9, one))) for row in said]
    own = builders_decided.own(votes=votes)
    run = make_replied(project, "vanilla", zip(items, replies, strict=True), samples=3, own=own)
    (row,) = verdicts.tabulate_repeats([run], BY)
    assert (row["total"], row["missing"], row["parsed"]) == (5, 1, 4)
    assert (row["samples"], row["votes"]) == (3, votes)
    # Shares undetected: 1, 2/3, 0, 1. As votes of three: 1, 1, 0, 1.
    assert row["rate"] == pytest.approx(3 / 4 if votes else 8 / 3 / 4)
    assert (row["first_parsed"], row["first_rate"]) == (3, pytest.approx(1 / 3))
    assert (row["repeated"], row["changing"]) == (3, 1)
    assert row["changing_rate"] == pytest.approx(1 / 3)


def test_a_run_that_asked_once_has_no_repeats(pairs: Run) -> None:
    assert verdicts.tabulate_repeats([pairs], BY) == []


def test_a_table_of_any_number_of_runs_is_one_query(
    pairs: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_replied(pairs.project, "pairwise", [], samples=3)
    runs = list(Run.objects.for_results())
    for made in (
        verdicts.tabulate_verdicts,
        verdicts.tabulate_order_effect,
        verdicts.tabulate_repeats,
    ):
        with django_assert_num_queries(1):
            made(runs, BY)
