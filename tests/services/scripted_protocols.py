"""How the scripted evaluator speaks: each protocol's way to be asked, to answer and to refuse."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# Status, words and code of what OpenAI's protocol reports as an error.
REFUSALS = {
    "rate_limited": (429, "too many requests", "rate_limit_exceeded"),
    "quota": (429, "the quota is used up", "insufficient_quota"),
    "server_error": (500, "something broke", "server_error"),
    "overloaded": (503, "try again later", "overloaded"),
    "unauthorised": (401, "this key is wrong: ", "invalid_api_key"),
    "forbidden": (403, "not from here", "unsupported_country"),
    "not_found": (404, "there is no such model", "model_not_found"),
    "too_large": (413, "that is too long", "request_too_large"),
    "rejected": (400, "this cannot be asked", "invalid_request_error"),
    "filtered_prompt": (400, "the prompt was filtered", "content_filter"),
    "no_temperature": (
        400,
        "Unsupported value: 'temperature' does not support 0 with this model.",
        "unsupported_value",
    ),
    "redirect": (307, "it has moved", "moved"),
}
# What the others say instead: status and kind of error.
_OF_ANTHROPIC = {
    "rate_limited": (429, "rate_limit_error"),
    "quota": (400, "invalid_request_error"),
    "server_error": (500, "api_error"),
    "overloaded": (529, "overloaded_error"),
    "unauthorised": (401, "authentication_error"),
    "forbidden": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "too_large": (413, "request_too_large"),
    "rejected": (400, "invalid_request_error"),
    "no_temperature": (400, "invalid_request_error"),
    "redirect": (307, "moved"),
}
_OF_GEMINI = {
    "rate_limited": (429, "RESOURCE_EXHAUSTED"),
    "quota": (429, "RESOURCE_EXHAUSTED"),
    "server_error": (500, "INTERNAL"),
    "overloaded": (503, "UNAVAILABLE"),
    "unauthorised": (400, "INVALID_ARGUMENT"),
    "forbidden": (403, "PERMISSION_DENIED"),
    "not_found": (404, "NOT_FOUND"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "rejected": (400, "INVALID_ARGUMENT"),
    "no_temperature": (400, "INVALID_ARGUMENT"),
    "redirect": (307, "MOVED"),
}
_GOOGLE = "type.googleapis.com/google.rpc."
_DETAILS: Mapping[str, list[dict[str, Any]]] = {
    "unauthorised": [{"@type": f"{_GOOGLE}ErrorInfo", "reason": "API_KEY_INVALID"}],
    "rate_limited": [
        {
            "@type": f"{_GOOGLE}QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}],
        },
        {"@type": f"{_GOOGLE}RetryInfo", "retryDelay": "21s"},
    ],
    "quota": [
        {
            "@type": f"{_GOOGLE}QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
        },
        {"@type": f"{_GOOGLE}RetryInfo", "retryDelay": "9s"},
    ],
}


@dataclass(frozen=True)
class Said:
    """One answer before it is put into the words of a protocol."""

    model: str
    prompt: str
    text: str
    fault: str
    finish: str = ""
    tokens_in: int | None = None

    @property
    def shown(self) -> str:
        return self.text[: len(self.text) // 2] if self.fault == "truncated" else self.text

    @property
    def tokens(self) -> tuple[int, int]:
        asked = len(self.prompt) // 4 if self.tokens_in is None else self.tokens_in
        return asked, len(self.text) // 4


@dataclass(frozen=True)
class Protocol:
    """`path` may name the model; `key` is the header that holds the key; `refuse` gives status
    and body of an error, None if the protocol has no such error but an answer."""

    path: re.Pattern[str]
    key: str
    prompt: Callable[[Any], str]
    reply: Callable[[Said], dict[str, Any]]
    refuse: Callable[[str, str], tuple[int, Any] | None]


def _chat(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.shown, "refusal": None}
    if said.fault == "refused":
        message |= {"content": None, "refusal": said.text}
    elif said.fault in {"filtered", "empty"}:
        message["content"] = None
    choice = {"index": 0, "message": message, "finish_reason": _openai_finish(said)}
    return {"object": "chat.completion", "choices": [choice]} | _openai_rest(said)


def _completion(said: Said) -> dict[str, Any]:
    text = "" if said.fault in {"filtered", "empty"} else said.shown
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": _openai_finish(said)}
    return {"object": "text_completion", "choices": [choice]} | _openai_rest(said)


def _openai_finish(said: Said) -> str:
    usual = {"truncated": "length", "filtered": "content_filter"}.get(said.fault, "stop")
    return said.finish or usual


def _openai_rest(said: Said) -> dict[str, Any]:
    prompt, text = said.tokens
    usage = {"prompt_tokens": prompt, "completion_tokens": text, "total_tokens": prompt + text}
    return {"id": "scripted", "model": said.model, "usage": usage}


def _openai_error(fault: str, key: str) -> tuple[int, Any]:
    status, words, code = REFUSALS[fault]
    words += key if fault == "unauthorised" else ""
    return status, {"error": {"message": words, "type": code, "param": None, "code": code}}


def _message(said: Said) -> dict[str, Any]:
    prompt, text = said.tokens
    finishes = {"truncated": "max_tokens", "refused": "refusal"}
    blocks = [{"type": "text", "text": said.shown}]
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [] if said.fault == "empty" else blocks,
        "stop_reason": said.finish or finishes.get(said.fault, "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": prompt, "cache_read_input_tokens": 0, "output_tokens": text},
    }


def _anthropic_error(fault: str, key: str) -> tuple[int, Any] | None:
    if fault not in _OF_ANTHROPIC:
        return None
    status, kind = _OF_ANTHROPIC[fault]
    words = REFUSALS[fault][1] + (key if fault == "unauthorised" else "")
    if fault == "quota":
        words = "Your credit balance is too low to access the API."
    error = {"type": kind, "message": words}
    return status, {"type": "error", "error": error, "request_id": "req_scripted"}


def _content(said: Said) -> dict[str, Any]:
    prompt, text = said.tokens
    usage = {"promptTokenCount": prompt, "totalTokenCount": prompt + text}
    rest = {"modelVersion": said.model, "responseId": "scripted", "usageMetadata": usage}
    if said.fault == "filtered_prompt":
        usage["totalTokenCount"] = prompt
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}} | rest
    usage["candidatesTokenCount"] = text
    finishes = {"truncated": "MAX_TOKENS", "filtered": "SAFETY", "refused": "SAFETY"}
    reason = said.finish or finishes.get(said.fault, "STOP")
    candidate: dict[str, Any] = {"index": 0, "finishReason": reason}
    if said.fault not in {"filtered", "refused"}:
        parts = [] if said.fault == "empty" else [{"text": said.shown}]
        candidate["content"] = {"role": "model", "parts": parts}
    return {"candidates": [candidate]} | rest


def _gemini_error(fault: str, key: str) -> tuple[int, Any] | None:
    if fault not in _OF_GEMINI:
        return None
    code, status = _OF_GEMINI[fault]
    words = REFUSALS[fault][1] + (key if fault == "unauthorised" else "")
    details = _DETAILS.get(fault, [])
    return code, {"error": {"code": code, "message": words, "status": status, "details": details}}


PROTOCOLS: Mapping[str, Protocol] = {
    "chat": Protocol(
        re.compile("/v1/chat/completions"),
        "Authorization",
        lambda asked: asked["messages"][-1]["content"],
        _chat,
        _openai_error,
    ),
    "completions": Protocol(
        re.compile("/v1/completions"),
        "Authorization",
        lambda asked: asked["prompt"],
        _completion,
        _openai_error,
    ),
    "anthropic": Protocol(
        re.compile("/v1/messages"),
        "x-api-key",
        lambda asked: asked["messages"][-1]["content"],
        _message,
        _anthropic_error,
    ),
    "gemini": Protocol(
        re.compile("/v1beta/models/(?P<model>[^:/]+):generateContent"),
        "x-goog-api-key",
        lambda asked: asked["contents"][-1]["parts"][0]["text"],
        _content,
        _gemini_error,
    ),
}


def spoken_at(path: str) -> tuple[Protocol, str] | None:
    """The protocol of a path, and the model if the path names it; None if nobody is there."""
    for protocol in PROTOCOLS.values():
        if found := protocol.path.fullmatch(path):
            return protocol, found.groupdict().get("model", "")
    return None
