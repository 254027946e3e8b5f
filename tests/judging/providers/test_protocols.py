"""Every protocol against a server that speaks it: replies, errors, and what is neither."""

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from judging.evaluators.providers import PROVIDERS, errors
from judging.evaluators.providers.transport import MAX_REPLY_BYTES
from tests.judging.providers.conftest import KEY, Text
from tests.services.scripted_evaluator import REFUSED

LIMITS = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
}


def test_an_answer_carries_text_finish_model_tokens_and_times(put, way):
    before = datetime.now(UTC)
    answer = put(way, latency=0.05)
    assert 1 <= json.loads(answer.text)["score"] <= 10
    assert (answer.finish, answer.model) == ("stop", "scripted-0001")
    assert answer.tokens_in > 10
    assert answer.tokens_out > 1
    assert before <= answer.started <= datetime.now(UTC)
    assert 0.05 <= answer.seconds < 3
    assert answer.remaining == {}


@pytest.mark.parametrize(
    ("fault", "finish"), [("truncated", "length"), ("empty", "stop"), ("plain_text", "stop")]
)
def test_an_answer_that_is_no_verdict_is_an_answer_with_its_finish(put, way, fault, finish):
    answer = put(way, fault)
    assert answer.finish == finish
    assert (answer.text == "") == (fault == "empty")


@pytest.mark.parametrize("way", ["chat", "anthropic"])
def test_a_refusal_keeps_the_words_of_the_model(put, way):
    answer = put(way, "refused")
    assert (answer.finish, answer.text) == ("refused", REFUSED)


@pytest.mark.parametrize("way", ["chat", "completions", "gemini"])
@pytest.mark.parametrize("fault", ["filtered", "filtered_prompt"])
def test_what_a_filter_held_back_is_filtered(put, way, fault):
    assert put(way, fault).finish == "filtered"


def test_tokens_that_are_not_reported_are_unknown_not_0(put, way):
    answer = put(way, "no_usage")
    assert (answer.tokens_in, answer.tokens_out) == (None, None)
    assert answer.text


FAILURES = {
    "rejected": errors.Rejected,
    "unauthorised": errors.Unauthorised,
    "forbidden": errors.Unauthorised,
    "not_found": errors.Rejected,
    "too_large": errors.Rejected,
    "rate_limited": errors.RateLimited,
    "quota": errors.QuotaExhausted,
    "server_error": errors.ServerError,
    "overloaded": errors.ServerError,
    "gateway_error": errors.RateLimited,
    "redirect": errors.Rejected,
    "broken_json": errors.BrokenReply,
    "wrong_shape": errors.BrokenReply,
    "html": errors.BrokenReply,
    "huge": errors.BrokenReply,
    "cut": errors.BrokenReply,
    "cut_stream": errors.BrokenReply,
}


@pytest.mark.parametrize("fault", FAILURES)
def test_every_failure_is_an_error_of_its_own_kind_and_sent_once(put, evaluator, way, fault):
    before = len(evaluator.log)
    with pytest.raises(errors.EvaluatorError) as caught:
        put(way, fault)
    assert type(caught.value) is FAILURES[fault]
    assert len(evaluator.log) == before + 1
    assert caught.value.__cause__ is None
    assert KEY not in repr(caught.value)


def test_the_key_travels_and_no_message_shows_it(put, way):
    with pytest.raises(errors.Unauthorised, match=r"this key is wrong: (Bearer )?\[key\]"):
        put(way, "unauthorised")


def test_a_reply_that_is_too_long_is_not_read_to_its_end(put, way):
    with pytest.raises(errors.BrokenReply, match=f"longer than {MAX_REPLY_BYTES:,}"):
        put(way, "huge")


def test_a_redirect_is_not_followed(put, way):
    with pytest.raises(errors.Rejected, match="answered 307"):
        put(way, "redirect")


def test_a_provider_that_hangs_meets_the_deadline(put, way):
    start = time.monotonic()
    with pytest.raises(errors.TimedOut, match=r"0\.2 s"):
        put(way, "hang", timeout=0.2)
    assert time.monotonic() - start < 2


def in_half_a_minute():
    return format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)


@pytest.mark.parametrize("fault", ["rate_limited", "overloaded"])
@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [("Retry-After", "7", 7), ("Retry-After-Ms", "250", 0.25), ("Retry-After", None, 30)],
)
def test_a_wait_that_the_provider_asks_for_reaches_the_error(put, way, fault, name, value, seconds):
    headers = {name: value or in_half_a_minute()}
    with pytest.raises(errors.Transient) as caught:
        put(way, fault, headers=headers)
    assert caught.value.retry_after == pytest.approx(seconds, abs=0 if value else 2)


def test_without_a_header_gemini_says_the_wait_in_the_error(put):
    with pytest.raises(errors.RateLimited) as caught:
        put("gemini", "rate_limited")
    assert caught.value.retry_after == 21


def test_what_headers_say_is_left_reaches_the_answer(put, way):
    left = put(way, headers=LIMITS).remaining["requests"]
    assert (left["left"], left["limit"]) == (59, 60)
    assert datetime.fromisoformat(left["resets"]) <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_key_that_the_provider_repeats_is_not_kept(put, way, monkeypatch, evaluator):
    monkeypatch.setattr(type(evaluator.script.judge), "answer", lambda self, prompt: f"Key: {KEY}")
    assert put(way).text == "Key: [key]"


def test_gemini_is_sent_what_the_body_says_but_for_the_model(put, evaluator):
    schema = {"type": "object", "properties": {"explanation": {}, "correctness": {}}}
    more = {"schema": schema, "json_mode": "json_schema"}
    put("gemini", more=more)
    body = PROVIDERS["gemini"].body(model="scripted", parameters={}, prompt=Text(), **more)
    sent = body.replace(b',"model":"scripted"', b"")
    assert evaluator.log[-1]["digest"] == hashlib.sha256(sent).hexdigest()
    assert sent.index(b"explanation") < sent.index(b"correctness")
