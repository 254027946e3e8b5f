"""The run settings that are pinned as JSON next to the endpoint, and how to load them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from annotation.items import taxonomy
from judging.strategies import Metric, Scale, Strategy, draws, with_metrics
from judging.strategies.draws import Shares

OVERRIDES_KEY = "own"
# The key in a run's pins of its supplements, in order: the `parameters` that each changes, and
# `stopped` if it was cancelled.
SUPPLEMENTS_KEY = "supplements"
# The key in a run's pins of the seconds that its calls may take, if not those of its endpoint.
TIMEOUT_KEY = "timeout"
# The key in a run's pins of the random sample that its items are: the number of `items`, `of` how
# many they were drawn, and the `seed`. A run over the items of another run has its sample.
SAMPLE_KEY = "sample"
# Stands for the axis of each item's own ability, regardless of the names of the axes.
MAIN_AXIS = "main"
ALL_AXES = "all"


@dataclass(frozen=True)
class RunOverrides:
    """The settings of its strategy and endpoint that a run overrides; by default none.

    `parameters` override the parameters of both. `axes` are the axes to ask about: MAIN_AXIS stands
    for the axis of each item's ability, as study 000 asks, and is what None becomes if the strategy
    has axes; ALL_AXES stands for all. () is all axes too, as runs pin that were started before
    MAIN_AXIS was the default. `votes` is True if several samples are
    votes and False if they are repeats; `examples` is the number of few-shot examples shown. For
    both, None keeps the strategy's setting. `weights` are those of the members of a weighted vote,
    in the order of their run numbers. `guidance` are reviewers' remarks by item key, for
    generators that regenerate these items. With `unlabelled`, error detection and ROUGE-L of
    responses also judge items without a final label. `draws` are the shares of what a generator
    draws, by draw and option; other options of these draws get none, and draws that are left out
    keep the strategy's shares. `language` is the one that translations are made into.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[str, ...] | None = None
    votes: bool | None = None
    examples: int | None = None
    guidance: Mapping[str, str] = field(default_factory=dict)
    unlabelled: bool = False
    weights: tuple[float, ...] = ()
    draws: Shares = field(default_factory=dict)
    language: str = ""

    def pinned(self) -> dict[str, Any]:
        """The overrides in the form in which a run pins them; empty if there are none."""
        every = {
            "parameters": dict(self.parameters),
            "axes": list(self.axes or ()),
            "votes": self.votes,
            "examples": self.examples,
            "weights": list(self.weights),
            "guidance": dict(self.guidance),
            "unlabelled": self.unlabelled or None,
            "draws": {name: dict(shares) for name, shares in self.draws.items()},
            "language": self.language or None,
        }
        return {name: value for name, value in every.items() if value not in ({}, [], None)}


NO_OVERRIDES = RunOverrides()


def choose_axes(strategy: Strategy, own: RunOverrides) -> RunOverrides:
    """The overrides of a new run: if no axes were chosen, that of each item's ability."""
    if own.axes is not None:
        return own
    return replace(own, axes=(MAIN_AXIS,) if strategy.axes else ())


def describe_axes(strategy: Strategy, axes: Collection[str] | None) -> str:
    """The axes about which a run with these overrides asks, in words; "" without any."""
    titles = {one.slug: one.title for one in strategy.axes}
    if not titles:
        return ""
    if not axes or ALL_AXES in axes:
        return f"all axes ({len(titles)})"
    own = ["each item's own axis"] if MAIN_AXIS in axes else []
    return ", ".join([*own, *(title for slug, title in titles.items() if slug in axes)])


def load_overrides(pinned: Mapping[str, Any]) -> RunOverrides:
    """Load the overrides from a run's pins."""
    said = dict(pinned.get(OVERRIDES_KEY, {}))
    lists = {name: tuple(said.get(name, ())) for name in ("axes", "weights")}
    return RunOverrides(**{**said, **lists})


def list_stopped_supplements(pinned: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the supplements that were cancelled."""
    return [
        number
        for number, one in enumerate(pinned.get(SUPPLEMENTS_KEY, ()), 1)
        if one.get("stopped")
    ]


def serialize_metrics(metrics: Iterable[Metric]) -> list[dict[str, Any]]:
    """Convert metrics of a task type to the form in which a run pins them, so that later edits
    change no prompt."""
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
    """Build a strategy with the pinned settings of a run: metrics of the task type, categories of
    the project, overrides, and parser."""
    if "taxonomy" in pinned:
        asked = asked.with_categories(taxonomy.parse_definition(pinned["taxonomy"]))
    if "metrics" in pinned:
        decides = pinned.get("decides", "")
        asked = with_metrics(asked, _metrics(pinned["metrics"]), decides=decides)
    held = pinned.get(OVERRIDES_KEY, {})
    changes = {name: held[name] for name in ("votes", "examples", "language") if name in held}
    if "weights" in held:
        changes["weights"] = tuple(held["weights"])
    if "parser" in pinned:
        changes["parser"] = pinned["parser"]
    if "draws" in held:
        asked = draws.set_shares(asked, held["draws"])
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
