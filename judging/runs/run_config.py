"""What a run pins as JSON beside its endpoint, and how it is read again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judging.strategies import Metric, Scale, Strategy, with_metrics

OVERRIDES_KEY = "own"
# Along the axis of its ability alone is each item judged, whatever the names of the axes.
MAIN_AXIS = "main"


@dataclass(frozen=True)
class RunOverrides:
    """What a run has of its own, over what its strategy and endpoint say; by default nothing.

    `parameters` are laid over theirs. `axes` are those that are asked about, () for all; MAIN
    among them stands for the axis of each item's ability. `votes` says whether several samples
    are votes instead of repeats, and `examples` how many items are shown first; None leaves both
    to the strategy. `guidance` is what people said against items, by their keys, for generators
    that make them again.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[str, ...] = ()
    votes: bool | None = None
    examples: int | None = None
    guidance: Mapping[str, str] = field(default_factory=dict)

    def pinned(self) -> dict[str, Any]:
        """As a run keeps it; empty where nothing is the run's own."""
        every = {
            "parameters": dict(self.parameters),
            "axes": list(self.axes),
            "votes": self.votes,
            "examples": self.examples,
            "guidance": dict(self.guidance),
        }
        return {name: value for name, value in every.items() if value not in ({}, [], None)}


def load_overrides(pinned: Mapping[str, Any]) -> RunOverrides:
    """What a run has of its own, by what it pins."""
    said = dict(pinned.get(OVERRIDES_KEY, {}))
    return RunOverrides(**{**said, "axes": tuple(said.get("axes", ()))})


def serialize_metrics(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """Metrics of a task type as a run keeps them: one that is edited later changes no prompt."""
    return [
        {
            "slug": metric.slug,
            "title": metric.title,
            "text": metric.text,
            "scale": _scale(metric.scale),
            "points": {f"{value:g}": said for value, said in metric.points.items()},
        }
        for metric in metrics
    ]


def build_strategy(asked: Strategy, pinned: Mapping[str, Any]) -> Strategy:
    """A strategy with what a run pins of it: metrics of the task type, what is the run's own, and
    the parser in use."""
    if "metrics" in pinned:
        decides = pinned.get("decides", "")
        asked = with_metrics(asked, _metrics(pinned["metrics"]), decides=decides)
    held = pinned.get(OVERRIDES_KEY, {})
    changes = {name: held[name] for name in ("votes", "examples") if name in held}
    if "parser" in pinned:
        changes["parser"] = pinned["parser"]
    return replace(asked, **changes) if changes else asked


def _metrics(entries: Sequence[Mapping[str, Any]]) -> list[Metric]:
    return [
        Metric(
            slug=entry["slug"],
            title=entry["title"],
            text=entry["text"],
            scale=Scale(**entry["scale"]),
            points={float(value): said for value, said in entry["points"].items()},
        )
        for entry in entries
    ]


def _scale(scale: Scale) -> dict[str, Any]:
    return {"low": scale.low, "high": scale.high, "step": scale.step}
