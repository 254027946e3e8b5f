from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.strategies import load_all
from judging.strategies.replies import combination
from judging.strategies.replies.combination import (
    combine_panel,
    combine_repeats,
    combine_veto,
    combine_votes,
    combine_weighted,
)
from judging.strategies.replies.decisions import Decision, combine

ERROR = Decision("detected", "error", values={"said": "error"})
NONE = Decision("undetected", "no_error", values={"said": "no_error"})
LOST = Decision("missing", cause="timed_out", values={"said": None})
REFUSED = Decision("missing", cause="refused")
REFERENCE = load_all()["reference"]
PANEL = replace(load_all()["vanilla"], frame="fold", output="fold", fold="mean")


def single(gold, perturbed):
    """What one member of a panel says of gold and perturbed answer."""
    detail = "lower" if perturbed < gold else "equal" if perturbed == gold else "higher"
    result = "detected" if perturbed < gold else "undetected"
    return Decision(result, detail, values={"gold": gold, "perturbed": perturbed})


def against_gold(score):
    result = "undetected" if score == 10 else "detected"
    return Decision(result, "top" if score == 10 else "lower", values={"perturbed": score})


def scored(**values):
    missing = {name: "off_scale" for name, value in values.items() if value is None}
    total = None if missing else sum(values.values())
    more = {"missing": missing} if missing else {}
    return Decision("scored", values=values | {"total": total} | more)


def said(decision):
    return decision.result, decision.detail, decision.share


@pytest.mark.parametrize(
    "parts, expected",
    [
        ([ERROR, ERROR, NONE], ("detected", "error", 2 / 3)),
        ([ERROR, NONE], ("undetected", "no_error", 1 / 2)),
        # 2 of 3 parsed, and the missing ones do not count
        ([ERROR, ERROR, NONE, LOST, LOST], ("detected", "error", 2 / 3)),
        ([ERROR, LOST, LOST], ("detected", "error", 1)),
    ],
)
def test_repeats_are_a_share_of_those_parsed(parts, expected):
    assert said(combine_repeats(parts)) == expected


@pytest.mark.parametrize(
    "parts, expected",
    [
        ([ERROR, ERROR, NONE], ("detected", "error", 2 / 3)),
        ([ERROR, NONE], ("undetected", "no_error", 1 / 2)),
        # 2 of all 5 are not more than half
        ([ERROR, ERROR, NONE, LOST, LOST], ("undetected", "no_error", 2 / 3)),
        # study 001: of twelve it takes more than six, invalid ones included
        ([ERROR] * 6 + [NONE] * 5 + [LOST], ("undetected", "no_error", 6 / 11)),
        ([ERROR] * 7 + [LOST] * 5, ("detected", "error", 1)),
        # nobody denies it, and it has no majority all the same
        ([ERROR] * 6 + [LOST] * 6, ("undetected", "no_error", 1)),
        ([single(9, 8), LOST], ("undetected", "outvoted", 1)),
    ],
)
def test_votes_count_all_members_the_missing_ones_too(parts, expected):
    assert said(combine_votes(parts)) == expected


@pytest.mark.parametrize(
    "parts, expected",
    [
        ([ERROR, NONE, NONE, NONE], ("detected", "error", 1 / 4)),
        ([NONE, NONE, NONE], ("undetected", "no_error", 0)),
        # A missing member does not detect, and hides nobody who does.
        ([ERROR, NONE, LOST, LOST, LOST], ("detected", "error", 1 / 2)),
        ([ERROR, LOST], ("detected", "error", 1)),
        ([NONE, LOST, REFUSED], ("undetected", "no_error", 0)),
    ],
)
def test_one_member_that_detects_is_a_veto(parts, expected):
    assert said(combine_veto(parts)) == expected


