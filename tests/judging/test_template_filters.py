"""What pages make of amounts, results and values: the filters of the templates."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from annotation.templatetags.figures import DASH
from judging import strategies
from judging.evaluators.trial_call import TrialResult
from judging.models import Outcome, Run
from judging.runs.progress import Progress, RunStatus
from judging.strategies.replies.phrases import ERROR, NO_ERROR
from judging.templatetags import judging as filters

DETECTED, UNDETECTED = Outcome.Result.DETECTED, Outcome.Result.UNDETECTED


def make_outcome(result: str, truth: str = ERROR, *, invariant: bool = False) -> Outcome:
    return Outcome(result=result, truth=truth, invariant=invariant)


def make_status(state: str) -> RunStatus:
    progress = Progress(**dict.fromkeys(Progress.__dataclass_fields__, 0))
    return RunStatus(Run(state=state), progress, {}, [], [], False, None, [])


def test_a_price_is_unknown_free_or_an_amount() -> None:
    prices = (None, Decimal(0), Decimal("0.250000"))
    assert [filters.price(one) for one in prices] == [DASH, "0 USD", "0.25 USD"]
    assert [filters.tariff(one) for one in prices] == ["unknown", "free", "0.25 USD"]


def test_what_may_cost_nothing_is_free() -> None:
    assert [filters.estimate(Decimal(one)) for one in ("0", "0.25", "1")] == [
        "free",
        "0.25 USD",
        "1.00 USD",
    ]


@pytest.mark.parametrize(
    "cost, tokens_in, tokens_out, words",
    [
        (None, 1000, 234, "unknown (1,234 tokens)"),
        (None, 1000, None, "unknown (1,000 tokens)"),
        (None, None, 7, "unknown (7 tokens)"),
        (None, None, None, "unknown"),
        (Decimal(0), 1000, 234, "free"),
        (Decimal("0.5"), 1000, 234, "0.5 USD"),
        (Decimal("0.5"), None, None, "0.5 USD"),
    ],
)
def test_what_a_reply_cost_is_an_amount_or_the_tokens_of_an_unknown_one(
    cost: Decimal | None, tokens_in: int | None, tokens_out: int | None, words: str
) -> None:
    assert (
        filters.charge(TrialResult(cost=cost, tokens_in=tokens_in, tokens_out=tokens_out)) == words
    )


@pytest.mark.parametrize(
    "outcome, words, colour",
    [
        (make_outcome(DETECTED), "detected", "good"),
        (make_outcome(UNDETECTED), "undetected", "bad"),
        (make_outcome(DETECTED, NO_ERROR), "false alarm", "bad"),
        (make_outcome(UNDETECTED, NO_ERROR), "no alarm", "good"),
        (make_outcome(DETECTED, invariant=True), "false alarm", "bad"),
        (make_outcome(UNDETECTED, invariant=True), "no false alarm", "good"),
        (make_outcome(Outcome.Result.MISSING), "missing", "warn"),
        (make_outcome(Outcome.Result.PENDING), "pending", "plain"),
        (make_outcome(Outcome.Result.SCORED), "scored", "plain"),
        (make_outcome(Outcome.Result.MADE), "made", "plain"),
    ],
)
def test_a_result_is_good_or_bad_by_what_the_item_is(
    outcome: Outcome, words: str, colour: str
) -> None:
    assert (filters.describe_result(outcome), filters.judged_well(outcome)) == (words, colour)


def test_a_value_is_written_on_one_line() -> None:
    values = (None, True, False, 0.5, 4.0, 0, "no_error")
    assert [*map(filters.pretty, values)] == [DASH, "yes", "no", "0.5", "4", "0", "no error"]


def test_of_a_reply_s_parts_only_texts_are_shown() -> None:
    assert filters.reply_parts({"answer": "Six.", "spot": 3}) == [("answer", "Six.")]
    assert filters.reply_parts({"gold": ["Six.", "6"]}) == [("gold 1", "Six."), ("gold 2", "6")]
    assert filters.reply_parts("Six.") == []


@pytest.mark.parametrize(
    "values, shown",
    [
        ({"score": 4}, [("score", 4)]),
        ({"scores": {"fluency": 4.0, "sound": True}}, [("scores", "fluency 4, sound yes")]),
        ({"scores": {}, "score": 4}, [("score", 4)]),
        (
            {"parts": [{"result": "made"}, {"result": "missing"}, {"result": "made"}]},
            [("of each", "2 made, 1 missing")],
        ),
    ],
)
def test_nested_values_of_an_outcome_are_shown_in_short(
    values: Mapping[str, Any], shown: list[tuple[str, Any]]
) -> None:
    assert filters.plain(values) == shown


def test_a_run_can_be_started_with_every_strategy_that_asks() -> None:
    found = {one.frame: filters.can_start(one) for one in strategies.load_all().values()}
    assert found.pop("fold") is False
    assert all(found.values())


def test_the_placeholders_of_a_prompt_are_marked_and_its_text_is_escaped() -> None:
    marked = '<mark class="strategy-slot">{{gold}}</mark>'
    assert filters.slots("Is <b> {{gold}} right?") == f"Is &lt;b&gt; {marked} right?"


@pytest.mark.parametrize("state", Run.State.values)
def test_a_page_waits_for_runs_that_go_on_by_themselves(state: str) -> None:
    watched = [make_status(Run.State.FINISHED), make_status(state)]
    assert filters.any_open(watched) is (state in {"planning", "running"})


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.0001, "1 ms"),
        (0.0034, "3 ms"),
        (0.099, "99 ms"),
        (0.0996, "0.1 s"),
        (9.94, "9.9 s"),
        (59, "59 s"),
        (60, "1 min"),
        (89, "1 min"),
        (91, "2 min"),
        (59 * 60 + 29, "59 min"),
        (59 * 60 + 31, "1 h 0 min"),
        (3 * 3600 + 5 * 60, "3 h 5 min"),
    ],
)
def test_how_long_something_will_take_is_said_in_the_unit_that_fits(
    seconds: float, words: str
) -> None:
    assert filters.span(seconds) == words
