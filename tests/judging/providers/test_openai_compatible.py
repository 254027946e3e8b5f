import asyncio
import hashlib
import json
import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from judging.evaluators import http_client
from judging.evaluators.providers import Target, connect, errors, openai_compatible
from judging.evaluators.providers.transport import MAX_REPLY_BYTES, ReceivedReply
from tests.judging.providers.conftest import Names, Text
from tests.services.scripted_evaluator import running

KEY = "sk-test-4f1d/9b2e77aa0c31"
RECEIVED = ReceivedReply(200, {}, b"{}", datetime.now(UTC), 0.1)


def body_of(model="m", parameters=None, **prompt):
    return openai_compatible.body(model=model, parameters=parameters or {}, prompt=Text(**prompt))


def test_an_answer_carries_text_finish_model_tokens_and_times(ask):
    before = datetime.now(UTC)
    answer = ask("scripted+latency=0.05")
    assert 1 <= json.loads(answer.text)["score"] <= 10
    assert (answer.finish, answer.model) == ("stop", "scripted-0001")
    assert answer.tokens_in > 10
    assert answer.tokens_out > 1
    assert before <= answer.started <= datetime.now(UTC)
    assert 0.05 <= answer.seconds < 3


def test_the_same_body_is_answered_alike(ask):
    assert ask().text == ask().text


def test_the_bytes_that_body_gives_are_the_bytes_that_arrive(ask, evaluator):
    ask("bytes")
    assert evaluator.log[-1]["digest"] == hashlib.sha256(body_of("bytes")).hexdigest()


@pytest.mark.parametrize(
    ("fault", "finish"),
    [
        ("truncated", "length"),
        ("refused", "refused"),
        ("filtered", "filtered"),
        ("filtered_prompt", "filtered"),
    ],
)
def test_an_answer_that_is_no_verdict_is_an_answer_with_its_finish(ask, fault, finish):
    assert ask(f"scripted+{fault}").finish == finish


def test_a_refusal_keeps_the_words_of_the_model(ask):
    assert ask("scripted+refused").text == "I will not judge this."


@pytest.mark.parametrize(
    ("fault", "error", "cause"),
    [
        ("rate_limited", errors.RateLimited, "rate_limited"),
        ("gateway_error", errors.RateLimited, "rate_limited"),
        ("server_error", errors.ServerError, "unavailable"),
        ("broken_json", errors.BrokenReply, "unavailable"),
        ("wrong_shape", errors.BrokenReply, "unavailable"),
        ("cut", errors.BrokenReply, "unavailable"),
        ("huge", errors.BrokenReply, "unavailable"),
        ("rejected", errors.Rejected, "rejected"),
        ("redirect", errors.Rejected, "rejected"),
        ("unauthorised", errors.Unauthorised, "unauthorised"),
        ("quota", errors.QuotaExhausted, "quota_exhausted"),
    ],
)
def test_every_failure_is_an_error_of_its_own_kind_and_sent_once(
    ask, evaluator, fault, error, cause
):
    before = len(evaluator.log)
    with pytest.raises(errors.EvaluatorError) as caught:
        ask(f"once+{fault}")
    assert type(caught.value) is error
    assert caught.value.cause == cause
    assert len(evaluator.log) == before + 1


def test_a_wait_that_the_provider_asks_for_reaches_the_error(ask):
    with pytest.raises(errors.RateLimited) as caught:
        ask("scripted+rate_limited+retry_after=7.5")
    assert caught.value.retry_after == 7.5


def test_a_provider_that_hangs_meets_the_deadline(ask):
    start = time.monotonic()
    with pytest.raises(errors.TimedOut, match=r"0\.2 s"):
        ask("scripted+hang", timeout=0.2)
    assert time.monotonic() - start < 2


def test_a_redirect_is_not_followed(ask):
    with pytest.raises(errors.Rejected, match="answered 307"):
        ask("scripted+redirect")


def test_nobody_at_the_address_is_trouble_that_may_pass(ask):
    with pytest.raises(errors.ServerError) as caught:
        ask(address="http://127.0.0.1:9/v1")
    assert str(caught.value) == (
        "No server answers at 127.0.0.1:9 (connection refused). Check that it runs, and the port "
        "in the address."
    )
    assert caught.value.__cause__ is None


def test_a_name_that_nobody_has_is_said_to_be_unknown(ask):
    with pytest.raises(errors.ServerError, match=r"The host nobody\.invalid is not known\."):
        ask(address="https://nobody.invalid/v1")


def test_a_server_without_tls_is_told_by_how_the_address_begins(ask, evaluator):
    with pytest.raises(errors.ServerError) as caught:
        ask(address=evaluator.address.replace("http://", "https://"))
    assert "does not answer with TLS" in str(caught.value)
    assert "begin the address with http://" in str(caught.value)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "the server closed it before it answered"),
        (b"220 mail ready\r\n\r\n", "The answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "the reply ended in the middle"),
    ],
    ids=["nothing", "another protocol", "a part"],
)
def test_a_connection_that_breaks_is_told_in_plain_words(ask, said, told):
    with answering(said) as port, pytest.raises(errors.BrokenReply) as caught:
        ask(address=f"http://127.0.0.1:{port}/v1")
    assert told in str(caught.value)
    assert "ssl" not in str(caught.value)


