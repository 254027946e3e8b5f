"""Gemini's generateContent. The address ends before /models: https://host/v1beta."""

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from judging.evaluators.providers import transport
from judging.evaluators.providers.answers import Answer, Finish, Prompt, Target
from judging.evaluators.providers.canonical_json import OrderedMapping, canonical_json, keep_order
from judging.evaluators.providers.errors import (
    EvaluatorError,
    QuotaExhausted,
    RateLimited,
    Unauthorised,
)

if TYPE_CHECKING:
    import aiohttp

title = "Gemini generateContent"
offline = False
is_evaluator = True
default_parameters: Mapping[str, Any] = MappingProxyType({"temperature": 0})
# Parameter names that strategies use for every provider, each with this provider's own name for it.
# Any other parameter goes into generationConfig unchanged.
PARAMETER_NAMES: Mapping[str, str] = {
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "stop": "stopSequences",
}
TOP_LEVEL_PARAMETERS = frozenset({"safetySettings"})
RESERVED = frozenset({"model", "contents", "systemInstruction", "candidateCount"})
RESERVED_IN_JSON = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema"})
_MODEL = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
_FINISHES: Mapping[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "LANGUAGE": "filtered",
    "MODEL_ARMOR": "filtered",
    "ESCALATION": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
    "IMAGE_RECITATION": "filtered",
}
_KEY_ERRORS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED"})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")


