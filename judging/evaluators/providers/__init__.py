"""Providers of evaluators. Only this package makes HTTP calls; it uses neither Django nor the
database.

A provider is a module in this folder that defines the names in `Provider`. Adding the file adds the
provider to the forms, the API and the tests.
"""

import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import aiohttp

from judging.evaluators.providers import never_called, openai_compatible
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
    "callable_providers",
    "connect",
    "merge_defaults",
    "parse_retry_after",
    "provider_choices",
]


class Provider(Protocol):
    """The interface of a provider module.

    `body` returns the exact bytes to send, equal for equal input, and raises ValueError for what
    cannot be sent. Even if a protocol has the model in the address, the bytes contain it. `schema`
    is the JSON schema of the answer; it is used only with a `json_mode`. `ask` sends the bytes once
    and returns the answer or raises an EvaluatorError; it needs no session if the provider is
    `offline`. `title` is the provider's name on pages. `is_evaluator` is false if the replies are
    not judgements: annotators may see them before they label.
    """

    @property
    def title(self) -> str: ...

    @property
    def offline(self) -> bool: ...

    @property
    def is_evaluator(self) -> bool: ...

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


NEVER_CALLED: dict[str, Provider] = {
    "recorded": never_called.RECORDED,
    "derived": never_called.DERIVED,
}


def find_providers(folder: Iterable[str] = __path__) -> dict[str, Provider]:
    """The provider modules of a folder by name. A provider module has a title."""
    names = sorted(found.name for found in pkgutil.iter_modules(folder))
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    return {name: cast(Provider, one) for name, one in modules.items() if hasattr(one, "title")}


PROVIDERS: dict[str, Provider] = find_providers() | NEVER_CALLED


def provider_choices() -> list[tuple[str, str]]:
    """All providers, name and title."""
    return [(name, provider.title) for name, provider in PROVIDERS.items()]


def callable_providers() -> list[str]:
    """The providers for which people set up endpoints. The others need no network: their endpoints
    come with imports or with Blindspot itself."""
    return [name for name, provider in PROVIDERS.items() if not provider.offline]


def build_body(
    pinned: Mapping[str, Any], prompt: Prompt, *, schema: Mapping[str, Any] | None = None
) -> bytes:
    """The body of a request with the endpoint settings that a run pins.

    Older pins lack `api`, `template` and `json_mode`; then the request is a chat with text answers.
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