@contextmanager
def answering(said):
    """A server that reads one request, says this and hangs up; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


def test_a_wrong_path_is_rejected_and_the_url_that_was_asked_is_named(ask, evaluator):
    with pytest.raises(errors.Rejected) as caught:
        ask(address=f"{evaluator.address}/v2")
    assert "answered 404" in str(caught.value)
    assert str(caught.value).endswith(f"The URL asked was {evaluator.address}/v2/chat/completions")


def test_the_key_travels_and_no_message_shows_it(ask):
    with pytest.raises(errors.Unauthorised) as caught:
        ask("scripted+unauthorised", key=KEY)
    shown = repr(caught.value) + str(caught.value)
    assert "this key is wrong: [key]" in shown
    assert KEY not in shown
    assert caught.value.__cause__ is None
    assert KEY not in repr(Target("http://127.0.0.1", KEY))


def test_without_a_key_no_authorization_is_sent(ask):
    with pytest.raises(errors.Unauthorised, match="this key is wrong: nothing"):
        ask("scripted+unauthorised")


def test_a_huge_reply_is_not_read_to_its_end(ask):
    with pytest.raises(errors.BrokenReply, match=f"longer than {MAX_REPLY_BYTES:,}"):
        ask("scripted+huge")


@pytest.mark.parametrize(
    ("address", "allowed_hosts"),
    [
        ("http://169.254.169.254/latest", ("169.254.169.254",)),
        ("http://127.0.0.1:1/v1", ()),
        ("http://[::ffff:127.0.0.1]:1/v1", ()),
    ],
)
def test_a_forbidden_address_is_not_called(ask, address, allowed_hosts):
    with pytest.raises(errors.ForbiddenAddress):
        ask(address=address, allowed_hosts=allowed_hosts)


def test_a_name_that_leads_to_loopback_is_not_called_unless_listed(ask, evaluator):
    address = evaluator.address.replace("127.0.0.1", "localhost")
    with pytest.raises(errors.ForbiddenAddress, match="EVALUATOR_HOSTS"):
        ask(address=address, allowed_hosts=())
    assert ask(address=address, allowed_hosts=("localhost",)).finish == "stop"


def test_every_connection_asks_where_its_name_leads(ask, evaluator, monkeypatch):
    monkeypatch.setattr(http_client, "DefaultResolver", lambda: Names(["127.0.0.1"]))
    address = evaluator.address.replace("127.0.0.1", "api.example.com")
    with pytest.raises(errors.ForbiddenAddress, match="not a public host"):
        ask(address=address)
    assert ask(address=address, allowed_hosts=("api.example.com",)).finish == "stop"


def test_many_at_once_each_get_their_own_answer():
    async def all_of_them(address):
        async with connect(["127.0.0.1"]) as session:
            bodies = [body_of(f"m{number}") for number in range(200)]
            target = Target(address)
            asked = [openai_compatible.ask(session, target, body) for body in bodies]
            return await asyncio.gather(*asked)

    with running() as evaluator:
        answers = asyncio.run(all_of_them(evaluator.address))
    assert [answer.model for answer in answers] == [f"m{number}-0001" for number in range(200)]


def test_a_body_is_canonical_json_with_temperature_0_by_default():
    assert body_of(user="Naïve?", system="") == (
        b'{"messages":[{"content":"Na\xc3\xafve?","role":"user"}],"model":"m","temperature":0}'
    )


def test_parameters_go_over_the_defaults_and_none_takes_one_away():
    assert json.loads(body_of(parameters={"temperature": 1}))["temperature"] == 1
    assert "temperature" not in json.loads(body_of(parameters={"temperature": None}))


def test_the_order_of_parameters_does_not_change_the_bytes():
    one, other = {"top_p": 0.5, "seed": 1}, {"seed": 1, "top_p": 0.5}
    assert body_of(parameters=one) == body_of(parameters=other)


@pytest.mark.parametrize("name", ["model", "messages", "stream", "n"])
def test_parameters_that_are_ours_to_say_are_refused(name):
    with pytest.raises(ValueError, match=name):
        body_of(parameters={name: 2})


@pytest.mark.parametrize("broken", [{"parameters": {"top_p": float("nan")}}, {"user": "\ud800"}])
def test_what_json_cannot_say_is_refused(broken):
    with pytest.raises(ValueError):
        body_of(**broken)


@pytest.mark.parametrize(
    ("message", "reason", "text", "finish"),
    [
        ({"content": None}, "length", "", "length"),
        ({"content": "x"}, None, "x", "unknown"),
        ({"content": "x"}, ["stop"], "x", "other"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}]}, "eos", "a", "stop"),
    ],
)
def test_shapes_that_other_servers_send_are_read(message, reason, text, finish):
    assert answer_to(message, reason)[:2] == (text, finish)


def answer_to(message, reason):
    reply = {"choices": [{"message": message, "finish_reason": reason}], "usage": None}
    answer = openai_compatible._parse_answer(reply, RECEIVED, Target("http://h"))
    return answer.text, answer.finish, answer.tokens_in


def test_tokens_that_are_not_reported_are_unknown_not_0():
    assert answer_to({"content": "x"}, "stop")[2] is None


@pytest.mark.parametrize("count", [-1, 1.5, "12", True, [1], 100_000_001, 10**30])
def test_a_count_that_cannot_be_one_of_tokens_is_unknown(count):
    reply = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": count}}
    assert openai_compatible._parse_answer(reply, RECEIVED, Target("http://h")).tokens_in is None


@pytest.mark.parametrize(
    "reply", [[], "x", {"choices": [3]}, {"choices": [{"message": {"content": 3}}]}]
)
def test_a_reply_of_another_shape_is_broken(reply):
    with pytest.raises(errors.BrokenReply, match="not a completion"):
        openai_compatible._parse_answer(reply, RECEIVED, Target("http://h"))