@pytest.mark.parametrize(
    "weights, parts, expected",
    [
        # 3 of 5 outweighs two others
        ([3, 1, 1], [ERROR, NONE, NONE], ("detected", "error", 1 / 3)),
        ([2, 1, 1], [ERROR, NONE, NONE], ("undetected", "no_error", 1 / 3)),
        # The weights of missing members count: 2 of 4, and 3 of 5.
        ([2, 2], [ERROR, LOST], ("undetected", "no_error", 1)),
        ([3, 1, 1], [ERROR, LOST, LOST], ("detected", "error", 1)),
        # .1 + .2 is as much as .3, though not as floating-point numbers.
        ([0.1, 0.2, 0.3], [ERROR, ERROR, NONE], ("undetected", "no_error", 2 / 3)),
        ([0.1, 0.2, 0.2], [ERROR, ERROR, NONE], ("detected", "error", 2 / 3)),
    ],
)
def test_weights_of_all_members_count_in_weighted_votes(weights, parts, expected):
    assert said(combine_weighted(parts, weights)) == expected


@given(st.lists(st.sampled_from([ERROR, NONE, LOST]), min_size=1, max_size=9), st.integers(1, 9))
def test_votes_of_equal_weight_are_a_majority_and_a_veto_detects_no_less(parts, weight):
    majority = combine_votes(parts)
    assert combine_weighted(parts, [weight] * len(parts)) == majority
    assert combine_veto(parts).result == (
        "detected" if ERROR in parts else "undetected" if NONE in parts else "missing"
    )


def test_numbers_have_neither_vetoes_nor_weighted_votes():
    parts = [scored(naturalness=2), LOST]
    with pytest.raises(ValueError, match="cannot be vetoed"):
        combine_veto(parts)
    with pytest.raises(ValueError, match="no weighted votes"):
        combine_weighted(parts, [1, 1])
    with pytest.raises(ValueError, match="2 members need as many weights, not 1"):
        combine_weighted([ERROR, NONE], [1])


def weigh(parts):
    return combine_weighted(parts, [3, 2, 1])


@pytest.mark.parametrize(
    "folded", [combine_repeats, combine_votes, combine_panel, combine_veto, weigh]
)
def test_where_nobody_said_anything_the_item_is_missing(folded):
    decision = folded([LOST, REFUSED, LOST])
    assert (decision.result, decision.cause, decision.share) == ("missing", "refused", None)
    assert [part["cause"] for part in decision.values["parts"]] == [
        "timed_out", "refused", "timed_out",
    ]  # fmt: skip


def test_the_detail_is_the_most_frequent_on_the_winning_side():
    parts = [single(9, 9), single(8, 9), single(9, 9), single(9, 8)]
    assert said(combine_repeats(parts)) == ("undetected", "equal", 0.25)


def test_numbers_of_repeats_are_means_over_those_parsed():
    # gold (9 + 8) / 2, perturbed (8 + 9) / 2
    values = combine_repeats([single(9, 8), single(8, 9), LOST]).values
    assert (values["gold"], values["perturbed"]) == (8.5, 8.5)
    assert [part["result"] for part in values["parts"]] == ["detected", "undetected", "missing"]
    assert values["parts"][0]["values"] == {"gold": 9, "perturbed": 8}


def test_a_mean_panel_averages_first_and_compares_then():
    # gold (9 + 9 + 5) / 3 = 23/3 against (8 + 9 + 7) / 3 = 24/3: higher, though one detects
    parts = [single(9, 8), single(9, 9), single(5, 7)]
    assert said(combine_panel(parts)) == ("undetected", "higher", 1 / 3)
    # (9 + 9 + 5) / 3 against (4 + 9 + 6) / 3: lower, though only one of three detects
    assert said(combine_panel([single(9, 4), single(9, 9), single(5, 6)])) == (
        "detected",
        "lower",
        1 / 3,
    )


def test_means_that_are_equal_but_for_rounding_are_equal():
    # 0.1 + 0.2 against 0.3 + 0.0
    assert combine_panel([single(0.1, 0.3), single(0.2, 0.0)]).detail == "equal"


