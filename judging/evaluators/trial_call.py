"""Test calls to an endpoint outside of runs: does it answer, how fast, and at what cost?"""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from annotation.db.cache import count_in_window
from judging.evaluators.keys import read_key
from judging.evaluators.prices import compute_cost
from judging.evaluators.providers import (
    PROVIDERS,
    Answer,
    Target,
    build_body,
    connect,
    merge_defaults,
)
from judging.evaluators.providers.errors import (
    BrokenReply,
    EvaluatorError,
    Rejected,
    redact_message,
)
from judging.evaluators.providers.parameters import find_refused, instead_of
from judging.models import Endpoint
from judging.runs.warnings import is_same_model
from judging.strategies.replies.causes import describe_cause, explain_cut
from judging.strategies.replies.outputs import FINISH_CAUSES

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CHECK_ADDRESS = (
    "Check the address: it must be the base URL of the API with its version, such as "
    "https://host/v1, not that of a web page. Check also whether the server works, then test again."
)
SET_PARAMETERS = (
    "Set that in the parameters of this endpoint, or add another endpoint if runs use this one."
)
# How many test calls of an endpoint are made in an hour of the clock: they cost money, and no cap
# counts them. Without Redis, each server process counts its own.
MOST_TRIALS = 60
_HOUR = 60 * 60
# The maximum number of threads serving pages that may wait for evaluators at the same time.
_slots = threading.BoundedSemaphore(2)


@dataclass(frozen=True)
class _TrialPrompt:
    system: str = "This is a test of the connection."
    user: str = 'Answer with this JSON and nothing else: {"answer": "ready"}'
    parts: Mapping[str, Any] = field(
        default_factory=lambda: {"metric": "length", "response": "ready"}
    )


@dataclass(frozen=True)
class TrialResult:
    """The result of a test call: an answer, or a `problem` if there is none.

    `warnings` say why runs could not use an answer like this one, or what to check, and what to do.
    `text` is shortened, and the key is removed from it. `cost` is None if a price or a count is
    unknown.
    """

    problem: str = ""
    warnings: tuple[str, ...] = ()
    text: str = ""
    finish: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    thinking: str = ""
    seconds: float | None = None
    cost: Decimal | None = None


def run_trial(endpoint: Endpoint, now: datetime) -> TrialResult:
    """Make one call with the endpoint's own parameters, at most `MOST_TRIALS` in an hour. A failed
    call is not retried, and the reply is not stored.
    """
    if endpoint.is_paused(now):
        until = f"{endpoint.paused_until:%H:%M:%S}"
        return TrialResult(f"The provider asked for no calls before {until} UTC. Wait until then.")
    if not _slots.acquire(blocking=False):
        return TrialResult("Other tests are running. Try again in a moment.")
    try:
        key = read_key(endpoint.key_variable)
        body = build_body(endpoint.pinned(), _TrialPrompt(), schema=SCHEMA)
        if count_in_window(f"trials:{endpoint.pk}", _HOUR) > MOST_TRIALS:
            return TrialResult(
                f"This endpoint was tested {MOST_TRIALS} times in this hour. Try again in the next "
                "one, or start a small run."
            )
        answer = asyncio.run(_call_endpoint(endpoint, key, body))
    except Rejected as error:
        return TrialResult(f"{error}{_remedy(endpoint, str(error))}")
    except BrokenReply as error:
        return TrialResult(f"{str(error).rstrip('.')}. {CHECK_ADDRESS}")
    except (EvaluatorError, ValueError) as error:
        return TrialResult(str(error))
    finally:
        _slots.release()
    endpoint.note_remaining(answer.remaining, now)
    return _build_result(endpoint, answer, key)


def _remedy(endpoint: Endpoint, words: str) -> str:
    """Return advice on what to do if the evaluator refused one of our parameters."""
    sent = merge_defaults(endpoint.pinned())
    name = find_refused(words, sent)
    if instead := instead_of(words, name):
        return f" Set the parameters {json.dumps({name: None, instead: sent[name]})}."
    return f' Set the parameters {{"{name}": null}} to ask without it.' if name else ""


async def _call_endpoint(endpoint: Endpoint, key: str, body: bytes) -> Answer:
    target = Target(endpoint.address, key, endpoint.timeout)
    async with connect(settings.EVALUATOR_HOSTS) as session:
        return await PROVIDERS[endpoint.provider].ask(session, target, body)


def _build_result(endpoint: Endpoint, answer: Answer, key: str) -> TrialResult:
    model = redact_message(answer.model, (key,))
    return TrialResult(
        warnings=tuple(_list_warnings(endpoint.model, answer, model)),
        text=redact_message(answer.text, (key,)),
        finish=answer.finish,
        model=model,
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        tokens_cached=answer.tokens_cached,
        tokens_reasoning=answer.tokens_reasoning,
        thinking=redact_message(answer.thinking, (key,)),
        seconds=answer.seconds,
        cost=compute_cost(endpoint.prices(), answer),
    )


def _list_warnings(asked: str, answer: Answer, answered_by: str) -> Iterator[str]:
    """Why runs could not use such an answer, and whether another model gave it."""
    if cut := explain_cut(answer):
        yield f"{cut} {SET_PARAMETERS}"
    elif cause := FINISH_CAUSES.get(answer.finish):
        yield (
            f"Runs cannot use such a reply: {describe_cause(cause)}. Test again; if it stays so, "
            "check the model and the parameters of the endpoint."
        )
    elif not answer.text.strip() and answer.thinking.strip():
        yield (
            "The model thought, but wrote no reply. Ask with less thinking (such as a lower "
            f"reasoning effort). {SET_PARAMETERS}"
        )
    elif not answer.text.strip():
        yield (
            "The reply is empty. Test again; if it stays so, check the model, the template and the "
            "JSON setting of the endpoint."
        )
    if answered_by and not is_same_model(asked, answered_by):
        yield (
            f"“{asked}” was asked, but the reply names the model “{answered_by}”. If “{asked}” is "
            "an alias of your gateway for that model, this is as it should be. Otherwise check the "
            "model of the endpoint and the routes of the gateway or server."
        )
