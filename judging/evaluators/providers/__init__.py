"""Providers of evaluators. Only this package makes HTTP calls; it uses neither Django nor the
database.

A provider is a module in this folder that defines the names in `Provider`. A new module appears in
the forms, the API and the tests without further changes.
"""

import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from judging.evaluators.providers import never_called, openai_compatible
from judging.evaluators.providers.answers import Answer, Finish, Prompt, Target
from judging.evaluators.providers.transport import connect
from judging.evaluators.retries import parse_retry_after

if TYPE_CHECKING:
    import aiohttp

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
    "get_title",
    "merge_defaults",
    "parse_retry_after",
    "provider_choices",
]


class Provider(Protocol):
    """The interface of a provider module.

    `body` returns the exact bytes to send, the same bytes for the same input, and raises ValueError
    for input that cannot be sent. The bytes contain the model even if the protocol expects it in
    the address. `schema` is the JSON schema of the answer; it is used only with a `json_mode`.
    `ask` sends the bytes once and returns the answer or raises an EvaluatorError; it needs no
    session if the provider is `offline`: then it calls no network, and Blindspot or an import
    creates its endpoints, so that no form offers it. `title` is the provider's name on pages.
    `is_evaluator` is false if the replies are not judgements: annotators may see them before they
    label.
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
        self, session: "aiohttp.ClientSession | None", target: Target, body: bytes
    ) -> Answer: ...


NEVER_CALLED: dict[str, Provider] = {
    "recorded": never_called.RECORDED,
    "derived": never_called.DERIVED,
}


def find_providers(folder: Iterable[str] = __path__) -> dict[str, Provider]:
    """Return the provider modules of a folder by name. A module with a title is a provider."""
    names = sorted(found.name for found in pkgutil.iter_modules(folder))
    modules = {name: import_module(f"{__name__}.{name}") for name in names}
    return {name: cast(Provider, one) for name, one in modules.items() if hasattr(one, "title")}


PROVIDERS: dict[str, Provider] = find_providers() | NEVER_CALLED


def provider_choices() -> list[tuple[str, str]]:
    """Return the name and title of every provider."""
    return [(name, provider.title) for name, provider in PROVIDERS.items()]


def get_title(name: str) -> str:
    """Return the title of a provider; the name itself for one that is no longer there."""
    return PROVIDERS[name].title if name in PROVIDERS else name


def callable_providers() -> list[str]:
    """Return the providers for which people set up endpoints. All other providers need no network:
    their endpoints are created by imports or by Blindspot itself.
    """
    return [name for name, provider in PROVIDERS.items() if not provider.offline]


def build_body(
    pinned: Mapping[str, Any], prompt: Prompt, *, schema: Mapping[str, Any] | None = None
) -> bytes:
    """Build the body of a request from the endpoint settings that a run pins.

    Settings pinned by older runs lack `api`, `template` and `json_mode`; then the request is a chat
    that expects text.
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
    """Return the parameters that are sent with these pinned settings, including the provider's
    defaults.
    """
    is_completion = pinned.get("api", "chat") == "completions"
    provider = PROVIDERS[pinned["provider"]]
    defaults = (
        openai_compatible.completion_parameters if is_completion else provider.default_parameters
    )
    chosen = {**defaults, **pinned["parameters"]}
    return {name: value for name, value in chosen.items() if value is not None}
