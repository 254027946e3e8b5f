"""Strategies: how an evaluator is asked. Each strategy is one TOML file, loaded here.

A strategy defines which texts are shown (frame), what the evaluator returns (output, scale,
verdicts or metrics), and the prompt. A baseline names a metric and has no prompt. The files are in
this folder.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from annotation.items.taxonomy import Taxonomy
from judging.strategies.definitions import (
    FRAMES_OF_METRIC,
    METRICS,
    OUTPUT_OF_FRAME,
    from_definition,
)
from judging.strategies.schema import (
    NEEDED_PLACEHOLDERS,
    TOTAL,
    VERDICTS,
    Axis,
    Metric,
    Scale,
    Step,
    Strategy,
    StrategyError,
    fill_template,
)

__all__ = [
    "FRAMES_OF_METRIC",
    "METRICS",
    "NEEDED_PLACEHOLDERS",
    "OUTPUT_OF_FRAME",
    "TOTAL",
    "VERDICTS",
    "Axis",
    "Metric",
    "Scale",
    "Step",
    "Strategy",
    "StrategyError",
    "compute_digest",
    "fill_template",
    "from_definition",
    "list_item_axes",
    "load",
    "load_all",
    "read_source",
    "with_metrics",
]

FOLDER = Path(__file__).parent


def load_all() -> dict[str, Strategy]:
    """Return all strategies in the folder as a mapping by slug, sorted.

    The files are read once. Raises StrategyError for the first invalid file.
    """
    return dict(_read_folder())


@cache
def _read_folder() -> dict[str, Strategy]:
    paths = sorted(FOLDER.glob("*.toml"), key=lambda path: path.stem)
    return {path.stem: load(path) for path in paths}


def load(path: Path) -> Strategy:
    """Read the strategy in a TOML file; the name of the file must be the slug of the strategy."""
    try:
        definition = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StrategyError(path.name, "file", f"is not TOML in UTF-8: {error}") from error
    strategy = from_definition(definition, source=path.name)
    if strategy.slug != path.stem:
        raise StrategyError(path.name, "slug", f"make it {path.stem!r}, or rename the file")
    return strategy


def read_source(slug: str) -> str:
    """Return the text of a strategy's file; raises KeyError for an unknown slug."""
    if slug not in _read_folder():
        raise KeyError(slug)
    return (FOLDER / f"{slug}.toml").read_text(encoding="utf-8")


def list_item_axes(
    strategy: Strategy, ability: str, source_ability: str, categories: Taxonomy
) -> list[tuple[str, bool]]:
    """Return the axes along which an item is judged, as pairs: the slug, and True if the axis
    decides the outcome of the item.

    For a strategy without axes the result is [("", True)]. The axis decides that the strategy, or
    else the project's categories, name for the item's ability. If there is none, as with
    score-invariant items, it is the axis of the source ability. If that has none either, the first
    axis decides the items of an ability of the project; other items have no deciding axis, unless
    there is only one axis.
    """
    if not strategy.axes:
        return [("", True)]
    there = {axis.slug for axis in strategy.axes}
    known = {one.slug: one.axis for one in categories.abilities if one.axis in there}
    known |= {name: axis.slug for axis in strategy.axes for name in axis.abilities}
    main = known.get(ability) or known.get(source_ability)
    if main is None and (len(there) == 1 or ability in categories.ability_names()):
        main = strategy.axes[0].slug
    return [(axis.slug, axis.slug == main) for axis in strategy.axes]


def with_metrics(strategy: Strategy, metrics: Sequence[Metric], *, decides: str = "") -> Strategy:
    """Return the strategy with the metrics of a task type filled in, if it uses them.

    `decides` is the deciding field of the task type; it is used if the strategy names no deciding
    metric. Raises StrategyError if there are no metrics, or if the deciding metric is not among
    them.
    """
    if strategy.metrics_from != "task":
        return strategy
    slugs = {metric.slug for metric in metrics}
    if not slugs:
        remedy = "the task type has no scales or points; choose another strategy"
        raise StrategyError(strategy.slug, "metrics_from", remedy)
    if strategy.decides and strategy.decides not in slugs | {TOTAL}:
        raise StrategyError(strategy.slug, "decides", f"use one of {', '.join(sorted(slugs))}")
    usual = decides if decides in slugs | {TOTAL} else ""
    return replace(strategy, metrics=tuple(metrics), decides=strategy.decides or usual)


def compute_digest(value: Any) -> str:
    """SHA-256, in hex, of `value` as canonical JSON: keys sorted, no spaces, ASCII.

    1 and 1.0 have different digests, since requests with them differ. Raises TypeError or
    ValueError for values that JSON cannot represent: NaN, dates, bytes, and keys that are not
    strings.
    """
    return hashlib.sha256(dump_canonical(value).encode("ascii")).hexdigest()


def dump_canonical(value: Any) -> str:
    """Return the canonical JSON that `compute_digest` hashes; raises the same errors."""
    _refuse_odd_keys(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _refuse_odd_keys(value: Any) -> None:
    """Raise TypeError for keys that are not strings: json.dumps turns the key 1 into "1", so that
    two different values would have the same digest.
    """
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("only an object whose keys are all strings has a digest")
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for part in value:
        _refuse_odd_keys(part)
