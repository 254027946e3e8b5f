import io
import json

import pytest

from formats import batches
from formats.rows import BadRow, Limits

BODY = {"model": "m", "choices": [{"message": {"content": "Seven."}, "finish_reason": "stop"}]}


def read(*lines):
    stream = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
    return list(batches.read_rows(stream, "out.jsonl", Limits()))


def answered(custom_id, **values):
    response = {"status_code": 200, "body": BODY}
    return {"custom_id": custom_id, "response": response, "error": None, **values}


@pytest.mark.parametrize(
    ("custom_id", "call"),
    [
        ("a-key", ("a-key", "", 0, 0)),
        ("long/x:1|pair|2|0", ("long/x:1", "pair", 2, 0)),
        ("a|b|response|0|4", ("a|b", "response", 0, 4)),
        ("a|b", ("a|b", "", 0, 0)),
        ("a|b|c|d", ("a|b|c|d", "", 0, 0)),
    ],
)
def test_the_id_names_the_call(custom_id, call):
    (row,) = read(answered(custom_id))
    assert tuple(row.values[name] for name in ("item", "role", "order", "sample")) == call
    assert row.values["body"] == BODY


def test_an_error_is_no_answer_and_keeps_the_words():
    refused = {"status_code": 400, "body": {"error": {"code": "too_long", "message": "Shorten."}}}
    expired = {"code": "batch_expired", "message": "Not in time."}
    rejected, lost = read(
        answered("k", response=refused), answered("k", response=None, error=expired)
    )
    assert (rejected.values["status"], rejected.values["error"]) == (400, "too_long: Shorten.")
    assert (lost.values["status"], lost.values["error"]) == (0, "batch_expired: Not in time.")
    assert "body" not in rejected.values
    for error, words in (("Sorry.", "Sorry."), ("", "no answer"), ({"code": ""}, "no answer")):
        response = {"status_code": 500, "body": {"error": error}}
        assert read(answered("k", response=response))[0].values["error"] == words
    assert "body" not in lost.values


@pytest.mark.parametrize("line", [{"response": {}}, {"custom_id": "k", "response": "x"}])
def test_what_is_no_line_of_a_batch_is_a_bad_row(line):
    (row,) = read(line)
    assert isinstance(row, BadRow)
