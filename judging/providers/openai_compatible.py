"""Chat completions in OpenAI's protocol, which most evaluators and local servers speak."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import aiohttp

from judging.providers import transport
from judging.providers.answers import Answer, Finish, Prompt, Target
from judging.providers.canonical import canonical_json
from judging.providers.errors import EvaluatorError, fit_to_show

offline = False
default_parameters: Mapping[str, Any] = MappingProxyType({"temperature": 0})

# Ours to say: `stream` changes the shape of the reply, and of several choices all but one would
# be paid for and dropped.
RESERVED = frozenset({"model", "messages", "stream", "n"})
_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
    "refusal": "refused",
}


def body(*, model: str, parameters: Mapping[str, Any], prompt: Prompt) -> bytes:
    """The exact bytes of a request: equal input gives equal bytes.

    `parameters` go over the defaults; one that is None is left out, so that `temperature` can be
    taken away from models that refuse it. Raises ValueError for a RESERVED parameter and for
    what JSON or UTF-8 cannot say (NaN, half a surrogate pair).
    """
    if taken := RESERVED & parameters.keys():
        raise ValueError(f"These parameters cannot be set: {', '.join(sorted(taken))}.")
    chosen = {**default_parameters, **parameters}
    sent = {name: value for name, value in chosen.items() if value is not None}
    return canonical_json({**sent, "model": model, "messages": _messages(prompt)})


async def ask(session: aiohttp.ClientSession | None, target: Target, body: bytes) -> Answer:
    """Send one request once and read its answer; raises an EvaluatorError for anything else.

    Refusals, filtered and truncated answers are answers: their `finish` says so.
    """
    if session is None:
        raise ValueError("An evaluator that is called needs a session.")
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    received = await transport.post(session, target, "/chat/completions", body, headers)
    if not 200 <= received.status < 300:
        return _filtered_or_raise(received, target)
    return _answer(transport.decoded(received, (target.key,)), received, target)


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, {"role": "user", "content": prompt.user}]


def _filtered_or_raise(received: transport.Received, target: Target) -> Answer:
    """Some hosts report a filtered prompt as a bad request; it is an answer like any other."""
    words, code = transport.provider_words(received.body)
    if received.status == 400 and code == "content_filter":
        shown = fit_to_show(words, (target.key,))
        return Answer(shown, "filtered", "", None, None, received.started, received.seconds)
    raise transport.refusal(received, received.status, (target.key,))


def _answer(reply: Any, received: transport.Received, target: Target) -> Answer:
    if isinstance(reply, dict) and reply.get("error"):
        raise _error_inside(reply["error"], received, target)
    try:
        choice = reply["choices"][0]
        text, finish = _text_and_finish(choice["message"], choice.get("finish_reason"))
        usage = reply.get("usage") or {}
        return Answer(
            text=text,
            finish=finish,
            model=str(reply.get("model") or ""),
            tokens_in=_count(usage.get("prompt_tokens")),
            tokens_out=_count(usage.get("completion_tokens")),
            started=received.started,
            seconds=received.seconds,
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise transport.broken("is not a chat completion", received, (target.key,)) from None


def _error_inside(error: Any, received: transport.Received, target: Target) -> EvaluatorError:
    """Gateways pass an error of the model's host on inside a reply of status 200."""
    status = error.get("code") if isinstance(error, dict) else None
    inner = status if isinstance(status, int) and 400 <= status < 600 else 502
    return transport.refusal(received, inner, (target.key,))


def _text_and_finish(message: Mapping[str, Any], reason: object) -> tuple[str, Finish]:
    if message.get("refusal"):
        return str(message["refusal"]), "refused"
    finish = _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"
    return _joined(message.get("content")), finish


def _joined(content: object) -> str:
    """The text of a message: a string, None, or a list of parts of which some are text."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError("content is neither text nor a list of parts")
    return "".join(str(part["text"]) for part in content if part.get("type") == "text")


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
