"""How evaluators are called. The only code that talks HTTP; knows neither Django nor the database.

A provider is a module with the names of `Provider`. To add one: the module, and its line in
PROVIDERS.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import aiohttp

from judging.evaluators.providers import (
    anthropic,
    baseline,
    gemini,
    never_called,
    openai_compatible,
)
from judging.evaluators.providers.answers import Answer, Finish, Prompt, Target
from judging.evaluators.providers.transport import connect
from judging.evaluators.retries import parse_retry_after

__all__ = [
    "PROVIDERS",
    "Answer",
    "Finish",
    "Prompt",
    "Provider",
    "Target",
    "build_body",
    "connect",
    "merge_defaults",
    "parse_retry_after",
]


class Provider(Protocol):
    """What every provider module offers.

    `body` gives the exact bytes that are sent (a protocol that names the model in its address has
    it in them besides), equal for equal input, and raises ValueError for what cannot be sent.
    `schema` is the JSON schema of the answer; it is used where a `json_mode` is set. `ask` sends
    them once and returns the answer or raises an EvaluatorError; it needs no session if the
    provider is `offline`.
    """

    @property
    def offline(self) -> bool: ...

    @property
    def default_parameters(self) -> Mapping[str, Any]: ...

    def body(
        self,
        *,
        model: str,
        parameters: Mapping[str, Any],
        prompt: Prompt,
        schema: Mapping[str, Any] | None = None,
        api: str = "chat",
        template: str = "",
        json_mode: str = "",
    ) -> bytes: ...

    async def ask(
        self, session: aiohttp.ClientSession | None, target: Target, body: bytes
    ) -> Answer: ...


PROVIDERS: dict[str, Provider] = {
    "openai_compatible": openai_compatible,
    "anthropic": anthropic,
    "gemini": gemini,
    "baseline": baseline,
    "recorded": never_called.RECORDED,
    "derived": never_called.DERIVED,
}


def build_body(
    pinned: Mapping[str, Any], prompt: Prompt, *, schema: Mapping[str, Any] | None = None
) -> bytes:
    """The body of a request under what a run pins of its endpoint.

    Older pins do not say `api`, `template` and `json_mode`, and mean a chat that answers as text.
    """
    return PROVIDERS[pinned["provider"]].body(
        model=pinned["model"],
        parameters=pinned["parameters"],
        prompt=prompt,
        schema=schema,
        api=pinned.get("api", "chat"),
        template=pinned.get("template", ""),
        json_mode=pinned.get("json_mode", ""),
    )


def merge_defaults(pinned: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent under these pins, defaults of the provider included."""
    is_completion = pinned.get("api", "chat") == "completions"
    provider = PROVIDERS[pinned["provider"]]
    defaults = (
        openai_compatible.completion_parameters if is_completion else provider.default_parameters
    )
    chosen = {**defaults, **pinned["parameters"]}
    return {name: value for name, value in chosen.items() if value is not None}
