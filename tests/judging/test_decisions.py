import itertools
from dataclasses import replace

import pytest

from judging.strategies import Axis, from_definition, load_all
from judging.strategies.frames import CallSpec, list_calls
from judging.strategies.replies import decisions
from judging.strategies.replies.decisions import CAUSES, Decision
from judging.strategies.replies.outputs import ParsedReply

GOLD, PERTURBED = list_calls(load_all()["vanilla"])
FIRST, SECOND = list_calls(load_all()["pairwise"])
VERDICTS = ("A", "B", "both good", "both unacceptable")


def reading(said):
    """A value as the parser leaves it; for None or a cause a failed reading."""
    if said is None or said in (*CAUSES, "strange"):
        return ParsedReply(None, cause=said or "unparsable")
    return ParsedReply(said if isinstance(said, str) else float(said), "strict")


def decide(strategy, readings):
    """Of readings of one sample."""
    return decisions.decide(strategy, {(spec, 0): said for spec, said in readings.items()})


def single(gold, perturbed):
    readings = {GOLD: reading(gold), PERTURBED: reading(perturbed)}
    return decide(load_all()["vanilla"], readings)


def pair(first, second):
    readings = {FIRST: reading(first), SECOND: reading(second)}
    return decide(load_all()["pairwise"], readings)


def reference(perturbed, slug="reference"):
    return decide(load_all()[slug], {CallSpec("perturbed"): reading(perturbed)})


@pytest.mark.parametrize(
    "gold, perturbed, result, detail",
    [
        (9, 8, "detected", "lower"),
        (9, 9, "undetected", "equal"),
        (8, 9, "undetected", "higher"),
    ],
)
def test_a_lower_score_for_the_perturbed_answer_detects(gold, perturbed, result, detail):
    values = {"gold": gold, "perturbed": perturbed}
    assert single(gold, perturbed) == Decision(result, detail, values=values)


@pytest.mark.parametrize(
    "first, second, result, detail",
    [
        # gold stands first in the first order and second in the second
        ("A", "B", "detected", "G"),
        ("B", "A", "undetected", "P"),
        ("both good", "both good", "undetected", "both_good"),
        ("both unacceptable", "both unacceptable", "undetected", "both_bad"),
        ("A", "A", "undetected", "mixed"),
        ("B", "B", "undetected", "mixed"),
        ("A", "both good", "undetected", "mixed"),
        ("both good", "both unacceptable", "undetected", "mixed"),
    ],
)
def test_a_pair_detects_when_gold_is_chosen_in_both_orders(first, second, result, detail):
    decision = pair(first, second)
    assert (decision.result, decision.detail, decision.cause) == (result, detail, "")


def test_of_all_sixteen_verdict_pairs_one_detects_and_twelve_are_mixed():
    details = [pair(*both).detail for both in itertools.product(VERDICTS, repeat=2)]
    assert [details.count(name) for name in ("G", "P", "both_good", "both_bad")] == [1, 1, 1, 1]
    assert details.count("mixed") == 12


@pytest.mark.parametrize(
    "first, second, effect",
    [
        ("A", "A", "first_twice"),
        ("B", "B", "second_twice"),
        ("A", "both good", "half_tie"),
        ("both unacceptable", "A", "half_tie"),
        ("both good", "both unacceptable", ""),
    ],
)
def test_a_mixed_pair_says_whether_the_place_decided(first, second, effect):
    assert pair(first, second).values["order_effect"] == effect


def test_pair_values_speak_of_gold_and_perturbed_and_not_of_places():
    assert pair("A", "A").values == {
        "gold_first": "gold",
        "perturbed_first": "perturbed",
        "order_effect": "first_twice",
    }


@pytest.mark.parametrize(
    "first, second, chose_gold",
    [
        ("A", "truncated", True),
        ("B", "truncated", False),
        ("both good", "truncated", False),
        ("truncated", "B", True),
        ("truncated", "A", False),
    ],
)
def test_one_parsed_order_is_missing_but_says_whether_it_chose_gold(first, second, chose_gold):
    decision = pair(first, second)
    assert (decision.result, decision.detail, decision.cause) == ("missing", "", "one_order")
    assert decision.values["chose_gold"] is chose_gold
    assert decision.values["missing"] == "truncated"


