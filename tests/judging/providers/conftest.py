import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from judging.evaluators.providers import PROVIDERS, Answer, Target, connect
from tests.judging.providers.ways import WAYS
from tests.services.scripted_evaluator import Script, ScriptedEvaluator, running

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


KEY = "sk-test-4f1d/9b2e77aa0c31"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def put(evaluator: ScriptedEvaluator) -> Iterator[Callable[..., Answer]]:
    """Ask in one of the WAYS, while the evaluator follows a script of this fault."""

    def once(
        way: str,
        fault: str = "",
        *,
        timeout: float = 5.0,
        more: Mapping[str, Any] = MappingProxyType({}),
        **script: Any,
    ) -> Answer:
        evaluator.script = Script(faults={fault: ""} if fault else {}, **script)
        provider = PROVIDERS[WAYS[way].provider]
        said = {**WAYS[way].more, **more}
        body = provider.body(model="scripted", parameters={}, prompt=Text(), **said)
        address = WAYS[way].endpoint(evaluator)["address"]

        async def ask() -> Answer:
            async with connect(["127.0.0.1"]) as session:
                return await provider.ask(session, Target(address, KEY, timeout), body)

        return asyncio.run(ask())

    yield once
    evaluator.script = Script()
