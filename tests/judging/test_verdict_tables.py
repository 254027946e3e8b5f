"""Verdicts of pairs and repeats, against counts that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project
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


def test_the_difference_of_the_positions_has_the_mcnemar_test(project: Project) -> None:
    said = [*["first_twice"] * 7, "second_twice", *["G"] * 4, "P", "half_tie"]
    items = make_items(project, len(said) + 1)
    replies = [*map(builders_decided.verdicts, said), (CUT, CUT)]
    run = make_replied(project, "pairwise", zip(items, replies, strict=True))
    rows = verdicts.tabulate_order_effect([run], BY)
    assert len({(row["difference"], row["p"]) for row in rows}) == 1
    # Seven of fourteen minus one; twice the tail of 0 or 1 of 8 at 1/2: 2 (1 + 8) / 256.
    assert rows[0]["difference"] == pytest.approx(6 / 14)
    assert rows[0]["p"] == pytest.approx(18 / 256)
    assert rows[0]["test"] == "exact"
    # Bonett and Price for 13 pairs (m - 1), of which 6.5 and .93 differ: (6.5 - .93) / 15, and the
    # root of ((8.5 + .93) / 15 - centre^2) / 15; Student's t with 13 degrees of freedom is 2.1604.
    centre = 13 * 6 / 14 / 15
    half = 2.1604 * (((13 * 8 / 14 + 2) / 15 - centre**2) / 15) ** 0.5
    assert rows[0]["difference_low"] == pytest.approx(centre - half, abs=1e-4)
    assert rows[0]["difference_high"] == pytest.approx(centre + half, abs=1e-4)


def test_the_test_of_positions_flips_the_signs_of_whole_questions(project: Project) -> None:
    # Three items a question. Sums of the four questions: 3, 2, -1 and 0.
    said = "fff ff. s.. fs."
    names = {"f": "first_twice", "s": "second_twice", ".": "both_good"}
    items = make_items(project, 12)
    for place, item in enumerate(items):
        item.cluster = f"question-{place // 3}"
    Item.objects.bulk_update(items, ["cluster"])
    replies = [builders_decided.verdicts(names[one]) for one in said.replace(" ", "")]
    run = make_replied(project, "pairwise", zip(items, replies, strict=True))
    row = verdicts.tabulate_order_effect([run], [])[0]
    assert row["difference"] == pytest.approx(4 / 12)
    # Of the eight signs of 3, 2 and 1, four have a sum of 4 or more: 6, 4, -4 and -6.
    assert row["p"] == pytest.approx(4 / 8)


def test_score_invariant_pairs_and_groups_have_their_own_difference(project: Project) -> None:
    items = [*make_items(project, 2), *make_items(project, 1, "score-invariant"),
             *make_items(project, 1, category="spelling", ability="long-form")]  # fmt: skip
    said = ["first_twice", "G", "second_twice", "half_tie"]
    replies = map(builders_decided.verdicts, said)
    run = make_replied(project, "pairwise", zip(items, replies, strict=True))
    rows = {
        (row["category"], row["score_invariant"]): row["difference"]
        for row in verdicts.tabulate_order_effect([run], BY)
    }
    assert sorted(rows.values()) == [-1, 0, 0.5]
    assert rows["spelling", False] == 0
    [only] = {row["difference"] for row in verdicts.tabulate_order_effect([run], [])}
    # Without the score-invariant item, as in every sum over categories.
    assert only == pytest.approx(1 / 3)


def test_without_a_parsed_pair_there_is_no_difference(project: Project) -> None:
    run = make_replied(project, "pairwise", [(make_items(project, 1)[0], (CUT, CUT))])
    row = verdicts.tabulate_order_effect([run], BY)[0]
    assert (row["difference"], row["p"]) == (None, None)
    assert row["difference_reason"] == "no item that both parsed"


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


def test_a_table_of_any_number_of_runs_is_one_query_or_two(
    pairs: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_replied(pairs.project, "pairwise", [], samples=3)
    runs = list(Run.objects.for_results())
    for made, queries in (
        (verdicts.tabulate_verdicts, 1),
        (verdicts.tabulate_order_effect, 2),
        (verdicts.tabulate_repeats, 1),
    ):
        with django_assert_num_queries(queries):
            made(runs, BY)
