"""One call to an endpoint outside of runs: does it answer, how fast, at what cost?"""

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from judging.models import Endpoint
from judging.providers import PROVIDERS, Answer, Target, body_of, connect, parameters_of
from judging.providers.errors import EvaluatorError, Rejected, fit_to_show
from judging.providers.keys import key_from
from judging.providers.parameters import instead_of, refused
from judging.providers.prices import cost

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
# Of the threads that serve pages, so many may wait for evaluators.
_places = threading.BoundedSemaphore(2)


@dataclass(frozen=True)
class _Prompt:
    system: str = "This is a test of the connection."
    user: str = 'Answer with this JSON and nothing else: {"answer": "ready"}'
    parts: Mapping[str, Any] = field(
        default_factory=lambda: {"metric": "length", "response": "ready"}
    )


@dataclass(frozen=True)
class Tried:
    """What came of a test call: an answer, or in `problem` why there is none.

    `text` is cut short and free of the key. `cost` is None where a price or a count is unknown.
    """

    problem: str = ""
    text: str = ""
    finish: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float | None = None
    cost: Decimal | None = None


def ask(endpoint: Endpoint, now: datetime) -> Tried:
    """Ask once, with the endpoint's own parameters; nothing is tried again, no reply is stored."""
    if endpoint.is_paused(now):
        until = f"{endpoint.paused_until:%H:%M:%S}"
        return Tried(f"The evaluator asked not to be called before {until} UTC. Wait till then.")
    if not _places.acquire(blocking=False):
        return Tried("Others are testing endpoints just now. Try again in a moment.")
    try:
        key = key_from(endpoint.key_variable)
        body = body_of(endpoint.pinned(), _Prompt(), schema=SCHEMA)
        answer = asyncio.run(_asked(endpoint, key, body))
    except Rejected as error:
        return Tried(f"{error}{_remedy(endpoint, str(error))}")
    except (EvaluatorError, ValueError) as error:
        return Tried(str(error))
    finally:
        _places.release()
    endpoint.note_remaining(answer.remaining, now)
    return _said(endpoint, answer, key)


def _remedy(endpoint: Endpoint, words: str) -> str:
    """What to do where the evaluator refused one of our parameters."""
    sent = parameters_of(endpoint.pinned())
    name = refused(words, sent)
    if instead := instead_of(words, name):
        return f" Set the parameters {json.dumps({name: None, instead: sent[name]})}."
    return f' Set the parameters {{"{name}": null}} to ask without it.' if name else ""


async def _asked(endpoint: Endpoint, key: str, body: bytes) -> Answer:
    target = Target(endpoint.address, key, endpoint.timeout)
    async with connect(settings.EVALUATOR_HOSTS) as session:
        return await PROVIDERS[endpoint.provider].ask(session, target, body)


def _said(endpoint: Endpoint, answer: Answer, key: str) -> Tried:
    return Tried(
        text=fit_to_show(answer.text, (key,)),
        finish=answer.finish,
        model=fit_to_show(answer.model, (key,)),
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        seconds=answer.seconds,
        cost=cost(endpoint.prices(), answer.tokens_in, answer.tokens_out),
    )
