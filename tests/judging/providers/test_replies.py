"""Replies in the shapes that providers document, and what is left of them when they are cut."""

import gzip
import json

import pytest

from judging.evaluators.providers import Answer, errors
from judging.evaluators.providers.transport import MAX_REPLY_BYTES
from tests.judging.providers.conftest import KEY
from tests.judging.providers.raw import ask, ask_all, chunked, response, said

USAGE = {
    "chat": {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
    "completions": {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
    "anthropic": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3}},
    "gemini": {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}},
}


def chat(message, reason="stop"):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return {"object": "chat.completion", "model": "m-1", "choices": [choice]}


def completion(text, reason="stop"):
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
    return {"object": "text_completion", "model": "m-1", "choices": [choice]}


def message(content, reason="end_turn"):
    shape = {"type": "message", "role": "assistant", "model": "m-1", "stop_sequence": None}
    return {**shape, "content": content, "stop_reason": reason}


def candidate(content, reason="STOP", **more):
    shape = {"index": 0, "finishReason": reason, "content": content, **more}
    return {"modelVersion": "m-1", "candidates": [shape]}


TEXTS = {
    "chat": chat({"content": "Five.", "refusal": None}),
    "completions": completion("Five."),
    "anthropic": message([{"type": "text", "text": "Five."}]),
    "gemini": candidate({"role": "model", "parts": [{"text": "Five."}]}),
}
TOOL = {"id": "t", "type": "function", "function": {"name": "score", "arguments": '{"score": 9}'}}
THINKING = {"type": "thinking", "thinking": "Nine?", "signature": "s"}

# way, reply, text, finish
SHAPES = [
    ("chat", chat({"content": None, "tool_calls": [TOOL]}, "tool_calls"), "", "other"),
    ("chat", chat({"content": ""}), "", "stop"),
    ("chat", chat({"content": "Fi"}, "length"), "Fi", "length"),
    ("chat", chat({"content": None, "refusal": "No."}), "No.", "refused"),
    ("chat", chat({"content": ""}, "content_filter"), "", "filtered"),
    ("chat", chat({"content": "Five.", "reasoning_content": "Nine?"}), "Five.", "stop"),
    ("chat", chat({"content": [{"type": "text", "text": "Five."}]}), "Five.", "stop"),
    ("completions", completion(""), "", "stop"),
    ("completions", completion("Fi", "length"), "Fi", "length"),
    ("completions", completion("", "content_filter"), "", "filtered"),
    ("anthropic", message([]), "", "stop"),
    (
        "anthropic",
        message([{"type": "tool_use", "id": "t", "name": "n", "input": {"score": 9}}], "tool_use"),
        "",
        "other",
    ),
    ("anthropic", message([THINKING, {"type": "text", "text": "Five."}]), "Five.", "stop"),
    ("anthropic", message([{"type": "redacted_thinking", "data": "x"}]), "", "stop"),
    ("anthropic", message([{"type": "text", "text": "Fi"}], "max_tokens"), "Fi", "length"),
    (
        "anthropic",
        message([{"type": "text", "text": "Fi"}], "model_context_window_exceeded"),
        "Fi",
        "length",
    ),
    ("anthropic", message([], "refusal"), "", "refused"),
    ("anthropic", message([{"type": "text", "text": "Fi"}], "pause_turn"), "Fi", "other"),
    (
        "gemini",
        candidate({"role": "model", "parts": [{"functionCall": {"name": "n", "args": {}}}]}),
        "",
        "stop",
    ),
    ("gemini", candidate({}, "MALFORMED_FUNCTION_CALL"), "", "other"),
    ("gemini", candidate({"role": "model"}, "MAX_TOKENS"), "", "length"),
    ("gemini", candidate(None, "SAFETY", safetyRatings=[]), "", "filtered"),
    ("gemini", candidate(None, "RECITATION", finishMessage="Quoted."), "Quoted.", "filtered"),
    ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY", "filtered"),
    ("gemini", candidate({"parts": [{"text": "Fi"}]}, "LANGUAGE"), "Fi", "filtered"),
    ("gemini", candidate({"parts": [{"text": "Five."}]}, None), "Five.", "unknown"),
    ("chat", chat({"content": "Five."}, None), "Five.", "unknown"),
    ("anthropic", message([{"type": "text", "text": "Five."}], None), "Five.", "unknown"),
    (
        "gemini",
        candidate({"parts": [{"text": "Nine?", "thought": True}, {"text": "Five."}]}),
        "Five.",
        "stop",
    ),
]


