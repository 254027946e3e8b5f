"""Providers of evaluators. Only this package makes HTTP calls; it uses neither Django nor the
database.

A provider is a module with the names of `Provider`. To add one, write the module and add it to
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
    """The interface of a provider module.

    `body` builds the exact bytes that are sent (if the protocol has the model in its address, the
    body contains it too). Equal input gives equal bytes; it raises ValueError for what cannot be
    sent. `schema` is the JSON schema of the answer; it is used if there is a `json_mode`. `ask`
    sends the body once and returns the answer or raises an EvaluatorError; it needs no session if
    the provider is `offline`.
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
    """The body of a request with the endpoint settings that a run pins.

    Older pins lack `api`, `template` and `json_mode`; they mean a chat with text answers.
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
    """The parameters sent with these pins, including the provider's defaults."""
    is_completion = pinned.get("api", "chat") == "completions"
    provider = PROVIDERS[pinned["provider"]]
    defaults = (
        openai_compatible.completion_parameters if is_completion else provider.default_parameters
    )
    chosen = {**defaults, **pinned["parameters"]}
    return {name: value for name, value in chosen.items() if value is not None}
