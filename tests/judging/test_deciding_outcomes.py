"""Decisions of the frames in which an evaluator says what it found outright, or gives numbers."""

from dataclasses import replace

import pytest

from judging.strategies import Metric, Scale, Step, load_all
from judging.strategies.frames import CallSpec, list_calls
from judging.strategies.replies import decisions
from judging.strategies.replies.decisions import CAUSES, Decision
from judging.strategies.replies.outputs import ParsedReply

PARTS = (
    Metric("class", "Class", "?", Scale(0, 2, 1)),
    Metric("family", "Family", "?", Scale(0, 3, 1)),
)


def framed(frame, **changes):
    vanilla, outputs = load_all()["vanilla"], {"detection": "detection", "explanation": "flag"}
    return replace(
        vanilla, frame=frame, output=outputs.get(frame, "scores"), metrics=PARTS, **changes
    )


def framed_call(frame):
    return CallSpec("perturbed" if frame == "explanation" else "response")


def decide_scores(frame, said, **changes):
    return decide(framed(frame, **changes), {framed_call(frame): ParsedReply(said, "strict")})


def decide(strategy, readings):
    """Of readings of one sample."""
    return decisions.decide(strategy, {(spec, 0): said for spec, said in readings.items()})


@pytest.mark.parametrize(
    "frame, value, result, detail",
    [
        ("detection", "error", "detected", "error"),
        ("detection", "no_error", "undetected", "no_error"),
        ("explanation", True, "detected", "found"),
        ("explanation", False, "undetected", "not_found"),
    ],
)
def test_what_an_evaluator_says_outright_is_the_detail(frame, value, result, detail):
    decision = decide(framed(frame), {framed_call(frame): ParsedReply(value, "strict")})
    assert decision == Decision(result, detail, values={"said": value})


@pytest.mark.parametrize("frame", ["detection", "explanation", "rating", "rubric", "matching"])
@pytest.mark.parametrize("cause", CAUSES)
def test_a_failure_is_missing_in_every_frame(frame, cause):
    decision = decide(framed(frame), {framed_call(frame): ParsedReply(None, cause=cause)})
    assert (decision.result, decision.detail, decision.cause) == ("missing", "", cause)


def test_a_rubric_scores_its_metrics_and_their_sum():
    # 2 of class and 1 of family: 3 in all
    decision = decide_scores("rubric", {"class": 2.0, "family": 1.0})
    assert decision == Decision("scored", values={"class": 2.0, "family": 1.0, "total": 3.0})


def test_a_total_is_missing_if_a_part_is_and_the_other_part_stays():
    decision = decide_scores("rubric", {"class": 2.0, "family": "off_scale"})
    assert decision.result == "scored"
    assert decision.values == {
        "class": 2.0, "family": None, "total": None, "missing": {"family": "off_scale"},
    }  # fmt: skip


def test_a_rating_has_a_total_only_where_that_decides():
    said = {"class": 2.0, "family": 1.0}
    assert decide_scores("rating", said).values == said
    assert decide_scores("rating", said, decides="total").values == said | {"total": 3.0}


def test_a_metric_that_a_reading_does_not_know_is_missing():
    decision = decide_scores("rating", {"class": 2.0})
    assert decision.values == {
        "class": 2.0, "family": None, "missing": {"family": "unparsable"},
    }  # fmt: skip


def test_of_a_rubric_without_a_reading_every_part_is_missing():
    decision = decide(
        framed("rubric"), {framed_call("rubric"): ParsedReply(None, cause="off_scale")}
    )
    assert (decision.result, decision.cause) == ("missing", "off_scale")
    assert decision.values["total"] is None


def test_matching_has_one_score():
    decision = decide(framed("matching"), {framed_call("matching"): ParsedReply(0.5, "strict")})
    assert decision == Decision("scored", values={"score": 0.5})


def test_of_a_chain_the_last_step_decides():
    step = Step("words", "", "?", "text")
    strategy = replace(framed("rubric"), steps=(step, replace(step, name="score", output="scores")))
    (first,) = list_calls(strategy, step=0)
    (second,) = list_calls(strategy, step=1)
    scores = ParsedReply({"class": 2.0, "family": 0.0}, "strict")
    both = {first: ParsedReply("bird", "strict"), second: scores}
    assert decide(strategy, both) == decide(strategy, {second: scores})
    assert decide(strategy, both).values["total"] == 2.0
    with pytest.raises(ValueError, match="not decided yet"):
        decide(strategy, {first: ParsedReply("bird", "strict")})