@pytest.mark.parametrize(
    "scores, detail",
    [
        ((10, 10), "top"),
        # 9.5 is below the top, and counts to the step below it
        ((10, 9), "top-1"),
        ((9, 9), "top-1"),
        ((9, 8), "top-2"),
        ((8, 7), "lower"),
    ],
)
def test_a_panel_against_a_reference_is_held_against_the_top(scores, detail):
    decision = combine_panel([against_gold(score) for score in scores], REFERENCE)
    assert decision.detail == detail
    assert decision.result == ("undetected" if detail == "top" else "detected")


@pytest.mark.parametrize("parts", [[ERROR, NONE], [against_gold(9), against_gold(10)]])
def test_there_is_no_mean_of_verdicts_nor_of_scores_without_a_top(parts):
    with pytest.raises(ValueError, match="use a majority"):
        combine_panel(parts)


@pytest.mark.parametrize(
    "folded, a, b",
    [
        # of 1, 1, 3: mean 5/3, median 1; of 0, 2, 3: mean 5/3, median 2
        (combine_repeats, 5 / 3, 5 / 3),
        (combine_panel, 5 / 3, 5 / 3),
        (combine_votes, 1, 2),
    ],
)
def test_metrics_are_folded_each_by_itself_and_summed_then(folded, a, b):
    decision = folded([scored(a=1, b=0), scored(a=1, b=2), scored(a=3, b=3)])
    assert (decision.result, decision.share) == ("scored", None)
    assert decision.values["a"] == pytest.approx(a)
    assert decision.values["b"] == pytest.approx(b)
    assert decision.values["total"] == pytest.approx(a + b)


def test_a_metric_is_folded_over_those_who_gave_it():
    decision = combine_panel([scored(a=1, b=None), scored(a=2, b=3), LOST])
    assert decision.values["a"] == 1.5
    assert decision.values["b"] == 3
    assert decision.values["total"] == 4.5
    assert "missing" not in decision.values


def test_a_metric_that_nobody_gave_is_missing_with_its_cause():
    decision = combine_votes([scored(a=1, b=None), scored(a=2, b=None), LOST])
    assert decision.values["b"] is None
    assert decision.values["total"] is None
    assert decision.values["missing"] == {"b": "off_scale"}


def test_what_else_an_outcome_keeps_is_no_metric():
    stored = replace(scored(a=1), values=scored(a=1).values | {"stored": {"a": 2}, "flag": True})
    assert combine_votes([stored]).values.keys() == {"a", "total", "parts"}


def test_a_derived_run_folds_by_its_strategy():
    majority = replace(PANEL, fold="majority")
    parts = [single(9, 4), single(9, 9), single(5, 6)]
    assert combine(replace(PANEL, fold="veto"), parts).result == "detected"
    weighted = replace(PANEL, fold="weighted", weights=(3.0, 1.0, 1.0))
    assert combine(weighted, parts).result == "detected"
    assert combine(majority, parts).result == "undetected"
    assert combine(PANEL, parts).result == "detected"
    assert combine(PANEL, [against_gold(9), against_gold(10)], source=REFERENCE).detail == "top-1"
    with pytest.raises(ValueError, match="no outcome"):
        combine(majority, [])


PARTS = st.lists(st.sampled_from([ERROR, NONE, LOST, REFUSED]), min_size=1, max_size=9)


@given(PARTS, st.randoms())
def test_the_order_of_members_changes_nothing_but_their_list(parts, random):
    shuffled = random.sample(parts, len(parts))
    for folded in (combine_repeats, combine_votes):
        one, two = folded(parts), folded(shuffled)
        assert (said(one), one.cause) == (said(two), two.cause)


@given(PARTS)
def test_a_vote_detects_less_often_than_repeats_and_the_same_if_none_is_missing(parts):
    assert not (
        combine_votes(parts).result == "detected" and combine_repeats(parts).result != "detected"
    )
    if not {LOST.result} & {part.result for part in parts}:
        assert said(combine_votes(parts)) == said(combine_repeats(parts))


def test_one_member_alone_keeps_what_it_said():
    for part in (ERROR, NONE, single(9, 8)):
        for folded in (combination.combine_repeats, combination.combine_votes):
            assert folded([part]).result == part.result
            assert folded([part]).detail == part.detail
