"""Which texts of an item an evaluator is shown, in how many calls, and as what prompt."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from judging.strategies import Strategy, fill

RENDERER = "render-1"


@dataclass(frozen=True, slots=True, order=True)
class CallSpec:
    """One call that an item needs: what it is for, and which order its texts stand in.

    `order` is 0 where there is only one; for a pair 1 shows gold first, 2 the perturbed answer.
    """

    role: str
    order: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: a system and a user text, both "" for a baseline, which takes the `parts`."""

    system: str
    user: str
    parts: dict[str, str] = field(default_factory=dict)


# frame -> call -> placeholder -> the item's text that goes there
FRAMES: dict[str, dict[CallSpec, dict[str, str]]] = {
    "single": {
        CallSpec("gold"): {"question": "prompt", "response": "gold"},
        CallSpec("perturbed"): {"question": "prompt", "response": "perturbed"},
    },
    "pair": {
        CallSpec("pair", 1): {"question": "prompt", "first": "gold", "second": "perturbed"},
        CallSpec("pair", 2): {"question": "prompt", "first": "perturbed", "second": "gold"},
    },
    "reference": {
        CallSpec("perturbed"): {
            "question": "prompt",
            "response": "perturbed",
            "reference": "gold",
        },
    },
}


def calls(frame: str) -> tuple[CallSpec, ...]:
    """The calls that one item needs in `frame`, in the order in which they are made."""
    return tuple(FRAMES[frame])


def render(strategy: Strategy, texts: Mapping[str, str], spec: CallSpec) -> Prompt:
    """The prompt of one call about an item with the texts `prompt`, `gold`, `perturbed`.

    It depends on nothing but the strategy and the texts that the call shows, so two items with
    the same prompt and gold share their gold prompt to the byte. Texts go in as they are. Raises
    ValueError for a call that is not of the strategy's frame, or a text that is not there.
    """
    values = _values(strategy, texts, spec)
    if strategy.metric:
        parts = {"metric": strategy.metric, "reference": "", **values}
        return Prompt(system="", user="", parts=parts)
    return Prompt(system=strategy.system, user=fill(strategy.prompt, values))


def _values(strategy: Strategy, texts: Mapping[str, str], spec: CallSpec) -> dict[str, str]:
    sources = FRAMES[strategy.frame].get(spec)
    if sources is None:
        raise ValueError(f"frame {strategy.frame!r} has no call {spec}")
    absent = [name for name in sources.values() if name not in texts]
    if absent:
        raise ValueError(f"call {spec} needs the text {absent[0]!r}, which the item lacks")
    return {placeholder: texts[name] for placeholder, name in sources.items()}
