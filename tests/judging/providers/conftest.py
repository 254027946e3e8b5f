import asyncio
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from judging.providers import PROVIDERS, Answer, Target, connect
from tests.services.scripted_evaluator import ScriptedEvaluator, running

PROMPT = "[BEGIN RESPONSE]\nSeven.\n[END RESPONSE]\n\nA whole number from 1 (bad) to 10: {}"


@dataclass(frozen=True)
class Text:
    """A rendered prompt as providers see it."""

    system: str = "You examine answers."
    user: str = PROMPT.format('{"score": N}')
    parts: dict[str, Any] = field(default_factory=dict)


class Names(AbstractResolver):
    """A name server that may say something else each time."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=ip, port=port, family=family, proto=0, flags=0)
            for ip in self.answers.pop(0)
        ]

    async def close(self) -> None:
        self.answers.clear()


@pytest.fixture(scope="module")
def evaluator() -> Iterator[ScriptedEvaluator]:
    with running() as evaluator:
        yield evaluator


@pytest.fixture
def ask(evaluator: ScriptedEvaluator) -> Callable[..., Answer]:
    """Ask the scripted evaluator once, with the real client; the model's name says its faults."""
    provider = PROVIDERS["openai_compatible"]

    def ask_once(
        model: str = "scripted",
        *,
        key: str = "",
        timeout: float = 5.0,
        address: str = "",
        allowed_hosts: tuple[str, ...] = ("127.0.0.1",),
    ) -> Answer:
        async def once() -> Answer:
            async with connect(allowed_hosts) as session:
                target = Target(address or evaluator.address, key, timeout)
                body = provider.body(model=model, parameters={}, prompt=Text())
                return await provider.ask(session, target, body)

        return asyncio.run(once())

    return ask_once
