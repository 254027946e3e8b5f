"""The tables inside a definition: scale, axes, metrics and steps. Each is read and checked here."""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from judging.strategies.placeholders import RESERVED_NAMES
from judging.strategies.schema import Axis, Metric, Scale, Step, StrategyError

AXES_FILE = Path(__file__).parent / "shared" / "axes.toml"
STEP_OUTPUTS = ("text", "scores", "score", "detection", "flag")

_SLUG = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KINDS: dict[type, str] = {
    str: "a string", bool: "true or false", dict: "a table", list: "a list", int: "a whole number"
}  # fmt: skip


def require(holds: bool, source: str, key: str, remedy: str) -> None:
    """Raise StrategyError unless it holds."""
    if not holds:
        raise StrategyError(source, key, remedy)


def is_of_type(value: Any, kind: type | tuple[type, ...]) -> bool:
    """isinstance, but true and false are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def format_type(kind: type | tuple[type, ...]) -> str:
    return "a number" if isinstance(kind, tuple) else _KINDS[kind]


def format_names(names: Iterable[str]) -> str:
    return ", ".join(names)


def read_scale(table: Mapping[str, Any], source: str, key: str = "scale") -> Scale:
    right = {"low", "high"} <= table.keys() <= {"low", "high", "step"}
    require(right, source, key, "give low and high, and step unless any value goes")
    for name, number in table.items():
        right = is_of_type(number, (int, float)) and math.isfinite(number)
        require(right, source, f"{key}.{name}", "write a finite number")
    scale = Scale(**table)
    require(scale.low < scale.high, source, f"{key}.high", "make it greater than low")
    if scale.step is not None:
        right = scale.step > 0 and scale.admits(scale.high)
        require(right, source, f"{key}.step", "use a positive step that leads to high")
    return scale


def resolve_axes(entries: Sequence[Any], scale: Scale | None, source: str) -> list[dict[str, Any]]:
    """Entries of `axes` as tables: a name stands for an axis of axes.toml.

    A definition keeps the tables, so that an edited axes.toml changes no stored strategy. Of the
    rubrics there it takes the one of `scale`, and none without a scale.
    """
    known, found = _load_shipped_axes(), []
    for number, entry in enumerate(entries):
        if isinstance(entry, str):
            require(entry in known, source, f"axes.{number}", f"use one of {format_names(known)}")
            entry = _with_points(known[entry], scale)
        require(isinstance(entry, dict), source, f"axes.{number}", "write a name or a table")
        found.append(dict(entry))
    return found


def _with_points(shipped: Mapping[str, Any], scale: Scale | None) -> dict[str, Any]:
    kept = {key: value for key, value in shipped.items() if key != "rubrics"}
    name = f"{scale.low:g}-{scale.high:g}" if scale else ""
    points = shipped["rubrics"].get(name)
    return kept | ({"points": points} if points else {})


@cache
def _load_shipped_axes() -> dict[str, dict[str, Any]]:
    declared = tomllib.loads(AXES_FILE.read_text(encoding="utf-8"))
    return {entry["slug"]: entry for entry in declared["axis"]}


def read_axes(entries: Sequence[Mapping[str, Any]], source: str) -> tuple[Axis, ...]:
    """The axes of resolved entries."""
    made = tuple(_axis(one, source, f"axes.{number}") for number, one in enumerate(entries))
    _need_distinct([axis.slug for axis in made], source, "axes")
    decided = [ability for axis in made for ability in axis.abilities]
    _need_distinct(decided, source, "axes", "let one axis decide an ability")
    return made


def _axis(entry: Mapping[str, Any], source: str, key: str) -> Axis:
    _need_keys(entry, {"slug", "title", "text"}, {"abilities", "points"}, source, key)
    abilities = entry.get("abilities", [])
    right = isinstance(abilities, list) and all(isinstance(one, str) for one in abilities)
    require(right, source, f"{key}.abilities", "list slugs of abilities")
    points = _points(entry.get("points", {}), source, f"{key}.points")
    return Axis(
        slug=_slug(entry, source, key),
        title=_sentence(entry, "title", source, key),
        text=_sentence(entry, "text", source, key),
        abilities=tuple(abilities),
        points=points,
    )


def read_metrics(entries: Sequence[Any], source: str) -> tuple[Metric, ...]:
    made = tuple(_metric(one, source, f"metrics.{number}") for number, one in enumerate(entries))
    _need_distinct([metric.slug for metric in made], source, "metrics")
    return made


def _metric(entry: Any, source: str, key: str) -> Metric:
    require(isinstance(entry, dict), source, key, "write a table")
    _need_keys(entry, {"slug", "title", "text"}, {"scale", "points"}, source, key)
    points = _points(entry.get("points", {}), source, f"{key}.points")
    slug = _slug(entry, source, key)
    require(
        slug not in {"total", "explanation", "scores"}, source, f"{key}.slug", "take another name"
    )
    if "scale" in entry:
        require(isinstance(entry["scale"], dict), source, f"{key}.scale", "write a table")
        scale = read_scale(entry["scale"], source, f"{key}.scale")
        right = all(scale.admits(value) for value in points)
        require(right, source, f"{key}.points", "name values of the scale only")
    else:
        require(len(points) > 1, source, key, "give it a scale, or points for two values or more")
        scale = infer_scale(points)
    return Metric(
        slug=slug,
        title=_sentence(entry, "title", source, key),
        text=_sentence(entry, "text", source, key),
        scale=scale,
        points=points,
    )


def infer_scale(points: Iterable[float]) -> Scale:
    """The scale whose values these are; without a step if they stand unevenly."""
    values = sorted(points)
    gaps = {round(after - before, 9) for before, after in pairwise(values)}
    return Scale(values[0], values[-1], gaps.pop() if len(gaps) == 1 else None)


def read_steps(entries: Sequence[Any], output: str, system: str, source: str) -> tuple[Step, ...]:
    """The questions of a chain; the last has the output of the strategy, the others any."""
    made = tuple(
        _step(one, system, source, f"steps.{number}") for number, one in enumerate(entries)
    )
    require(len(made) != 1, source, "steps", "a chain has two steps or more, else write a prompt")
    _need_distinct([step.name for step in made], source, "steps")
    if made:
        right = made[-1].output == output
        require(right, source, f"steps.{len(made) - 1}.output", f"make the last one {output!r}")
    return made


def _step(entry: Any, system: str, source: str, key: str) -> Step:
    require(isinstance(entry, dict), source, key, "write a table")
    _need_keys(entry, {"name", "prompt", "output"}, {"system"}, source, key)
    for name in entry:
        require(isinstance(entry[name], str), source, f"{key}.{name}", "write a string")
    right = _NAME.fullmatch(entry["name"]) is not None and entry["name"] not in RESERVED_NAMES
    require(right, source, f"{key}.name", "use small letters, and no name of a placeholder")
    right = entry["output"] in STEP_OUTPUTS
    require(right, source, f"{key}.output", f"use one of {format_names(STEP_OUTPUTS)}")
    return Step(
        name=entry["name"],
        system=entry.get("system", system).strip(),
        prompt=entry["prompt"].strip(),
        output=entry["output"],
    )


def _points(table: Any, source: str, key: str) -> dict[float, str]:
    """A sentence for each value; keys are strings, since TOML and JSON know no others."""
    require(isinstance(table, dict), source, key, 'write a table such as { "1" = "wrong" }')
    points: dict[float, str] = {}
    for name, sentence in table.items():
        value = _parse_number(name)
        require(value is not None, source, f"{key}.{name}", "name each point by its number")
        require(_is_plain(sentence), source, f"{key}.{name}", "write a sentence without {{")
        points[value if value is not None else 0.0] = sentence.strip()
    return points


def _parse_number(name: str) -> float | None:
    try:
        value = float(name)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _need_keys(
    entry: Mapping[str, Any], needed: set[str], more: set[str], source: str, key: str
) -> None:
    for name in needed - entry.keys():
        require(False, source, f"{key}.{name}", "is missing, add it")
    for name in entry:
        right = name in needed | more
        require(
            right, source, f"{key}.{name}", f"unknown key, use one of {format_names(needed | more)}"
        )


def _need_distinct(
    names: Sequence[str], source: str, key: str, remedy: str = "give each its own name"
) -> None:
    require(len(set(names)) == len(names), source, key, remedy)


def _slug(entry: Mapping[str, Any], source: str, key: str) -> str:
    slug = entry["slug"]
    right = isinstance(slug, str) and len(slug) <= 40 and _SLUG.fullmatch(slug) is not None
    require(right, source, f"{key}.slug", "use at most 40 small letters, digits, single - or _")
    return str(slug)


def _sentence(entry: Mapping[str, Any], name: str, source: str, key: str) -> str:
    require(_is_plain(entry[name]), source, f"{key}.{name}", "write a text without {{")
    return str(entry[name]).strip()


def _is_plain(text: Any) -> bool:
    return isinstance(text, str) and text.strip() != "" and "{{" not in text
