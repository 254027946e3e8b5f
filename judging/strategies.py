"""How an evaluator is asked: one TOML file a strategy, read and checked here.

A strategy says which texts are shown (frame), what comes back (output, scale or verdicts), and
in which words it is asked for. A baseline names a metric and has no words. The files stand in
the folder of the same name; that folder must stay without an `__init__.py`, so that this module
is what `import judging.strategies` finds.
"""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_suffix("")

# frame -> the names that its prompt must hold
PLACEHOLDERS: dict[str, frozenset[str]] = {
    "single": frozenset({"question", "response"}),
    "pair": frozenset({"question", "first", "second"}),
    "reference": frozenset({"question", "response", "reference"}),
}
OUTPUT_OF_FRAME = {"single": "score", "pair": "verdict", "reference": "score"}
VERDICTS = ("A", "B", "both good", "both unacceptable")
# metric -> the frames that show it what it measures; ROUGE-L without a reference would say 0
FRAMES_OF_METRIC = {
    "rouge-l": ("reference",),
    "rouge-l-unicode": ("reference",),
    "length": ("single",),
}
METRICS = tuple(FRAMES_OF_METRIC)

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

# key -> what its value must be, and whether it must be there
_KEYS: dict[str, tuple[type | tuple[type, ...], bool]] = {
    "slug": (str, True),
    "title": (str, True),
    "study": (str, True),
    "frame": (str, True),
    "output": (str, True),
    "explanation": (bool, True),
    "system": (str, False),
    "prompt": (str, False),
    "metric": (str, False),
    "scale": (dict, False),
    "top": ((int, float), False),
    "verdicts": (list, False),
}


class StrategyError(ValueError):
    """A definition that cannot be used; the text names the file, the key and the remedy."""

    def __init__(self, source: str, key: str, remedy: str) -> None:
        super().__init__(f"{source}: {key}: {remedy}")
        self.source, self.key, self.remedy = source, key, remedy


