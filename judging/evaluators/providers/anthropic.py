"""Anthropic's Messages protocol. The address ends before /messages: https://host/v1."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from judging.evaluators.prices import DEFAULT_MAX_TOKENS
from judging.evaluators.providers import transport
from judging.evaluators.providers.answers import Answer, Finish, Prompt, Target
from judging.evaluators.providers.canonical_json import canonical_json, keep_order
from judging.evaluators.providers.errors import EvaluatorError, QuotaExhausted

if TYPE_CHECKING:
    import aiohttp

API_VERSION = "2023-06-01"
title = "Anthropic Messages"
offline = False
is_evaluator = True
# The protocol requires max_tokens.
default_parameters: Mapping[str, Any] = MappingProxyType(
    {"temperature": 0, "max_tokens": DEFAULT_MAX_TOKENS}
)
RESERVED = frozenset({"model", "messages", "system", "stream"})
_FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
# Keywords of JSON schemas that this protocol refuses. The prompt states the same rules in words,
# and the parser checks them.
_UNKNOWN_IN_SCHEMA = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    }
)


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
    """Return the exact bytes of a request; the same input gives the same bytes.

    `parameters` override the defaults; a parameter that is None is left out. Raises ValueError for
    a request that cannot be sent: with a reserved parameter, without max_tokens, for completions,
    or for JSON without a schema.
    """
    if api != "chat" or template:
        raise ValueError(
            "Anthropic Messages support chat only. Choose chat and leave the template empty."
        )
    if json_mode not in ("", "json_schema"):
        raise ValueError("Anthropic Messages support JSON by schema only. Choose that, or text.")
    if taken := (RESERVED | ({"output_config"} if json_mode else set())) & parameters.keys():
        raise ValueError(f"These parameters cannot be set: {', '.join(sorted(taken))}.")
    chosen = {**default_parameters, **parameters}
    sent = {name: value for name, value in chosen.items() if value is not None}
    if "max_tokens" not in sent:
        raise ValueError("Anthropic Messages need max_tokens. Enter a number.")
    if prompt.system:
        sent["system"] = prompt.system
    if json_mode and schema is not None:
        answer = {"type": "json_schema", "schema": keep_order(_simplify_schema(schema))}
        sent["output_config"] = {"format": answer}
    messages = [{"role": "user", "content": prompt.user}]
    return canonical_json({**sent, "model": model, "messages": messages})


async def ask(session: "aiohttp.ClientSession | None", target: Target, body: bytes) -> Answer:
    """Send one request once and return its answer; raises an EvaluatorError if there is none."""
    headers = {"anthropic-version": API_VERSION}
    if target.key:
        headers["x-api-key"] = target.key
    received = await transport.post(session, target, "/messages", body, headers)
    if not 200 <= received.status < 300:
        raise _build_refusal(received, target)
    return _parse_answer(transport.decode_json(received, (target.key,)), received, target)


def _simplify_schema(schema: Any) -> Any:
    """Return the schema without the refused keywords. A property that has the same name as a
    keyword is kept.
    """
    if not isinstance(schema, Mapping):
        return [_simplify_schema(part) for part in schema] if isinstance(schema, list) else schema
    return {
        name: {key: _simplify_schema(part) for key, part in value.items()}
        if name == "properties" and isinstance(value, Mapping)
        else _simplify_schema(value)
        for name, value in schema.items()
        if name not in _UNKNOWN_IN_SCHEMA
    }


def _build_refusal(received: transport.ReceivedReply, target: Target) -> EvaluatorError:
    """Return the error for the status. An empty credit balance is treated separately, since the
    provider reports it as a bad request.
    """
    words, _ = transport.parse_error_body(received.body)
    if received.status == 400 and "credit balance is too low" in words.lower():
        return QuotaExhausted(
            transport.format_provider_words(received, received.status, (target.key,))
        )
    return transport.build_refusal(received, received.status, (target.key,))


def _parse_answer(reply: Any, received: transport.ReceivedReply, target: Target) -> Answer:
    if isinstance(reply, dict) and reply.get("error"):
        raise transport.build_inner_error(reply["error"], received, (target.key,))
    try:
        blocks = reply["content"]
        text = "".join(str(block["text"]) for block in blocks if block["type"] == "text")
        reason = reply["stop_reason"]
        usage = transport.get_usage(reply, "usage")
        details = transport.get_usage(usage, "output_tokens_details")
        return transport.build_answer(
            received,
            text,
            _FINISHES.get(str(reason), "other") if reason else "unknown",
            model=reply.get("model"),
            tokens_in=_tokens_in(usage),
            tokens_out=usage.get("output_tokens"),
            thinking=[one.get("thinking") for one in blocks if one["type"] == "thinking"],
            tokens_cached=usage.get("cache_read_input_tokens"),
            tokens_reasoning=details.get("thinking_tokens"),
        )
    except (KeyError, TypeError, AttributeError):
        raise transport.build_broken_reply("is not a message", received, (target.key,)) from None


def _tokens_in(usage: Mapping[str, Any]) -> int | None:
    """Return the number of all input tokens. The provider reports tokens read from or written to a
    cache separately.
    """
    if usage.get("input_tokens") is None:
        return None
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return transport.sum_tokens(usage.get(name) or 0 for name in names)
