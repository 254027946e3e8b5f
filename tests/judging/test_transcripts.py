"""Rows that tell of replies made elsewhere: which call they answer, what they say."""

from typing import Any

import pytest

from formats.rows import BadRow, Row
from judging import strategies
from judging.runs.recorded import transcripts
from judging.runs.recorded.transcripts import Transcript
from judging.strategies import Strategy
from judging.strategies.frames import CallSpec

ITEM = {"item": "k"}


def strategy(slug: str = "detect-1a") -> Strategy:
    return strategies.load_all()[slug]


def told(values: dict[str, Any], slug: str = "detect-1a") -> Transcript | BadRow:
    row = Row("replies.jsonl", 7, ITEM | values)
    (one,) = transcripts.parse_rows([row], strategy(slug))
    return one


def good(values: dict[str, Any], slug: str = "detect-1a") -> Transcript:
    one = told(values, slug)
    assert isinstance(one, Transcript), one
    return one


def bad(values: dict[str, Any], slug: str = "detect-1a") -> BadRow:
    one = told(values, slug)
    assert isinstance(one, BadRow), one
    return one


def test_where_there_is_one_call_a_row_need_not_name_it() -> None:
    assert good({"text": "It contains an error."}).spec == CallSpec("response")
    assert good({"text": "7", "role": "gold"}, "vanilla-score").spec == CallSpec("gold")
    fault = bad({"text": "7"}, "vanilla-score")
    assert (fault.line, fault.field) == (7, "role")
    assert "gold 0, perturbed 0" in fault.reason


def test_an_order_is_part_of_the_call() -> None:
    assert good({"text": "A", "role": "pair", "order": 2}, "pairwise-verdict").spec.order == 2
    assert bad({"text": "A", "role": "pair", "order": 3}, "pairwise-verdict").field == "role"


def test_an_axis_must_be_one_of_the_strategys() -> None:
    assert bad({"text": "x", "axis": "beauty"}).field == "axis"
    values = {"text": "3", "role": "gold", "axis": "hallucination"}
    assert good(values, "axis").spec == CallSpec("gold", axis="hallucination")


@pytest.mark.parametrize(
    ("slug", "values", "value"),
    [
        ("detect-1a", {"value": "no_error"}, "no_error"),
        ("vanilla-score", {"role": "gold", "value": 7}, 7.0),
        ("pairwise-verdict", {"role": "pair", "order": 1, "value": "A"}, "A"),
        ("score-matrix-animals", {"values": {"m1": 1, "m2": 1, "m3": 1, "m4": 1, "m5": 1}}, None),
    ],
)
def test_a_value_is_read_as_the_strategy_offers_it(
    slug: str, values: dict[str, Any], value: Any
) -> None:
    stored = good(values, slug).stored
    assert stored is not None
    assert stored.path == "stored"
    assert stored.value == value or isinstance(stored.value, dict)


def test_null_is_no_value_and_an_absent_key_says_nothing() -> None:
    stored = good({"text": "Hm.", "value": None}).stored
    assert stored is not None
    assert (stored.value, stored.cause) == (None, "unparsable")
    assert good({"text": "Hm."}).stored is None


def test_a_value_off_the_scale_is_kept_as_that() -> None:
    stored = good({"role": "gold", "value": 11}, "vanilla-score").stored
    assert stored is not None
    assert (stored.value, stored.cause) == (None, "off_scale")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "text"),
        ({"text": 3}, "text"),
        ({"value": "perhaps"}, "value"),
        ({"value": 3}, "value"),
        ({"text": "x", "sample": -1}, "sample"),
        ({"text": "x", "sample": True}, "sample"),
        ({"text": "x", "sample": 1000}, "sample"),
        ({"cause": "tired"}, "cause"),
        ({"text": "x", "decided": "maybe"}, "decided"),
        ({"text": "x", "model": 4}, "model"),
        ({"text": "x", "tokens_in": 2**31}, "tokens_in"),
        ({"item": "", "text": "x"}, "item"),
        ({"item": None, "text": "x"}, "item"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_field(values: dict[str, Any], field: str) -> None:
    assert bad(values).field == field


def test_a_reply_that_never_came_has_a_cause() -> None:
    failed = good({"cause": "refused"})
    assert (failed.text, failed.cause, failed.stored) == (None, "refused", None)


def test_a_batch_says_what_its_provider_said() -> None:
    body = {
        "model": "m-1",
        "choices": [{"message": {"content": "Fine."}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    }
    one = good({"role": "", "order": 0, "sample": 0, "body": body})
    assert (one.text, one.finish, one.model) == ("Fine.", "length", "m-1")
    assert (one.tokens_in, one.tokens_out) == (12, 3)
    assert bad({"body": {"choices": []}}).field == "response.body"


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (0, "timed_out"),
        (400, "rejected"),
        (401, "rejected"),
        (402, "rejected"),
        (403, "rejected"),
        (408, "timed_out"),
        (409, "unavailable"),
        (425, "unavailable"),
        (429, "rate_limited"),
        (503, "unavailable"),
    ],
)
def test_a_failed_request_of_a_batch_has_a_cause_and_the_providers_words(
    status: int, cause: str
) -> None:
    one = good({"status": status, "error": "no: Not today."})
    assert (one.text, one.cause, one.message) == (None, cause, "no: Not today.")


def test_a_bad_row_of_the_file_is_passed_on() -> None:
    row = BadRow("f", 1, "x", "is bad")
    assert list(transcripts.parse_rows([row], strategy())) == [row]


def test_every_published_prompt_has_a_strategy() -> None:
    assert set(transcripts.PUBLISHED_STRATEGIES.values()) <= set(strategies.load_all())