@dataclass(frozen=True, slots=True)
class Scale:
    """The values a score may take: `low` to `high`, both included, `step` apart.

    `step` None is a continuous scale.
    """

    low: float
    high: float
    step: float | None = None

    def admits(self, value: float) -> bool:
        """Whether `value` is on the scale and on a step of it; never for NaN and infinities."""
        if not (math.isfinite(value) and self.low <= value <= self.high):
            return False
        if self.step is None:
            return True
        steps = (value - self.low) / self.step
        # steps such as 0.1 have no exact binary form
        return abs(steps - round(steps)) < 1e-9


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way to ask. `system` and `prompt` are "" for a baseline, `metric` "" for all others.

    `scale` is None for verdicts and for a metric without an upper end. `top` is the perfect
    score of a reference strategy, else None. `verdicts` are those offered to a pair strategy.
    `study` names where it comes from, "" if it is our own.
    """

    slug: str
    title: str
    study: str
    frame: str
    output: str
    explanation: bool
    system: str
    prompt: str
    metric: str
    scale: Scale | None
    top: float | None
    verdicts: tuple[str, ...]
    definition: dict[str, Any] = field(repr=False, hash=False)


def load_all() -> dict[str, Strategy]:
    """Every strategy in the folder by its slug, in the order of the slugs.

    The files are read once. Raises StrategyError for the first file that is not right.
    """
    return dict(_read_folder())


@cache
def _read_folder() -> dict[str, Strategy]:
    paths = sorted(FOLDER.glob("*.toml"), key=lambda path: path.stem)
    return {path.stem: load(path) for path in paths}


def load(path: Path) -> Strategy:
    """The strategy in one TOML file, which must be named after its slug."""
    try:
        definition = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StrategyError(path.name, "file", f"is not TOML in UTF-8: {error}") from error
    strategy = from_definition(definition, source=path.name)
    if strategy.slug != path.stem:
        raise StrategyError(path.name, "slug", f"make it {path.stem!r}, or rename the file")
    return strategy


def from_definition(definition: Mapping[str, Any], source: str = "definition") -> Strategy:
    """The strategy that a parsed TOML file describes; StrategyError if it describes none.

    `source` is what errors name: the file, or where else the definition was kept.
    """
    _check_keys(definition, source)
    _check_kind(definition, source)
    scale = _scale(definition, source)
    strategy = Strategy(
        slug=definition["slug"],
        title=definition["title"],
        study=definition["study"],
        frame=definition["frame"],
        output=definition["output"],
        explanation=definition["explanation"],
        system=definition.get("system", "").strip(),
        prompt=definition.get("prompt", "").strip(),
        metric=definition.get("metric", ""),
        scale=scale,
        top=_top(definition, scale, source),
        verdicts=_verdicts(definition, source),
        definition=dict(definition),
    )
    _check_words(strategy, source)
    return strategy


def digest(value: Any) -> str:
    """SHA-256, in hex, of `value` as canonical JSON: keys sorted, no spaces, ASCII.

    1 and 1.0 differ, as they do in a request. Raises TypeError or ValueError for what JSON
    cannot say: NaN, dates, bytes, and keys that are not strings.
    """
    _refuse_odd_keys(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def fill(template: str, values: Mapping[str, str]) -> str:
    """`template` with each {{name}} replaced, in one pass: inserted text is never expanded."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _refuse_odd_keys(value: Any) -> None:
    """json.dumps turns the key 1 into "1", which would give two values one digest."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("only an object whose keys are strings has a digest")
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for part in value:
        _refuse_odd_keys(part)


def _need(holds: bool, source: str, key: str, remedy: str) -> None:
    if not holds:
        raise StrategyError(source, key, remedy)


def _check_keys(definition: Mapping[str, Any], source: str) -> None:
    for key in definition:
        _need(key in _KEYS, source, key, f"unknown key, use one of {_list(_KEYS)}")
    for key, (kind, needed) in _KEYS.items():
        if key in definition:
            right = _is(definition[key], kind)
            _need(right, source, key, f"has the wrong type, write {_name(kind)}")
        else:
            _need(not needed, source, key, "is missing, add it")
    right = _SLUG.fullmatch(definition["slug"]) is not None
    _need(right, source, "slug", "use small letters, digits and single hyphens")


def _check_kind(definition: Mapping[str, Any], source: str) -> None:
    frame, metric = definition["frame"], definition.get("metric", "")
    _need(frame in PLACEHOLDERS, source, "frame", f"use one of {_list(PLACEHOLDERS)}")
    output = OUTPUT_OF_FRAME[frame]
    right = definition["output"] == output
    _need(right, source, "output", f"frame {frame!r} takes the output {output!r}")
    if metric:
        _need(metric in METRICS, source, "metric", f"use one of {_list(METRICS)}, or leave it out")
        frames = FRAMES_OF_METRIC[metric]
        _need(frame in frames, source, "metric", f"{metric} scores in the frame {_list(frames)}")


def _scale(definition: Mapping[str, Any], source: str) -> Scale | None:
    table = definition.get("scale")
    if definition["output"] != "score":
        _need(table is None, source, "scale", "only scores have a scale, leave it out")
    elif table is not None:
        return _scale_of(table, source)
    else:
        right = bool(definition.get("metric"))
        _need(right, source, "scale", "is missing, add low, high and step")
    return None


def _scale_of(table: Mapping[str, Any], source: str) -> Scale:
    right = {"low", "high"} <= table.keys() <= {"low", "high", "step"}
    _need(right, source, "scale", "give low and high, and step unless any value goes")
    for key, number in table.items():
        right = _is(number, (int, float)) and math.isfinite(number)
        _need(right, source, f"scale.{key}", "write a finite number")
    scale = Scale(**table)
    _need(scale.low < scale.high, source, "scale.high", "make it greater than low")
    if scale.step is not None:
        right = scale.step > 0 and scale.admits(scale.high)
        _need(right, source, "scale.step", "use a positive step that leads to high")
    return scale


def _top(definition: Mapping[str, Any], scale: Scale | None, source: str) -> float | None:
    top: float | None = definition.get("top")
    if definition["frame"] != "reference":
        _need(top is None, source, "top", "only reference strategies have one, leave it out")
        return None
    if scale is None:
        raise StrategyError(source, "scale", "is missing, a reference strategy needs a top")
    _need(top == scale.high, source, "top", f"make it the high end of the scale, {scale.high}")
    return top


def _verdicts(definition: Mapping[str, Any], source: str) -> tuple[str, ...]:
    offered = definition.get("verdicts")
    if definition["output"] != "verdict":
        _need(offered is None, source, "verdicts", "only pairs have verdicts, leave them out")
        return ()
    remedy = f"list those offered: A, B, and any others of {_list(VERDICTS)}"
    known = [verdict for verdict in VERDICTS if verdict in (offered or [])]
    right = {"A", "B"} <= set(known) and len(known) == len(offered or [])
    _need(right, source, "verdicts", remedy)
    return tuple(offered or ())


def _check_words(strategy: Strategy, source: str) -> None:
    _need("{{" not in strategy.system, source, "system", "move its placeholders to prompt")
    if strategy.metric:
        worded = bool(strategy.system or strategy.prompt or strategy.explanation)
        _need(not worded, source, "metric", "takes no system, no prompt and no explanation")
    else:
        _need(strategy.prompt != "", source, "prompt", "is missing, write it, or name a metric")
        _check_placeholders(strategy, source)


def _check_placeholders(strategy: Strategy, source: str) -> None:
    expected = PLACEHOLDERS[strategy.frame]
    used = set(_PLACEHOLDER.findall(strategy.prompt))
    known = used <= expected and "{{" not in _PLACEHOLDER.sub("", strategy.prompt)
    _need(known, source, "prompt", f"unknown placeholder, use {_braced(expected)}")
    _need(expected <= used, source, "prompt", f"does not use {_braced(expected - used)}, add it")


def _braced(names: Iterable[str]) -> str:
    return _list("{{" + name + "}}" for name in sorted(names))


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """isinstance, but true and false are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _name(kind: type | tuple[type, ...]) -> str:
    names = {str: "a string", bool: "true or false", dict: "a table", list: "a list"}
    return "a number" if isinstance(kind, tuple) else names[kind]


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
