"""The protocols by which tests ask; a provider that is called has one here."""

from dataclasses import dataclass, field
from typing import Any

from judging.evaluators.providers import callable_providers
from tests.services.scripted_evaluator import ScriptedEvaluator

TEMPLATE = "<s>[INST] {{prompt}} [/INST]"


@dataclass(frozen=True)
class Way:
    """A provider, and what an endpoint says beside model and parameters; `json_mode` is of
    endpoints alone."""

    provider: str
    more: dict[str, str] = field(default_factory=dict)
    json_mode: str = ""

    def endpoint(self, evaluator: ScriptedEvaluator) -> dict[str, Any]:
        """The values of an endpoint that asks this evaluator."""
        address = evaluator.gemini_address if self.provider == "gemini" else evaluator.address
        return {
            "address": address,
            "provider": self.provider,
            "json_mode": self.json_mode,
            **self.more,
        }


WAYS = {
    "chat": Way("openai_compatible", json_mode="json_object"),
    "completions": Way("openai_compatible", {"api": "completions", "template": TEMPLATE}),
    "anthropic": Way("anthropic", json_mode="json_schema"),
    "gemini": Way("gemini", json_mode="json_schema"),
}
assert {way.provider for way in WAYS.values()} == {*callable_providers()}, (
    "Add each provider here and its protocol to tests/services/scripted_protocols.py."
)
