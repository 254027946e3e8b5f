"""How evaluators are called. The only code that talks HTTP; knows neither Django nor the database.

A provider is a module with the names of `Provider`. To add one: the module, and its line in
PROVIDERS.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import aiohttp

from judging.providers import baseline, openai_compatible
from judging.providers.answers import Answer, Finish, Prompt, Target
from judging.providers.retries import parse_retry_after
from judging.providers.transport import connect

__all__ = [
    "PROVIDERS",
    "Answer",
    "Finish",
    "Prompt",
    "Provider",
    "Target",
    "connect",
    "parse_retry_after",
]


class Provider(Protocol):
    """What every provider module offers.

    `body` gives the exact bytes that are sent, equal for equal input, and raises ValueError for
    what cannot be sent. `ask` sends them once and returns the answer or raises an
    EvaluatorError; it needs no session if the provider is `offline`.
    """

    @property
    def offline(self) -> bool: ...

    @property
    def default_parameters(self) -> Mapping[str, Any]: ...

    def body(self, *, model: str, parameters: Mapping[str, Any], prompt: Prompt) -> bytes: ...

    async def ask(
        self, session: aiohttp.ClientSession | None, target: Target, body: bytes
    ) -> Answer: ...


PROVIDERS: dict[str, Provider] = {
    "openai_compatible": openai_compatible,
    "baseline": baseline,
}
