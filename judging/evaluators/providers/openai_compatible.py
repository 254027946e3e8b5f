"""Chat and text completions in OpenAI's protocol, used by most evaluators and local servers."""

import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from judging.evaluators.prices import DEFAULT_MAX_TOKENS
from judging.evaluators.providers import transport
from judging.evaluators.providers.answers import Answer, Finish, Prompt, Target
from judging.evaluators.providers.canonical_json import canonical_json, keep_order
from judging.evaluators.providers.errors import redact_message

if TYPE_CHECKING:
    import aiohttp

title = "OpenAI-compatible"
offline = False
is_evaluator = True
default_parameters: Mapping[str, Any] = MappingProxyType({"temperature": 0})
# Without a limit, servers end a text completion after 16 tokens.
completion_parameters: Mapping[str, Any] = MappingProxyType(
    {"temperature": 0, "max_tokens": DEFAULT_MAX_TOKENS}
)

# Only this module sets these parameters: `stream` changes the format of the reply, and of several
# choices all would be paid for but only one used.
RESERVED = frozenset({"model", "messages", "stream", "n"})
RESERVED_IN_COMPLETIONS = RESERVED | {"prompt", "echo", "best_of", "suffix"}
# In small letters: servers and gateways pass on the words of other protocols.
_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "complete": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filtered",
    "content_filtered": "filtered",
    "guardrail_intervened": "filtered",
    "safety": "filtered",
    "recitation": "filtered",
    "sensitive": "filtered",
    "refusal": "refused",
}
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
# The body of a chat contains this string, and no other body does, since quotes inside a text are
# escaped.
_CHAT = b'"messages":['


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

    `parameters` override the defaults; a parameter that is None is left out, so that `temperature`
    can be removed for models that refuse it. `api` is "chat", or "completions" to send the
    filled-in `template`. A `schema` of the answer is sent if there is a `json_mode`. Raises
    ValueError for a reserved parameter, a template that cannot be filled in, and values that JSON
    or UTF-8 cannot represent (NaN, lone surrogates).
    """
    is_chat = api == "chat"
    taken = (RESERVED if is_chat else RESERVED_IN_COMPLETIONS) & parameters.keys()
    if json_mode:
        taken |= {"response_format"} & parameters.keys()
    if taken:
        raise ValueError(f"These parameters cannot be set: {', '.join(sorted(taken))}.")
    chosen = {**(default_parameters if is_chat else completion_parameters), **parameters}
    sent = {name: value for name, value in chosen.items() if value is not None}
    if json_mode and schema is not None:
        sent["response_format"] = _response_format(json_mode, schema)
    if is_chat:
        if template:
            raise ValueError(
                "Chat uses no template. Choose completions, or leave the template empty."
            )
        return canonical_json({**sent, "model": model, "messages": _messages(prompt)})
    made = canonical_json({**sent, "model": model, "prompt": _fill_template(template, prompt)})
    if _CHAT in made:
        raise ValueError("Parameters of completions cannot contain messages.")
    return made


async def ask(session: "aiohttp.ClientSession | None", target: Target, body: bytes) -> Answer:
    """Send one request once and return its answer; raises an EvaluatorError if there is none.

    Answers that are refused, filtered or truncated are returned too; `finish` says which of these
    they are.
    """
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    path = "/chat/completions" if _CHAT in body else "/completions"
    received = await transport.post(session, target, path, body, headers)
    if not 200 <= received.status < 300:
        return _parse_bad_request(received, target)
    return _parse_answer(transport.decode_json(received, (target.key,)), received, target)


def parse_recorded(reply: Any, at: datetime) -> Answer:
    """Return the answer in a stored completion; raises BrokenReply or another EvaluatorError."""
    return _parse_answer(reply, transport.ReceivedReply(200, {}, b"", at, 0.0), Target(""))


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, {"role": "user", "content": prompt.user}]


def _fill_template(template: str, prompt: Prompt) -> str:
    """Insert both texts into the template in one pass, so that placeholders inside the texts are
    not expanded.

    If the template has no placeholder for the system text, the system text is put before the
    prompt.
    """
    names = set(_PLACEHOLDER.findall(template))
    if "prompt" not in names or names - {"prompt", "system"}:
        raise ValueError(
            "Completions need the model's template: a text with {{prompt}}, with {{system}} if the "
            "model uses a system prompt, and with no other name in braces."
        )
    apart = "system" in names
    user = prompt.user if apart or not prompt.system else f"{prompt.system}\n\n{prompt.user}"
    texts = {"system": prompt.system, "prompt": user}
    return _PLACEHOLDER.sub(lambda place: texts[place[1]], template)


def _response_format(json_mode: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if json_mode == "json_object":
        return {"type": "json_object"}
    if json_mode == "json_object_schema":  # as llama-cpp-python spells it
        return {"type": "json_object", "schema": keep_order(schema)}
    answer = {"name": "answer", "schema": keep_order(schema), "strict": True}
    return {"type": "json_schema", "json_schema": answer}


def _parse_bad_request(received: transport.ReceivedReply, target: Target) -> Answer:
    """Return an answer for a filtered prompt, which some hosts report as a bad request."""
    words, code = transport.parse_error_body(received.body)
    if received.status == 400 and code == "content_filter":
        return transport.build_answer(received, redact_message(words, (target.key,)), "filtered")
    raise transport.build_refusal(received, received.status, (target.key,))


def _parse_answer(reply: Any, received: transport.ReceivedReply, target: Target) -> Answer:
    if isinstance(reply, dict) and reply.get("error"):
        raise transport.build_inner_error(reply["error"], received, (target.key,))
    try:
        choice = reply["choices"][0]
        text, finish = _text_and_finish(choice)
        return transport.build_answer(
            received,
            text,
            finish,
            model=reply.get("model"),
            thinking=_thinking(choice.get("message") or {}),
            **_parse_usage(transport.get_usage(reply, "usage")),
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise transport.build_broken_reply("is not a completion", received, (target.key,)) from None


def _text_and_finish(choice: Mapping[str, Any]) -> tuple[str, Finish]:
    """Return the text and the finish reason of a choice. A choice of a chat contains a message, and
    a choice of a completion contains the text.
    """
    reason = choice.get("finish_reason")
    finish = _FINISHES.get(str(reason).lower(), "other") if reason else "unknown"
    if "message" not in choice:
        return _join_content(choice["text"]), finish
    message = choice["message"]
    if message.get("refusal"):
        return str(message["refusal"]), "refused"
    return _join_content(message.get("content")), finish


def _parse_usage(usage: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the token counts. Reasoning is a part of the completion, except at some hosts, which
    count it only in the total.
    """
    into, out, total = (
        transport.parse_count(usage.get(f"{name}_tokens"))
        for name in ("prompt", "completion", "total")
    )
    details = transport.get_usage(usage, "completion_tokens_details")
    reasoning = transport.parse_count(details.get("reasoning_tokens"))
    if into is not None and out is not None and total is not None and total > into + out:
        reasoning, out = reasoning or total - into - out, total - into
    cached = transport.get_usage(usage, "prompt_tokens_details").get("cached_tokens")
    return {
        "tokens_in": into,
        "tokens_out": out,
        "tokens_reasoning": reasoning,
        # DeepSeek's own name for it.
        "tokens_cached": usage.get("prompt_cache_hit_tokens") if cached is None else cached,
    }


def _thinking(message: Mapping[str, Any]) -> list[object]:
    """Return the thinking that a server keeps apart: under one of two names, or as parts of the
    content.
    """
    named = message.get("reasoning_content") or message.get("reasoning")
    content = message.get("content")
    parts = [
        inner.get("text")
        for part in (content if isinstance(content, list) else [])
        if part.get("type") == "thinking" and isinstance(part.get("thinking"), list)
        for inner in part["thinking"]
        if isinstance(inner, dict)
    ]
    return [named, *parts]


def _join_content(content: object) -> str:
    """Return the text of a message, whose content is a string, None, or a list of parts of which
    some are text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError("content is neither text nor a list of parts")
    return "".join(str(part["text"]) for part in content if part.get("type") == "text")