@pytest.mark.parametrize(
    "score, result, detail",
    [
        (10, "undetected", "top"),
        (9, "detected", "top-1"),
        (8, "detected", "top-2"),
        (7, "detected", "lower"),
        (1, "detected", "lower"),
    ],
)
def test_anything_below_the_top_detects_against_a_reference(score, result, detail):
    assert reference(score) == Decision(result, detail, values={"perturbed": score})


def test_a_continuous_scale_knows_only_top_and_lower():
    assert reference(1, "rouge-l").detail == "top"
    assert reference(0.999, "rouge-l") == Decision("detected", "lower", values={"perturbed": 0.999})


def test_a_scale_of_halves_counts_its_own_steps_below_the_top():
    definition = load_all()["reference"].definition
    halves = {"slug": "halves", "scale": {"low": 1, "high": 5, "step": 0.5}, "top": 5}
    strategy = from_definition(definition | halves)
    details = [
        decide(strategy, {CallSpec("perturbed"): reading(score)}).detail
        for score in (5, 4.5, 4, 3.5)
    ]
    assert details == ["top", "top-1", "top-2", "lower"]


@pytest.mark.parametrize("cause", [*CAUSES, "strange"])
def test_a_failure_is_missing_with_its_cause_and_never_a_verdict(cause):
    for decision in (single(9, cause), single(cause, 9), pair(cause, cause), reference(cause)):
        assert (decision.result, decision.detail, decision.cause) == ("missing", "", cause)


def test_what_was_said_is_kept_beside_what_is_missing():
    assert single(9, "truncated").values == {"gold": 9.0, "perturbed": None}


@pytest.mark.parametrize("both", [*itertools.combinations([*CAUSES, "strange"], 2)])
def test_of_two_causes_the_one_named_first_in_the_list_is_given_in_either_place(both):
    for one, other in (both, both[::-1]):
        assert single(one, other).cause == pair(one, other).cause == both[0]


def test_whole_numbers_from_elsewhere_decide_like_scores():
    readings = {GOLD: ParsedReply(9, "strict"), PERTURBED: ParsedReply(8, "strict")}
    assert decide(load_all()["vanilla"], readings).detail == "lower"


def test_one_sample_has_no_share():
    assert single(9, 8).share is None


def test_an_item_with_an_open_call_is_not_decided():
    with pytest.raises(ValueError, match="not decided yet"):
        decide(load_all()["vanilla"], {GOLD: reading(9)})
    with pytest.raises(ValueError, match="not decided yet"):
        decisions.decide(load_all()["vanilla"], {})
    said = {(GOLD, 0): reading(9), (PERTURBED, 0): reading(8), (GOLD, 1): reading(9)}
    with pytest.raises(ValueError, match="not decided yet"):
        decisions.decide(load_all()["vanilla"], said)


def test_an_outcome_is_of_one_axis():
    strategy = replace(load_all()["vanilla"], axes=(Axis("grammar", "Grammar", "?"),))
    gold, perturbed = list_calls(strategy, axis="grammar")
    readings = {gold: reading(3), perturbed: reading(2)}
    assert decide(strategy, readings).result == "detected"
    with pytest.raises(ValueError, match="2 axes"):
        decide(strategy, readings | {GOLD: reading(3)})


def test_repeats_are_folded_and_votes_are_counted_by_what_the_strategy_says():
    # two of four parsed repeats detect, and one of five samples failed
    said = [(9, 8), (9, 9), (9, 8), (9, 9), (None, 9)]
    readings = {
        (spec, sample): reading(score)
        for sample, pair in enumerate(said)
        for spec, score in zip((GOLD, PERTURBED), pair, strict=True)
    }
    vanilla = load_all()["vanilla"]
    repeated = decisions.decide(vanilla, readings)
    assert (repeated.result, repeated.detail, repeated.share) == ("undetected", "equal", 0.5)
    assert [part["result"] for part in repeated.values["parts"]] == [
        "detected", "undetected", "detected", "undetected", "missing",
    ]  # fmt: skip
    more = readings | {(PERTURBED, 1): reading(8)}
    assert decisions.decide(vanilla, more).share == 0.75
    # three of five
    assert decisions.decide(replace(vanilla, votes=True), more).result == "detected"