@pytest.mark.parametrize(("way", "reply", "text", "finish"), SHAPES)
def test_a_documented_shape_is_an_answer_with_its_finish(way, reply, text, finish):
    answer = ask(way, said(reply | USAGE[way]))
    assert (answer.text, answer.finish) == (text, finish)
    assert (answer.tokens_in, answer.tokens_out) == (7, 3)


def spent(reply, **usage):
    return reply | {"usage": {"prompt_tokens": 7, "completion_tokens": 3, **usage}}


def details(cached, reasoning):
    return {
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Nine?"}]},
    {"type": "text", "text": "Five."},
]
USED = {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3}
BLOCKS = [THINKING, {"type": "thinking", "thinking": "No."}, {"type": "text", "text": "Five."}]
THOUGHTS = [{"text": "Nine?", "thought": True}, {"text": "Five."}]

# way, reply, thinking, tokens: in, out, cached, reasoning
THINKERS = [
    ("chat", spent(chat({"content": "Five.", "reasoning_content": "Nine?"}), **details(4, 2)),
     "Nine?", (7, 3, 4, 2)),
    ("chat", spent(chat({"content": "Five.", "reasoning": "Nine?"})), "Nine?", (7, 3, None, None)),
    ("chat", spent(chat({"content": PARTS})), "Nine?", (7, 3, None, None)),
    ("chat", spent(chat({"content": "<think>Nine?</think>\n\nFive."})), "Nine?",
     (7, 3, None, None)),
    ("chat", spent(chat({"content": "Five."}), prompt_cache_hit_tokens=6), "", (7, 3, 6, None)),
    # Hosts that count reasoning only in the total, with or without telling how much it is.
    ("chat", spent(chat({"content": "Five."}), total_tokens=30, **details(0, 20)), "",
     (7, 23, 0, 20)),
    ("chat", spent(chat({"content": "Five."}), total_tokens=30), "", (7, 23, None, 20)),
    ("chat", spent(chat({"content": "Five."}), prompt_tokens_details=None,
                   completion_tokens_details="much"), "", (7, 3, None, None)),
    ("completions", spent(completion("<think>Nine?</think>Five.")), "Nine?", (7, 3, None, None)),
    ("anthropic", message(BLOCKS) | {"usage": USED}, "Nine?\n\nNo.", (7, 3, 2, None)),
    ("anthropic",
     message(BLOCKS) | {"usage": USED | {"output_tokens_details": {"thinking_tokens": 2}}},
     "Nine?\n\nNo.", (7, 3, 2, 2)),
    ("gemini", candidate({"parts": THOUGHTS}) | {"usageMetadata": {
        "promptTokenCount": 7, "cachedContentTokenCount": 4, "candidatesTokenCount": 1,
        "thoughtsTokenCount": 2}}, "Nine?", (7, 3, 4, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("way", "reply", "thinking", "tokens"), THINKERS)
def test_thinking_is_apart_from_the_text_and_its_tokens_are_counted(way, reply, thinking, tokens):
    answer = ask(way, said(reply))
    assert (answer.text, answer.thinking) == ("Five.", thinking)
    counts = (answer.tokens_in, answer.tokens_out, answer.tokens_cached, answer.tokens_reasoning)
    assert counts == tokens


@pytest.mark.parametrize("odd", [7, ["Nine?"], {"words": "Nine?"}, None, True])
def test_thinking_that_is_no_text_is_left_out_and_the_answer_stays(odd):
    replies = [
        ("chat", chat({"content": "Five.", "reasoning_content": odd})),
        ("chat", chat({"content": [{"type": "thinking", "thinking": [odd]}, PARTS[1]]})),
        ("anthropic", message([{"type": "thinking", "thinking": odd}, BLOCKS[-1]])),
    ]
    for way, reply in replies:
        answer = ask(way, said(reply))
        assert (answer.text, answer.thinking) == ("Five.", "")


def test_what_has_no_usage_has_unknown_tokens(way):
    answers = ask_all(way, [said(TEXTS[way]), said(TEXTS[way] | dict.fromkeys(USAGE[way]))])
    for answer in answers:
        assert isinstance(answer, Answer)
        assert (answer.text, answer.tokens_in, answer.tokens_out) == ("Five.", None, None)


@pytest.mark.parametrize("count", [-1, True, "7", 2.5, None, [7], {"n": 7}])
def test_a_count_that_is_none_is_unknown_and_the_answer_stays(way, count):
    [(name, counts)] = USAGE[way].items()
    first = next(iter(counts))
    for odd in (counts | {first: count}, dict.fromkeys(counts, count), count):
        answer = ask(way, said(TEXTS[way] | {name: odd}))
        assert (answer.text, answer.tokens_in) == ("Five.", None)
        assert answer.tokens_out in {3, None}


def test_cached_and_reasoning_tokens_are_at_most_the_whole():
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 900},
        "completion_tokens_details": {"reasoning_tokens": 700},
    }
    answer = ask("chat", said(TEXTS["chat"] | {"usage": usage}))
    assert (answer.tokens_in, answer.tokens_cached) == (5, 5)
    assert (answer.tokens_out, answer.tokens_reasoning) == (3, 3)


