"""One HTTP exchange with an evaluator. The result is the bytes of the reply, or an error that says
what to do.
"""

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

from judging.evaluators.prices import MAX_TOKENS
from judging.evaluators.providers import remaining_limits
from judging.evaluators.providers.answers import Answer, Finish, Target, split_thinking
from judging.evaluators.providers.errors import (
    BrokenReply,
    EvaluatorError,
    error_of_status,
    format_status,
    redact_bytes,
    redact_message,
    redact_values,
)
from judging.evaluators.retries import parse_retry_after

if TYPE_CHECKING:
    import aiohttp

MAX_REPLY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReceivedReply:
    """A received reply: status, headers, body, when the request was sent (UTC), seconds until the
    last byte, and the URL that was asked, "" for a stored reply.

    The body never contains the key, even if the provider repeats it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    started: datetime
    seconds: float
    url: str = ""


def connect(allowed_hosts: Collection[str] = ()) -> "aiohttp.ClientSession":
    """Create a session for calling evaluators; see `http_client.connect`."""
    from judging.evaluators import http_client

    return http_client.connect(allowed_hosts)


async def post(
    session: "aiohttp.ClientSession | None",
    target: Target,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
) -> ReceivedReply:
    """Post JSON to `path` at the target, and return the reply with any status.

    The target's timeout limits the whole call. The request is sent only once, and redirects are not
    followed. Raises TimedOut, BrokenReply (cut off, or longer than MAX_REPLY_BYTES), ServerError
    (no connection) and ForbiddenAddress; ValueError without a session, which only providers that
    are offline can do without.
    """
    if session is None:
        raise ValueError("An evaluator that is called needs a session.")
    from judging.evaluators import http_client

    started, clock = datetime.now(UTC), time.perf_counter()
    url = target.address.rstrip("/") + path
    status, sent, content = await http_client.send(session, target, url, body, headers)
    seconds = time.perf_counter() - clock
    content = redact_bytes(target.key, content)
    return ReceivedReply(status, sent, content, started, seconds, url)


def build_answer(
    received: ReceivedReply,
    text: str,
    finish: Finish,
    *,
    model: object = "",
    tokens_in: object = None,
    tokens_out: object = None,
    thinking: Iterable[object] = (),
    tokens_cached: object = None,
    tokens_reasoning: object = None,
) -> Answer:
    """Build the answer from a reply; invalid token counts become None, and a part is at most the
    whole. `thinking` are the parts of the thinking that the provider keeps apart from the text;
    thinking in the text is taken out.
    """
    into, out = parse_count(tokens_in), parse_count(tokens_out)
    inside, text = split_thinking(text)
    parts = [part for part in thinking if part and isinstance(part, str)]
    return Answer(
        text=text,
        finish=finish,
        model=str(model or ""),
        tokens_in=into,
        tokens_out=out,
        started=received.started,
        seconds=received.seconds,
        remaining=remaining_limits.parse_headers(received.headers, received.started),
        thinking="\n\n".join([*parts, inside] if inside else parts),
        tokens_cached=_parse_part(tokens_cached, into),
        tokens_reasoning=_parse_part(tokens_reasoning, out),
    )


def decode_json(received: ReceivedReply, secrets: Collection[str]) -> Any:
    """Decode the body as JSON, without secrets in it; raises BrokenReply with the start of the body
    if that fails.
    """
    try:
        found = json.loads(received.body)
        # Most replies escape no character of ASCII.
        return redact_values(secrets, found) if b"\\u00" in received.body else found
    except (ValueError, RecursionError):
        raise build_broken_reply("is not JSON", received, secrets) from None


def build_broken_reply(how: str, received: ReceivedReply, secrets: Collection[str]) -> BrokenReply:
    """Return the error for a body that cannot be used; its message has the start of the body."""
    start = redact_message(received.body.decode("utf-8", "replace"), secrets)
    return BrokenReply(f"The reply {how}: {start!r}")


def build_refusal(received: ReceivedReply, status: int, secrets: Collection[str]) -> EvaluatorError:
    """Return the error for a `status`, with the provider's own message.

    The status is that of the reply, or a status that a gateway passes on inside a reply with status
    200.
    """
    message = format_provider_words(received, status, secrets)
    code = parse_error_body(received.body)[1]
    retry_after = parse_retry_after(received.headers)
    return error_of_status(status, code, message, retry_after)


def build_inner_error(
    error: Any, received: ReceivedReply, secrets: Collection[str]
) -> EvaluatorError:
    """Return the error that a gateway passes on from the model's host inside a reply with status
    200.
    """
    status = error.get("code") if isinstance(error, dict) else None
    inner = status if isinstance(status, int) and 400 <= status < 600 else 502
    return build_refusal(received, inner, secrets)


def format_provider_words(received: ReceivedReply, status: int, secrets: Collection[str]) -> str:
    """Return the provider's message about a status, in a form that is safe to show. For 404 it ends
    with the URL that was asked, since a wrong address is the usual cause."""
    shown = redact_message(parse_error_body(received.body)[0], secrets) or "no message"
    if status != 404 or received.status != 404 or not received.url:
        return format_status(status) + shown
    asked = redact_message(received.url, secrets)
    return f"{format_status(status)}{shown.rstrip('.')}. The URL asked was {asked}"


def parse_error_body(body: bytes) -> tuple[str, str]:
    """Return the message and the code in the body of an error, in any of the formats that providers
    use.

    If the body is not JSON or has no known format, the message is the body itself, and the code is
    "".
    """
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return text, ""
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, dict):
        return text, ""
    inner = found.get("error", found)
    if not isinstance(inner, dict):
        return str(inner), ""
    words = inner.get("message") or inner.get("detail") or text
    details = inner.get("details")
    exact = details.get("error_code") if isinstance(details, dict) else None
    return _with_field(str(words), inner.get("param")), str(
        exact or inner.get("code") or inner.get("type") or ""
    )


def _with_field(words: str, field: object) -> str:
    """Return the message, with the name of the field added if the message does not contain it."""
    if not isinstance(field, str) or any(mark in words for mark in _quote(field)):
        return words
    return f"{words} (param: '{field}')"


def _quote(field: str) -> Iterator[str]:
    """Yield the field in quotation marks, whose two ends may differ. Both texts are a stranger's: a
    pattern made of one could take hours in the other."""
    return (f"{begin}{field}{end}" for begin, end in product("`'\"", repeat=2))


def get_usage(reply: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the token usage in a reply, or the details of a count in the usage; {} if it is
    missing or malformed. A malformed count is no reason to
    send the request again, since the reply has already been paid for.
    """
    found = reply.get(name)
    return found if isinstance(found, dict) else {}


def sum_tokens(counts: Iterable[object]) -> int | None:
    """Return the sum of token counts, or None if there are none or if one of them is invalid."""
    known = [parse_count(value) for value in counts]
    sure = [count for count in known if count is not None]
    return parse_count(sum(sure)) if sure and len(sure) == len(known) else None


def parse_count(value: object) -> int | None:
    """Return a token count, None if it is missing or invalid."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_TOKENS else None


def _parse_part(value: object, whole: int | None) -> int | None:
    """Return the count of a part of other tokens: at most their number."""
    part = parse_count(value)
    return part if part is None or whole is None else min(part, whole)
