"""What a run pins as JSON beside its endpoint, and how it is read again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judging.strategies import Metric, Scale, Strategy, with_metrics


def of_metrics(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
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


def strategy(asked: Strategy, pinned: Mapping[str, Any]) -> Strategy:
    """A strategy with what a run pins of it: metrics of the task type, and the parser in use."""
    if "metrics" in pinned:
        decides = pinned.get("decides", "")
        asked = with_metrics(asked, _metrics(pinned["metrics"]), decides=decides)
    return replace(asked, parser=pinned["parser"]) if "parser" in pinned else asked


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
