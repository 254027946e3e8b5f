"""Errors in the shapes that providers, servers and gateways give them, each as its cause."""

import json

import pytest

from judging.evaluators.providers import Answer, errors
from tests.judging.providers.conftest import KEY
from tests.judging.providers.raw import ask, ask_all, response, said

GOOGLE = "type.googleapis.com/google.rpc."


def openai(message, code=None, kind="invalid_request_error", **more):
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def anthropic(kind):
    error = {"type": kind, "message": f"Words of {KEY}"}
    return {"type": "error", "error": error, "request_id": "req_1"}


def gemini(code, status, *details):
    error = {"code": code, "message": f"Words of {KEY}", "status": status}
    return {"error": error | ({"details": list(details)} if details else {})}


WORDS = f"Words of {KEY}"
# status, body, error; "Words of" and the key are the provider's own.
OPENAI = [
    (400, openai(WORDS), errors.Rejected),
    (400, openai(WORDS, "context_length_exceeded"), errors.Rejected),
    (401, openai(WORDS, "invalid_api_key"), errors.Unauthorised),
    (403, openai(WORDS, "unsupported_country_region_territory"), errors.Unauthorised),
    (404, openai(WORDS, "model_not_found"), errors.Rejected),
    (429, openai(WORDS, "rate_limit_exceeded", "requests"), errors.RateLimited),
    (429, openai(WORDS, "insufficient_quota", "insufficient_quota"), errors.QuotaExhausted),
    (429, openai(WORDS, "billing_hard_limit_reached"), errors.QuotaExhausted),
    (500, openai(WORDS, None, "server_error"), errors.ServerError),
    (503, openai(WORDS, None, "overloaded"), errors.ServerError),
    # Gateways put the status into the code; local servers have shapes of their own.
    (402, openai(WORDS, 402), errors.QuotaExhausted),
    (429, openai(WORDS, "429"), errors.RateLimited),
    (400, {"object": "error", "message": WORDS, "type": "BadRequestError"}, errors.Rejected),
    (404, {"error": WORDS}, errors.Rejected),
    (503, {"error": WORDS, "estimated_time": 20.0}, errors.ServerError),
    (422, {"error": WORDS, "error_type": "validation"}, errors.Rejected),
    (503, {"error": {"code": 503, "message": WORDS}}, errors.ServerError),
    (403, {"detail": WORDS}, errors.Unauthorised),
    (422, {"detail": [{"loc": ["body"], "msg": WORDS}]}, errors.Rejected),
    (424, {"message": WORDS}, errors.Rejected),
    (200, {"error": {"message": WORDS, "code": 502}}, errors.ServerError),
    (200, {"error": {"message": WORDS, "code": 429}}, errors.RateLimited),
    (200, {"error": WORDS}, errors.ServerError),
]
ANTHROPIC = [
    (400, anthropic("invalid_request_error"), errors.Rejected),
    (401, anthropic("authentication_error"), errors.Unauthorised),
    (402, anthropic("billing_error"), errors.QuotaExhausted),
    (403, anthropic("permission_error"), errors.Unauthorised),
    (404, anthropic("not_found_error"), errors.Rejected),
    (413, anthropic("request_too_large"), errors.Rejected),
    (429, anthropic("rate_limit_error"), errors.RateLimited),
    (500, anthropic("api_error"), errors.ServerError),
    (504, anthropic("timeout_error"), errors.GatewayTimedOut),
    (529, anthropic("overloaded_error"), errors.ServerError),
    (200, anthropic("overloaded_error"), errors.ServerError),
]
WRONG_KEY = {"@type": f"{GOOGLE}ErrorInfo", "reason": "API_KEY_INVALID"}
A_DAY = {
    "@type": f"{GOOGLE}QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
GEMINI = [
    (400, gemini(400, "INVALID_ARGUMENT"), errors.Rejected),
    (400, gemini(400, "INVALID_ARGUMENT", WRONG_KEY), errors.Unauthorised),
    (400, [gemini(400, "INVALID_ARGUMENT", WRONG_KEY)], errors.Unauthorised),
    (400, gemini(400, "FAILED_PRECONDITION"), errors.Unauthorised),
    (403, gemini(403, "PERMISSION_DENIED"), errors.Unauthorised),
    (404, gemini(404, "NOT_FOUND"), errors.Rejected),
    (429, gemini(429, "RESOURCE_EXHAUSTED"), errors.RateLimited),
    (429, gemini(429, "RESOURCE_EXHAUSTED", A_DAY), errors.QuotaExhausted),
    (429, gemini(429, "RESOURCE_EXHAUSTED", "odd", {"violations": "odd"}), errors.RateLimited),
    (500, gemini(500, "INTERNAL"), errors.ServerError),
    (503, gemini(503, "UNAVAILABLE"), errors.ServerError),
    (504, gemini(504, "DEADLINE_EXCEEDED"), errors.GatewayTimedOut),
]
CASES = [
    *(("chat", *case) for case in OPENAI),
    *(("completions", *case) for case in OPENAI),
    *(("anthropic", *case) for case in ANTHROPIC),
    *(("gemini", *case) for case in GEMINI),
]


@pytest.mark.parametrize(("way", "status", "body", "error"), CASES)
def test_an_error_is_its_cause_in_the_provider_s_words_without_the_key(way, status, body, error):
    with pytest.raises(errors.EvaluatorError) as caught:
        ask(way, said(body, status=status))
    assert type(caught.value) is error
    assert "Words of [key]" in str(caught.value)
    assert KEY not in repr(caught.value)
    assert caught.value.__cause__ is None


# What stands between us and a provider answers in its own way, whatever the protocol.
GATEWAYS = [
    (502, b"<html><h1>502 Bad Gateway</h1></html>", errors.ServerError),
    (504, b"upstream request timeout", errors.GatewayTimedOut),
    (520, b"error code: 520", errors.ServerError),
    (500, b"", errors.ServerError),
    (429, b"", errors.RateLimited),
    (408, b"null", errors.ServerError),
    (401, b"[]", errors.Unauthorised),
    (403, b'{"error": null}', errors.Unauthorised),
    (413, b"<html>Request Entity Too Large</html>", errors.Rejected),
    (405, b'"no"', errors.Rejected),
    (404, b'{"error": {"message": null, "code": {}}}', errors.Rejected),
    (400, b'{"error": [' + b"[" * 50_000, errors.Rejected),
    (400, b"\xff\xfe\x00", errors.Rejected),
    (307, b"", errors.Rejected),
]


@pytest.mark.parametrize(("status", "body", "error"), GATEWAYS)
def test_what_a_gateway_says_is_known_by_its_status(way, status, body, error):
    with pytest.raises(errors.EvaluatorError, match=f"answered {status}") as caught:
        ask(way, response(body, status=status, headers="Content-Type: text/html\r\n"))
    assert type(caught.value) is error
    assert len(str(caught.value)) < 400


def test_a_prompt_that_a_host_s_filter_refused_is_an_answer_that_was_filtered():
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}}
    body = openai(WORDS, "content_filter", None, status=400, innererror=inner)
    for way in ("chat", "completions"):
        [answer] = ask_all(way, [said(body, status=400)])
        assert isinstance(answer, Answer)
        assert (answer.finish, answer.text) == ("filtered", "Words of [key]")


def test_a_key_is_hidden_in_whatever_spelling_a_body_repeats_it(way):
    bodies = [
        json.dumps({"error": {"message": f"no {KEY}"}}),
        json.dumps({"error": {"message": f"no {KEY}"}}).replace("/", "\\/"),
        f"<p>no Authorization: Bearer {KEY}</p>",
        f"no ?key={KEY.replace('/', '%2F')}",
        "x" * 250 + f" no {KEY}",
    ]
    made = ask_all(way, [response(body.encode(), status=400) for body in bodies])
    made += ask_all(way, [response(body.encode()) for body in bodies])
    assert all(isinstance(one, errors.EvaluatorError) for one in made)
    for part in (KEY, KEY[-12:], KEY[8:]):
        assert not any(part in str(one) for one in made)