def body(
    *,
    model: str,
    parameters: Mapping[str, Any],
    prompt: Prompt,
    schema: Mapping[str, Any] | None = None,
    api: str = "chat",
    template: str = "",
    json_mode: str = "",
) -> bytes:
    """Return a request as canonical JSON; the same input gives the same bytes.

    The JSON contains the `model`, which `ask` moves into the address. `parameters` override the
    defaults; a parameter that is None is left out. Raises ValueError for a request that cannot be
    sent.
    """
    if api != "chat" or template:
        raise ValueError("Gemini supports chat only. Choose chat and leave the template empty.")
    if not _MODEL.fullmatch(model):
        raise ValueError(
            "The name of a Gemini model contains only letters, digits, dots and hyphens."
        )
    if json_mode == "json_object_schema":
        raise ValueError("Gemini takes JSON by schema or a JSON object. Choose one of these.")
    if taken := (RESERVED | (RESERVED_IN_JSON if json_mode else frozenset())) & parameters.keys():
        raise ValueError(f"These parameters cannot be set: {', '.join(sorted(taken))}.")
    chosen = {**default_parameters, **parameters}
    sent = {name: value for name, value in chosen.items() if value is not None}
    made: dict[str, Any] = {name: sent.pop(name) for name in TOP_LEVEL_PARAMETERS & sent.keys()}
    config = {PARAMETER_NAMES.get(name, name): value for name, value in sent.items()}
    if json_mode and schema is not None:
        config["responseMimeType"] = "application/json"
        if json_mode == "json_schema":
            config["responseJsonSchema"] = keep_order(schema)
    if prompt.system:
        made["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    contents = [{"role": "user", "parts": [{"text": prompt.user}]}]
    return canonical_json(
        {**made, "model": model, "contents": contents, "generationConfig": config}
    )


async def ask(session: "aiohttp.ClientSession | None", target: Target, body: bytes) -> Answer:
    """Send one request once and return its answer; raises an EvaluatorError if there is none.

    The key is sent in a header: as part of the address it would appear in the logs of every proxy.
    """
    request = json.loads(body, object_pairs_hook=OrderedMapping)
    model = request.pop("model")
    path = f"/{model if '/' in model else f'models/{model}'}:generateContent"
    headers = {"x-goog-api-key": target.key} if target.key else {}
    received = await transport.post(session, target, path, canonical_json(request), headers)
    if not 200 <= received.status < 300:
        raise _build_refusal(received, target)
    return _parse_answer(transport.decode_json(received, (target.key,)), received, target)


def _parse_answer(reply: Any, received: transport.ReceivedReply, target: Target) -> Answer:
    if isinstance(reply, dict) and reply.get("error"):
        raise transport.build_inner_error(reply["error"], received, (target.key,))
    try:
        usage = transport.get_usage(reply, "usageMetadata")
        text, finish, thinking = _read_candidate(reply)
        return transport.build_answer(
            received,
            text,
            finish,
            model=reply.get("modelVersion"),
            tokens_in=usage.get("promptTokenCount"),
            tokens_out=_tokens_out(usage),
            thinking=thinking,
            tokens_cached=usage.get("cachedContentTokenCount"),
            tokens_reasoning=usage.get("thoughtsTokenCount"),
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise transport.build_broken_reply(
            "is not generated content", received, (target.key,)
        ) from None


def _read_candidate(reply: Mapping[str, Any]) -> tuple[str, Finish, list[str]]:
    """Return the text, the finish reason and the parts of the thinking."""
    if not reply.get("candidates"):
        feedback = reply["promptFeedback"]
        return str(feedback.get("blockReasonMessage") or feedback["blockReason"]), "filtered", []
    candidate = reply["candidates"][0]
    reason = candidate.get("finishReason")
    finish = _FINISHES.get(str(reason), "other") if reason else "unknown"
    parts = (candidate.get("content") or {}).get("parts") or []
    texts = [(str(part["text"]), part.get("thought")) for part in parts if "text" in part]
    text = "".join(text for text, is_thinking in texts if not is_thinking)
    if finish == "filtered" and not text:
        text = str(candidate.get("finishMessage") or "")
    return text, finish, [text for text, is_thinking in texts if is_thinking]


def _tokens_out(usage: Mapping[str, Any]) -> int | None:
    """Return the number of output and thinking tokens, which are both paid for. A blocked prompt
    has no such tokens.
    """
    names = ("candidatesTokenCount", "thoughtsTokenCount")
    counts = [usage[name] for name in names if usage.get(name) is not None]
    if counts:
        return transport.sum_tokens(counts)
    asked, both = (
        transport.sum_tokens([usage.get(f"{name}TokenCount")]) for name in ("prompt", "total")
    )
    return None if asked is None or both is None else max(0, both - asked)


def _build_refusal(received: transport.ReceivedReply, target: Target) -> EvaluatorError:
    """Return the error for the status, or for the details in the body if the status is ambiguous.

    This provider reports a wrong key and a project without access as bad requests, and an exhausted
    daily quota as a rate limit. The time to wait before another attempt is in the body.
    """
    words = transport.format_provider_words(received, received.status, (target.key,))
    error = _error(received.body)
    details = [one for one in error.get("details") or [] if isinstance(one, dict)]
    if received.status == 400 and (
        error.get("status") == "FAILED_PRECONDITION"
        or _KEY_ERRORS & {str(one.get("reason")) for one in details}
    ):
        return Unauthorised(words)
    refusal = transport.build_refusal(received, received.status, (target.key,))
    if not isinstance(refusal, RateLimited):
        return refusal
    if any("PerDay" in quota for quota in _quotas(details)):
        return QuotaExhausted(words)
    return RateLimited(words, refusal.retry_after or _wait(details))


def _error(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    found = found[0] if isinstance(found, list) and found else found
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, dict) and isinstance(error.get("details", []), list) else {}


def _quotas(details: Iterable[Mapping[str, Any]]) -> list[str]:
    violations = [one.get("violations") for one in details]
    lists = [found for found in violations if isinstance(found, list)]
    return [str(one.get("quotaId")) for found in lists for one in found if isinstance(one, dict)]


def _wait(details: Iterable[Mapping[str, Any]]) -> float | None:
    spans = (_DURATION.fullmatch(str(one.get("retryDelay"))) for one in details)
    return next((min(float(span[1]), 86400.0) for span in spans if span), None)