def test_a_key_in_escaped_characters_is_hidden(way):
    escaped = "".join(f"\\u{ord(one):04x}" for one in KEY)
    body = json.dumps(TEXTS[way]).replace("Five.", f"Five: {escaped}.")
    assert ask(way, response(body.encode())).text == "Five: [key]."


def test_wherever_a_reply_is_cut_there_is_no_answer(way):
    body = json.dumps(TEXTS[way] | USAGE[way]).encode()
    wholes = [response(body), response(body, length=False), chunked(body)]
    cut = [whole[:at] for whole in wholes for at in range(1, len(whole), 23)]
    # The mark of the last chunk says no more than what was there already.
    made = ask_all(way, [raw for raw in cut if body not in raw])
    assert {type(one) for one in made} == {errors.BrokenReply}
    assert not any(KEY in str(one) for one in made)
    assert all(isinstance(one, Answer) for one in ask_all(way, wholes))


def garbled() -> dict[str, bytes]:
    body = json.dumps(TEXTS["chat"]).encode()
    return {
        "hangs up at once": b"",
        "is no HTTP": b"220 mail.example ESMTP\r\n",
        "a page": response(b"<h1>Welcome</h1>", headers="Content-Type: text/html\r\n"),
        "nothing": response(b""),
        "no UTF-8": response(b'{"choices": "\xff\xfe"}'),
        "deep": response(b"[" * 100_000),
        "a long number": response(b'{"choices": ' + b"9" * 5000 + b"}"),
        "no gzip": response(body, headers="Content-Encoding: gzip\r\n"),
        "half a gzip": response(gzip.compress(body)[:-12], headers="Content-Encoding: gzip\r\n"),
        "a long header": response(body, headers=f"X-Long: {'x' * 100_000}\r\n"),
        "too many headers": response(body, headers="X-Many: x\r\n" * 100_000),
        "a list": said([]),
        "null": said(None),
        "a word": said("choices"),
        "no choices": said({"choices": [], "content": None, "candidates": []}),
        "an event stream": response(
            b'data: {"choices": []}\n\ndata: [DONE]\n\n',
            headers="Content-Type: text/event-stream\r\n",
        ),
    }


@pytest.mark.parametrize("name", garbled())
def test_what_is_no_reply_is_a_broken_one(way, name):
    with pytest.raises(errors.BrokenReply) as caught:
        ask(way, garbled()[name])
    assert caught.value.__cause__ is None
    assert KEY not in str(caught.value)


def test_what_is_too_long_is_not_read_to_its_end_however_it_is_sent(way):
    body = b" " * (MAX_REPLY_BYTES + 1)
    gzipped = response(gzip.compress(body), headers="Content-Encoding: gzip\r\n")
    for raw in (response(body), response(body, length=False), chunked(body, 2**20), gzipped):
        with pytest.raises(errors.BrokenReply, match=f"longer than {MAX_REPLY_BYTES:,} bytes"):
            ask(way, raw)


def test_a_reply_that_is_compressed_is_read(way):
    body = gzip.compress(json.dumps(TEXTS[way]).encode())
    assert ask(way, response(body, headers="Content-Encoding: gzip\r\n")).text == "Five."


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_wherever_it_leads(way, status):
    places = ["/v1/elsewhere", "http://169.254.169.254/latest", "https://other.example/v1"]
    raw = [
        response(b"", status=status, headers=f"Location: {place}\r\nContent-Type: x/y\r\n")
        for place in places
    ]
    # The server would count a second request as the next response and hang up after the last.
    assert {type(one) for one in ask_all(way, raw)} == {errors.Rejected}
