"""Providers that are never called: their replies are imported, or their outcomes are combined from
other runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from judging.evaluators.providers.answers import Answer, Prompt, Target
from judging.evaluators.providers.errors import Rejected

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True)
class NeverCalledProvider:
    """A provider that refuses every call with the message `reason`."""

    title: str
    reason: str
    is_evaluator: bool
    offline: bool = True
    default_parameters: Mapping[str, Any] = field(default_factory=dict)

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
    ) -> bytes:
        """Always raises ValueError: there is nothing to send."""
        raise ValueError(self.reason)

    async def ask(
        self, session: "aiohttp.ClientSession | None", target: Target, body: bytes
    ) -> Answer:
        """Always raises Rejected: there is nothing to call."""
        raise Rejected(self.reason)


RECORDED = NeverCalledProvider(
    "Recorded (imported replies)", "Its replies are imported, so it cannot be called.", True
)
DERIVED = NeverCalledProvider(
    "Derived (votes and panels)", "It only combines other runs, so it cannot be called.", False
)
