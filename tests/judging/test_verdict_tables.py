"""Verdicts of pairs and repeats, against counts that were made by hand."""

from pathlib import Path

import krippendorff
import numpy as np
import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project
from judging.models import Run
from judging.results.tables import verdicts
from stats.rates import clustered_wilson, sum_clusters
from tests.judging import builders_decided
from tests.judging.builders_decided import CUT, make_replied, scores
from tests.judging.builders_judging import make_items
from tests.judging.builders_rated import bring_items, bring_labels, bring_scores
from tests.judging.test_result_pages import lines, shown

pytestmark = pytest.mark.django_db

BY = ("ability", "category")
METRICS = ("naturalness", "relatedness", "correctness")
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


def test_alpha_of_repeats_is_krippendorff_s(project: Project) -> None:
    # Gold 9: below it is detected. A missing sample has no result.
    said = [(5, 5, 5), (5, 5, 9), (9, 9, 9), (9, 9, None), *[(5, 5, 5), (9, 9, 9)] * 5]
    items = make_items(project, len(said))
    replies = [scores(*(score for one in row for score in (9, one))) for row in said]
    run = make_replied(project, "vanilla", zip(items, replies, strict=True), samples=3)
    (row,) = verdicts.tabulate_repeats([run], BY)
    table = [[np.nan if one is None else float(one < 9) for one in each] for each in said]
    expected = krippendorff.alpha(np.array(table).T, level_of_measurement="nominal")
    assert row["alpha"] == pytest.approx(expected)
    assert row["alpha_low"] < row["alpha"] < row["alpha_high"] <= 1
    assert (row["metric"], row["alpha_reason"]) == (None, "rough: under 20 clusters")


def test_alpha_is_of_the_items_of_the_group(project: Project) -> None:
    items = [*make_items(project, 2), *make_items(project, 2, "score-invariant"),
             *make_items(project, 2, category="spelling", ability="long-form")]  # fmt: skip
    alike, apart = scores(9, 5, 9, 5), scores(9, 5, 9, 9)
    equal = scores(9, 9, 9, 9)
    replies = [alike, equal, apart, apart, alike, apart]
    run = make_replied(project, "vanilla", zip(items, replies, strict=True), samples=2)
    rows = {
        (row["category"], row["score_invariant"]): (row["alpha"], row["alpha_reason"])
        for row in verdicts.tabulate_repeats([run], BY)
    }
    few = "under 10 clusters"
    # Of 2 x 2 results: both pairs agree; none does, 1 - 3 x 4 / (2 x 2 x 2); one does, of
    # three results 1 and one 0: 1 - 3 x 2 / (2 x 3 x 1).
    assert rows["number-errors", False] == (pytest.approx(1), few)
    assert rows["score-invariant", True] == (pytest.approx(-0.5), few)
    assert rows["spelling", False] == (pytest.approx(0), few)
    [row] = verdicts.tabulate_repeats([run], [])
    # Without the score-invariant items: four detected pairs of eight, one pair differs.
    assert row["repeated"] == 4
    table = np.array([[1, 1], [0, 0], [1, 1], [1, 0]])
    assert row["alpha"] == pytest.approx(
        krippendorff.alpha(table.T, level_of_measurement="nominal")
    )


def test_repeats_of_detectors_change_and_have_no_undetected_rate(project: Project) -> None:
    words = {"E": "contains an error.", "N": "contains no error.", "-": CUT}
    said = ["EE", "EN", "NN", "E-", "--", *["EE", "NN"] * 5]
    items = make_items(project, len(said), "error", category="", ability="")
    replies = [
        tuple(f"Therefore, the model response {words[one]}" if one != "-" else CUT for one in each)
        for each in said
    ]
    run = make_replied(project, "detect-1a", zip(items, replies, strict=True), samples=2)
    (row,) = verdicts.tabulate_repeats([run], [])
    assert (row["total"], row["missing"], row["parsed"], row["first_parsed"]) == (15, 1, 14, 14)
    assert (row["repeated"], row["changing"]) == (13, 1)
    expected = clustered_wilson(sum_clusters([(1, 1)] + [(1, 0)] * 12))
    assert row["changing_rate"] == pytest.approx(1 / 13)
    assert (row["changing_low"], row["changing_high"]) == pytest.approx(
        (expected.low, expected.high)
    )
    assert (row["rate"], row["reason"], row["first_rate"]) == (None, "no undetected rate", None)
    table = [[{"E": 1.0, "N": 0.0}.get(one, np.nan) for one in each] for each in said]
    expected_alpha = krippendorff.alpha(np.array(table).T, level_of_measurement="nominal")
    assert row["alpha"] == pytest.approx(expected_alpha)


def test_repeats_of_numbers_have_a_row_a_metric(tmp_path: Path) -> None:
    texts = [
        {"key": f"i{n}", "prompt": f"Question {n}?", "gold": "yes", "response": "no"}
        for n in range(12)
    ]
    project = bring_items(tmp_path, "rated", texts)
    people = [(f"i{n}", one, numbers(2, 2, 2)) for n in range(12) for one in ("ann", "bo", "cy")]
    bring_labels(tmp_path, project, people)
    # The second metric changes in two items of twelve, the others in none.
    first = [numbers(1 + n % 3, 1 + n % 2, 2) for n in range(12)]
    second = [numbers(1 + n % 3, 3 if n < 2 else 1 + n % 2, 2) for n in range(12)]
    given = [(f"i{n}", one) for each in (first, second) for n, one in enumerate(each)]
    run = bring_scores(tmp_path, project, "judge", "likert", given)
    rows = {row["metric"]: row for row in verdicts.tabulate_repeats([run], ["category"])}
    assert set(rows) == set(METRICS)
    found = {name: (row["repeated"], row["changing"]) for name, row in rows.items()}
    assert found == {METRICS[0]: (12, 0), METRICS[1]: (12, 2), METRICS[2]: (12, 0)}
    assert {row["rate"] for row in rows.values()} == {None}
    table = [[each[n][METRICS[1]] for n in range(12)] for each in (first, second)]
    alpha = krippendorff.alpha(table, level_of_measurement="interval")
    assert rows[METRICS[1]]["alpha"] == pytest.approx(alpha)
    assert rows[METRICS[0]]["alpha"] == 1
    assert (rows[METRICS[2]]["alpha"], rows[METRICS[2]]["alpha_reason"]) == (
        None, "all labels are the same",
    )  # fmt: skip


def numbers(*each: int) -> dict[str, int]:
    return dict(zip(METRICS, each, strict=True))


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
        (verdicts.tabulate_repeats, 2),
    ):
        with django_assert_num_queries(queries):
            made(runs, BY)


def test_the_pages_say_what_counts_on_score_invariant_items(
    project: Project, browser: Client
) -> None:
    items = make_items(project, 3, "score-invariant")
    said = map(builders_decided.verdicts, ("G", "both_good", "half_tie"))
    make_replied(project, "pairwise", zip(items, said, strict=True))
    make_replied(project, "reference", [(one, ('{"score": 10}',)) for one in items])
    # A mixed verdict is no false alarm either.
    page = shown(browser, "verdicts/?run=1")
    assert "G is a false alarm and every other verdict counts as no false alarm" in page
    assert lines(page)[0][-1] == "66.7 % n 3 no false alarm"
    assert lines(shown(browser, "reference/?run=2"))[0][-1].endswith("n 3 no false alarm")
