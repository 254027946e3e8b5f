import json
import time
from datetime import UTC, datetime
from urllib.parse import quote_plus

import pytest

from judging.evaluators.providers import errors
from judging.evaluators.providers.errors import MAX_MESSAGE_LENGTH, redact_bytes, redact_message
from judging.evaluators.providers.transport import ReceivedReply, build_refusal, parse_error_body

KEY = "sk-ab/cd+ef0123456789"


@pytest.mark.parametrize(
    "words",
    [
        f"the key {KEY} is wrong",
        "GET /?key=sk-ab%2Fcd%2Bef0123456789",
        r'{"key": "sk-ab\/cd+ef0123456789"}',
        f"Authorization: Bearer {KEY}",
        "x" * (MAX_MESSAGE_LENGTH - 8) + f" {KEY}",
    ],
)
def test_a_key_is_hidden_in_every_spelling_and_before_the_cut(words):
    shown = redact_message(words, (KEY,))
    assert "sk-ab" not in shown
    assert "0123456789" not in shown


@pytest.mark.parametrize("length", [8, 12, len(KEY) - 1])
@pytest.mark.parametrize("spelled", [str, lambda key: key.replace("/", "\\/"), quote_plus])
def test_a_key_whose_end_was_cut_off_is_hidden_at_the_end_of_a_text(spelled, length):
    begun = spelled(KEY)[:length]
    body = f'{{"content": "Key {begun}", "finish_reason": "length"}}'.encode()
    assert redact_bytes(KEY, body) == b'{"content": "Key [key]", "finish_reason": "length"}'
    assert redact_bytes(KEY, f"Key {begun}, {begun}".encode()) == f"Key {begun}, [key]".encode()
    assert "sk-ab" not in redact_message(f"Key {begun}", (KEY,))


@pytest.mark.parametrize("text", ["Key sk-ab/c", "Key sk-ab/cd or so", "sk-ab/cd sk-ab/c\xff"])
def test_what_is_no_beginning_of_the_key_at_the_end_of_a_text_stays(text):
    assert redact_bytes(KEY, text.encode()) == text.encode()


def test_a_credential_that_we_did_not_send_is_hidden_too():
    assert (
        redact_message("got Bearer abc.def, expected sk-other12345") == "got [key], expected [key]"
    )


def test_words_are_put_on_one_line_and_cut():
    assert redact_message("a\n\n b") == "a b"
    assert redact_message("a\x1b[2J\u202eb\ud800\x00") == "a [2J b"
    assert len(redact_message("long " * 1000)) == MAX_MESSAGE_LENGTH


def test_no_key_hides_nothing():
    assert redact_message("as it is", ("",)) == "as it is"


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (400, "", errors.Rejected),
        (404, "", errors.Rejected),
        (413, "", errors.Rejected),
        (422, "", errors.Rejected),
        (302, "", errors.Rejected),
        (401, "", errors.Unauthorised),
        (403, "", errors.Unauthorised),
        (402, "", errors.QuotaExhausted),
        (429, "insufficient_quota", errors.QuotaExhausted),
        (429, "tokens", errors.RateLimited),
        (408, "", errors.ServerError),
        (500, "", errors.ServerError),
        (529, "", errors.ServerError),
    ],
)
def test_every_status_has_one_error(status, code, error):
    body = b'{"error": {"message": "words", "code": "%s"}}' % code.encode()
    received = ReceivedReply(status, {"Retry-After": "3"}, body, datetime.now(UTC), 0.1)
    found = build_refusal(received, status, ())
    assert type(found) is error
    assert str(found) == f"The provider answered {status}: words"
    assert found.retry_after == (3.0 if isinstance(found, errors.Transient) else None)


@pytest.mark.parametrize(
    ("body", "words", "code"),
    [
        (b'{"error": {"message": "m", "code": null, "type": "t"}}', "m", "t"),
        (b'{"error": "just words"}', "just words", ""),
        (b'{"message": "m", "code": 40}', "m", "40"),
        (b'{"detail": "d"}', "d", ""),
        (b'[{"error": {"message": "in a list"}}]', "in a list", ""),
        (b"<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>", ""),
        (b"[]", "[]", ""),
        (b"\xff", "�", ""),
    ],
)
def test_the_words_of_a_provider_are_found_in_every_known_shape(body, words, code):
    assert parse_error_body(body) == (words, code)


def test_every_error_belongs_to_one_branch_and_has_a_cause():
    branches = {errors.Transient, errors.Permanent, errors.Halting}
    assert set(errors.EvaluatorError.__subclasses__()) == branches
    leaves = [leaf for branch in branches for leaf in branch.__subclasses__()]
    assert all("cause" in vars(leaf) for leaf in leaves)


def test_a_message_is_searched_for_its_field_in_time_that_grows_with_both():
    error = {"message": "'" * 300_000, "param": "'" * 10_000 + "b"}
    started = time.process_time()
    words, _ = parse_error_body(json.dumps({"error": error}).encode())
    assert words.endswith("'b')")
    assert time.process_time() - started < 1


def test_many_beginnings_of_a_key_are_hidden_in_time_that_grows_with_their_number():
    body = f'{KEY[:9]}"'.encode() * 100_000
    started = time.process_time()
    assert redact_bytes(KEY, body) == b'[key]"' * 100_000
    assert time.process_time() - started < 2
