"""Read the definition of a strategy. Errors in the definition are refused with a message that says
how to fix them.

The checks cover the placeholders that prompts must or may use, and the tables inside a definition:
scale, axes, metrics and steps.
"""

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from annotation.items import taxonomy
from judging.strategies import draws, markers, schema
from judging.strategies.schema import (
    FRAME_PLACEHOLDERS,
    RESERVED_NAMES,
    TOTAL,
    VERDICTS,
    Axis,
    Draw,
    DrawOption,
    Metric,
    Scale,
    Step,
    Strategy,
    StrategyError,
)


def check_prompts(strategy: Strategy, source: str) -> None:
    """Raise StrategyError for prompts that are missing, use unknown names, or lack required names.

    In a chain, a required name may be in any of the steps.
    """
    if strategy.metric or strategy.frame == "fold":
        _check_no_prompt(strategy, source)
        return
    if strategy.steps:
        require(strategy.prompt == "", source, "prompt", "leave it out; each step has its own")
    else:
        require(strategy.prompt != "", source, "prompt", "is missing; write it, or give a metric")
    needed, allowed = _names(strategy)
    used: set[str] = set()
    for number in range(strategy.last_step + 1):
        step, key = strategy.step(number), _key(strategy, number)
        require("{{" not in step.system, source, f"{key}system", "move its placeholders to prompt")
        # Other names of placeholders are never free, and {{rules}} is one only with rules.
        require(step.name not in allowed, source, f"{key}name", "use another name")
        earlier = {before.name for before in strategy.steps[:number]}
        _check_known(step.prompt, allowed | earlier, source, f"{key}prompt")
        used |= schema.find_names(step.prompt)
    missing = (needed | {step.name for step in strategy.steps[:-1]}) - used
    key = "steps" if strategy.steps else "prompt"
    require(not missing, source, key, f"does not use {_format_placeholders(missing)}; add it")


def list_warnings(strategy: Strategy) -> list[str]:
    """What the prompts of a strategy leave to their own wording, as sentences with the remedy."""
    if strategy.output != "scores" or not (strategy.metrics or strategy.metrics_from):
        return []
    used = set().union(
        *(schema.find_names(strategy.step(n).prompt) for n in range(strategy.last_step + 1))
    )
    warnings = []
    if "metrics" not in used:
        warnings.append(
            "The prompt does not use {{metrics}}, so its own wording must say what is scored. The "
            "metrics are not checked against it. Add {{metrics}} to show them."
        )
    if "form" not in used and not strategy.worded:
        names = format_names(metric.slug for metric in strategy.metrics) or "the metrics' names"
        warnings.append(
            "The prompt does not use {{form}}, so its own wording must ask for the answer: a JSON "
            f"object with the keys {names}, or each name with its number. Add {{{{form}}}} to ask "
            "for it."
        )
    return warnings


def shows_name(definition: Mapping[str, Any], name: str) -> bool:
    """True if any prompt of the definition shows {{name}}. The definition need not be valid yet."""
    steps = [step.get("prompt") for step in definition.get("steps", []) if isinstance(step, dict)]
    prompts = [definition.get("prompt"), *steps]
    return any(name in schema.find_names(one) for one in prompts if isinstance(one, str))


def _names(strategy: Strategy) -> tuple[frozenset[str], frozenset[str]]:
    """The names that the prompts must use, and all names that they may use."""
    needed, allowed = (
        set(FRAME_PLACEHOLDERS[strategy.frame].needed),
        set(FRAME_PLACEHOLDERS[strategy.frame].allowed),
    )
    if strategy.axes:
        needed.add("axis")
        if all(axis.points for axis in strategy.axes):
            allowed.add("rubric")
        if all(axis.rules for axis in strategy.axes):
            allowed.add("rules")
    if strategy.output == "scores":
        allowed |= {"metrics", "form"}
    if strategy.examples:
        needed.add("examples")
    needed |= {draw.name for draw in strategy.draws}
    return frozenset(needed), frozenset(needed | allowed)


def _check_known(prompt: str, allowed: Iterable[str], source: str, key: str) -> None:
    unknown = schema.find_names(prompt) - set(allowed)
    right = not unknown and not schema.has_malformed(prompt)
    named = _format_placeholders(unknown) or "{{"
    require(right, source, key, f"unknown placeholder {named}; use {_format_placeholders(allowed)}")


def _check_no_prompt(strategy: Strategy, source: str) -> None:
    worded = bool(
        strategy.system or strategy.prompt or strategy.explanation or strategy.steps
        or strategy.axes or strategy.examples or strategy.worded or strategy.parameters
    )  # fmt: skip
    what = "metric" if strategy.metric else "fold"
    require(not worded, source, what, "cannot have a system text, a prompt or an explanation")


def _key(strategy: Strategy, number: int) -> str:
    return f"steps.{number}." if strategy.steps else ""


def _format_placeholders(names: Iterable[str]) -> str:
    return format_names("{{" + name + "}}" for name in sorted(names))


AXES_FILE = Path(__file__).parent / "shared" / "axes.toml"
STEP_OUTPUTS = ("text", "scores", "score", "detection", "flag")

# Replies are read as numbers of at most 15 digits.
MAX_NUMBER = 10**15

_FREE_SLUG = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KINDS: dict[type, str] = {
    str: "a string", bool: "true or false", dict: "a table", list: "a list", int: "a whole number"
}  # fmt: skip


def require(holds: bool, source: str, key: str, remedy: str) -> None:
    """Raise StrategyError unless `holds` is true."""
    if not holds:
        raise StrategyError(source, key, remedy)


def is_of_type(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Work like isinstance, except that booleans do not count as numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def format_type(kind: type | tuple[type, ...]) -> str:
    """Describe the type in words for an error message; a tuple of types means a number."""
    return "a number" if isinstance(kind, tuple) else _KINDS[kind]


def format_names(names: Iterable[str]) -> str:
    """The names, separated by commas."""
    return ", ".join(names)


def read_scale(table: Mapping[str, Any], source: str, key: str = "scale") -> Scale:
    """The scale in a table of a strategy. Raises `StrategyError` unless low is below high and, if
    there is a step, the difference is a multiple of the step.
    """
    right = {"low", "high"} <= table.keys() <= {"low", "high", "step"}
    require(right, source, key, "give low, high and step; leave out step if any value is allowed")
    for name, number in table.items():
        right = is_of_type(number, (int, float)) and abs(number) <= MAX_NUMBER
        require(right, source, f"{key}.{name}", f"write a number of at most {MAX_NUMBER:,}")
    scale = Scale(**table)
    require(scale.low < scale.high, source, f"{key}.high", "make it greater than low")
    if scale.step is not None:
        right = scale.step > 0 and scale.admits(scale.high)
        require(right, source, f"{key}.step", "use a positive step that leads to high")
    return scale


def resolve_axes(
    entries: Sequence[Any], scale: Scale | None, source: str, *, with_rules: bool
) -> list[dict[str, Any]]:
    """Return the entries of `axes` as tables: a name is replaced by the axis with this name in
    axes.toml.

    The tables become part of the definition, so that editing axes.toml changes no stored strategy.
    Of the rubrics of an axis, only the rubric for `scale` is kept, and none without a scale. Its
    rules are kept `with_rules`.
    """
    known, found = _load_shipped_axes(), []
    for number, entry in enumerate(entries):
        if isinstance(entry, str):
            require(entry in known, source, f"axes.{number}", f"use one of {format_names(known)}")
            left_out = {"rubrics"} if with_rules else {"rubrics", "rules"}
            kept = {key: value for key, value in known[entry].items() if key not in left_out}
            entry = kept | _find_points(known[entry], scale)
        require(isinstance(entry, dict), source, f"axes.{number}", "write a name or a table")
        found.append(dict(entry))
    return found


def _find_points(shipped: Mapping[str, Any], scale: Scale | None) -> dict[str, Any]:
    name = f"{scale.low:g}-{scale.high:g}" if scale else ""
    points = shipped["rubrics"].get(name)
    return {"points": points} if points else {}


@cache
def _load_shipped_axes() -> dict[str, dict[str, Any]]:
    declared = tomllib.loads(AXES_FILE.read_text(encoding="utf-8"))
    return {entry["slug"]: entry for entry in declared["axis"]}


def read_axes(entries: Sequence[Mapping[str, Any]], source: str) -> tuple[Axis, ...]:
    """The axes of resolved entries."""
    made = tuple(_axis(one, source, f"axes.{number}") for number, one in enumerate(entries))
    _need_distinct([axis.slug for axis in made], source, "axes")
    decided = [ability for axis in made for ability in axis.abilities]
    _need_distinct(decided, source, "axes", "let only one axis decide an ability")
    return made


def _axis(entry: Mapping[str, Any], source: str, key: str) -> Axis:
    _need_keys(entry, {"slug", "title", "text"}, {"abilities", "points", "rules"}, source, key)
    abilities = entry.get("abilities", [])
    right = isinstance(abilities, list) and all(isinstance(one, str) for one in abilities)
    require(right, source, f"{key}.abilities", "list slugs of abilities")
    points = _points(entry.get("points", {}), source, f"{key}.points")
    rules = entry.get("rules", [])
    right = isinstance(rules, list) and all(map(_is_plain, rules))
    require(right, source, f"{key}.rules", "list sentences without {{")
    return Axis(
        slug=_slug(entry, source, key),
        title=_sentence(entry, "title", source, key),
        text=_sentence(entry, "text", source, key),
        abilities=tuple(abilities),
        points=points,
        rules=tuple(rule.strip() for rule in rules),
    )


def read_metrics(entries: Sequence[Any], source: str) -> tuple[Metric, ...]:
    """The metrics in a list of a strategy, in order. Raises `StrategyError` if the list is invalid
    or two metrics have the same slug.
    """
    made = tuple(_metric(one, source, f"metrics.{number}") for number, one in enumerate(entries))
    _need_distinct([metric.slug for metric in made], source, "metrics")
    return made


def _metric(entry: Any, source: str, key: str) -> Metric:
    require(isinstance(entry, dict), source, key, "write a table")
    _need_keys(entry, {"slug", "title", "text"}, {"scale", "points"}, source, key)
    points = _points(entry.get("points", {}), source, f"{key}.points")
    slug = _slug(entry, source, key)
    require(
        slug not in {"total", "explanation", "scores"}, source, f"{key}.slug", "use another name"
    )
    if "scale" in entry:
        require(isinstance(entry["scale"], dict), source, f"{key}.scale", "write a table")
        scale = read_scale(entry["scale"], source, f"{key}.scale")
        right = all(scale.admits(value) for value in points)
        require(right, source, f"{key}.points", "use only values of the scale")
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
    """Return the scale with these values. It has no step if they are not evenly spaced."""
    values = sorted(points)
    gaps = {round(after - before, 9) for before, after in pairwise(values)}
    return Scale(values[0], values[-1], gaps.pop() if len(gaps) == 1 else None)


def read_steps(entries: Sequence[Any], output: str, system: str, source: str) -> tuple[Step, ...]:
    """Read the steps of a chain. The last step has the output of the strategy; earlier steps may
    have any output.
    """
    made = tuple(
        _step(one, system, source, f"steps.{number}") for number, one in enumerate(entries)
    )
    require(
        len(made) != 1,
        source,
        "steps",
        "a chain needs two or more steps; for one step, write a prompt",
    )
    _need_distinct([step.name for step in made], source, "steps")
    if made:
        right = made[-1].output == output
        require(right, source, f"steps.{len(made) - 1}.output", f"the last step needs {output!r}")
    return made


def _step(entry: Any, system: str, source: str, key: str) -> Step:
    require(isinstance(entry, dict), source, key, "write a table")
    _need_keys(entry, {"name", "prompt", "output"}, {"system"}, source, key)
    for name in entry:
        require(isinstance(entry[name], str), source, f"{key}.{name}", "write a string")
    right = _NAME.fullmatch(entry["name"]) is not None and entry["name"] not in RESERVED_NAMES
    require(right, source, f"{key}.name", "use small letters, but not the name of a placeholder")
    right = entry["output"] in STEP_OUTPUTS
    require(right, source, f"{key}.output", f"use one of {format_names(STEP_OUTPUTS)}")
    return Step(
        name=entry["name"],
        system=entry.get("system", system).strip(),
        prompt=entry["prompt"].strip(),
        output=entry["output"],
    )


def read_draws(entries: Sequence[Any], source: str) -> tuple[Draw, ...]:
    """The draws in a list of a generator, in order. Raises `StrategyError` if the list is invalid,
    or if the shares of a draw do not come to its numbers of options."""
    made = tuple(_draw(one, source, f"draws.{number}") for number, one in enumerate(entries))
    _need_distinct([draw.name for draw in made], source, "draws")
    return made


def _draw(entry: Any, source: str, key: str) -> Draw:
    require(isinstance(entry, dict), source, key, "write a table")
    _need_keys(entry, {"name", "options"}, {"at_least", "at_most"}, source, key)
    name, options = entry["name"], entry["options"]
    right = isinstance(name, str) and _NAME.fullmatch(name) is not None
    right = right and name not in RESERVED_NAMES
    require(right, source, f"{key}.name", "use small letters, but not the name of a placeholder")
    right = isinstance(options, list) and 1 <= len(options) <= MAX_OPTIONS
    require(right, source, f"{key}.options", f"list 1 to {MAX_OPTIONS} options")
    found = tuple(
        _draw_option(one, source, f"{key}.options.{place}") for place, one in enumerate(options)
    )
    _need_distinct([option.name for option in found], source, f"{key}.options")
    least, most = entry.get("at_least", 1), entry.get("at_most", entry.get("at_least", 1))
    right = is_of_type(least, int) and is_of_type(most, int) and 1 <= least <= most <= len(found)
    require(right, source, f"{key}.at_most", "use 1 <= at_least <= at_most <= number of options")
    draw = Draw(name, found, least, most)
    problem = draws.explain_shares(draw)
    require(not problem, source, f"{key}.options", problem)
    return draw


def _draw_option(entry: Any, source: str, key: str) -> DrawOption:
    require(isinstance(entry, dict), source, key, "write a table")
    _need_keys(entry, {"name"}, {"text", "share", "value"}, source, key)
    name = entry["name"]
    right = isinstance(name, str) and len(name) <= 40 and _SLUG.fullmatch(name) is not None
    require(right, source, f"{key}.name", "use small letters, digits and single hyphens")
    text, value, share = entry.get("text", name), entry.get("value", ""), entry.get("share", 0)
    shown = {"value"} if value else set()
    right = isinstance(text, str) and text.strip() != "" and not schema.has_malformed(text)
    right = right and schema.find_names(text) == shown
    require(right, source, f"{key}.text", "write a text; {{value}} goes with the key value alone")
    right = value in ("", *draws.VALUES)
    require(right, source, f"{key}.value", f"use one of {format_names(draws.VALUES)}")
    right = is_of_type(share, (int, float)) and 0 <= share <= draws.MAX_SHARE
    require(right, source, f"{key}.share", "write a percentage of the items")
    return DrawOption(name, text.strip(), share, value)


def _points(table: Any, source: str, key: str) -> dict[float, str]:
    """Read the sentence for each value. The keys are strings, since TOML and JSON allow no other
    keys.
    """
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
        require(False, source, f"{key}.{name}", "is missing; add it")
    for name in entry:
        right = name in needed | more
        require(
            right, source, f"{key}.{name}", f"unknown key; use one of {format_names(needed | more)}"
        )


def _need_distinct(
    names: Sequence[str], source: str, key: str, remedy: str = "give each its own name"
) -> None:
    require(len(set(names)) == len(names), source, key, remedy)


def _slug(entry: Mapping[str, Any], source: str, key: str) -> str:
    slug = entry["slug"]
    right = isinstance(slug, str) and len(slug) <= 40 and _FREE_SLUG.fullmatch(slug) is not None
    require(right, source, f"{key}.slug", "use at most 40 small letters, digits, single - or _")
    return str(slug)


def _sentence(entry: Mapping[str, Any], name: str, source: str, key: str) -> str:
    require(_is_plain(entry[name]), source, f"{key}.{name}", "write a text without {{")
    return str(entry[name]).strip()


def _is_plain(text: Any) -> bool:
    return isinstance(text, str) and text.strip() != "" and "{{" not in text


OUTPUT_OF_FRAME = {
    "single": "score",
    "pair": "verdict",
    "reference": "score",
    "detection": "detection",
    "rating": "scores",
    "rubric": "scores",
    "matching": "score",
    "explanation": "flag",
    "fold": "fold",
    "answer": "answer",
    "perturbation": "perturbation",
    "input": "input",
    "sorting": "ability",
    "translation": "translation",
}
# metric -> the frames that show the texts it needs; without a reference, ROUGE-L would always be 0
FRAMES_OF_METRIC = {
    "rouge-l": ("reference", "matching"),
    "rouge-l-unicode": ("reference", "matching"),
    "string-match": ("matching",),
    "length": ("single",),
}
METRICS = tuple(FRAMES_OF_METRIC)
# the metrics of the table "overlap", which needs no label of an item
OVERLAP_METRICS = ("rouge-l", "rouge-l-unicode")
# output -> its parsers by name; "" is the default parser
PARSERS = {"detection": ("strict", "phrases-001")}
FOLDS = ("majority", "veto", "weighted", "mean")
MAX_SAMPLES, MAX_EXAMPLES = 100, 50
MAX_OPTIONS = 50
# Axes, metrics, steps or draws. Each axis is judged in each step.
MAX_LISTED = 100
WITH_DRAWS = ("perturbation", "input")
WITH_AXES = ("single", "pair", "reference")
WITH_EXAMPLES = ("detection", "rating", "rubric", "matching")

SECRET_NAME = re.compile(r"(?i)key|secret|password|authorization|\btoken\b")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

# key -> the type of its value, and whether it is required
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
    "axes": (list, False),
    "metrics": (list, False),
    "metrics_from": (str, False),
    "steps": (list, False),
    "samples": (int, False),
    "votes": (bool, False),
    "parameters": (dict, False),
    "examples": (int, False),
    "fold": (str, False),
    "parser": (str, False),
    "decides": (str, False),
    "about": (str, False),
    "worded": (bool, False),
    "category": (str, False),
    "needs_context": (bool, False),
    "draws": (list, False),
    "rewords": (bool, False),
    "markers": (bool, False),
    "guard": (bool, False),
}
# used unchanged after the checks
_PLAIN_KEYS = (
    "slug", "title", "study", "frame", "output", "explanation", "metric", "metrics_from",
    "samples", "votes", "parameters", "examples", "fold", "parser", "decides", "about", "worded",
    "category", "needs_context", "rewords", "markers", "guard",
)  # fmt: skip
_DEFAULTS = {"metric": ""}


def from_definition(definition: Mapping[str, Any], source: str = "definition") -> Strategy:
    """Build the strategy from a parsed TOML file; raises StrategyError if it is not valid.

    `source` is the name shown in error messages: the file, or another place where the definition is
    stored. Axes given by name are looked up, and the definition of the resulting strategy contains
    them in full.
    """
    _check_keys(definition, source)
    _check_kind(definition, source)
    _check_counts(definition, source)
    _check_parameters(definition.get("parameters", {}), source)
    scale = _scale(definition, source)
    definition = dict(definition)
    if "axes" in definition:
        shown = scale if shows_name(definition, "rubric") else None
        with_rules = shows_name(definition, "rules")
        definition["axes"] = resolve_axes(definition["axes"], shown, source, with_rules=with_rules)
    plain = {key: definition[key] for key in _PLAIN_KEYS if key in definition}
    right = plain.get("markers", True) or not plain.get("guard", True)
    require(right, source, "markers", "the sentence speaks of the markers; write guard = false too")
    worded = partial(
        markers.leave_out, markers=plain.get("markers", True), guard=plain.get("guard", True)
    )
    system = worded(definition.get("system", "")).strip()
    strategy = Strategy(
        **_DEFAULTS | plain,
        system=system,
        prompt=worded(definition.get("prompt", "")).strip(),
        scale=scale,
        top=_top(definition, scale, source),
        verdicts=_verdicts(definition, source),
        axes=read_axes(definition.get("axes", []), source),
        metrics=read_metrics(definition.get("metrics", []), source),
        steps=tuple(
            replace(step, system=worded(step.system), prompt=worded(step.prompt))
            for step in read_steps(
                definition.get("steps", []), definition["output"], system, source
            )
        ),
        draws=read_draws(definition.get("draws", []), source),
        definition=definition,
    )
    _check_parts(strategy, source)
    check_prompts(strategy, source)
    return strategy.with_categories(taxonomy.load_shipped())


def _check_keys(definition: Mapping[str, Any], source: str) -> None:
    for key in definition:
        require(key in _KEYS, source, key, f"unknown key; use one of {format_names(_KEYS)}")
    for key, (kind, needed) in _KEYS.items():
        if key in definition:
            right = is_of_type(definition[key], kind)
            require(right, source, key, f"has the wrong type; write {format_type(kind)}")
        else:
            require(not needed, source, key, "is missing; add it")
    right = _SLUG.fullmatch(definition["slug"]) is not None
    require(right, source, "slug", "use small letters, digits and single hyphens")


def _check_kind(definition: Mapping[str, Any], source: str) -> None:
    frame, metric = definition["frame"], definition.get("metric", "")
    require(
        frame in OUTPUT_OF_FRAME, source, "frame", f"use one of {format_names(OUTPUT_OF_FRAME)}"
    )
    output = OUTPUT_OF_FRAME[frame]
    right = definition["output"] == output
    require(right, source, "output", f"frame {frame!r} needs the output {output!r}")
    if metric:
        require(
            metric in METRICS,
            source,
            "metric",
            f"use one of {format_names(METRICS)}, or leave it out",
        )
        frames = FRAMES_OF_METRIC[metric]
        require(
            frame in frames,
            source,
            "metric",
            f"{metric} scores in the frame {format_names(frames)}",
        )
    fold = definition.get("fold", "")
    right = fold in FOLDS if frame == "fold" else not fold
    remedy = (
        f"use one of {format_names(FOLDS)}" if frame == "fold" else "only the frame fold has one"
    )
    require(right, source, "fold", remedy)
    _check_generator(definition, source)
    parsers = ("", *PARSERS.get(output, ()))
    right = definition.get("parser", "") in parsers
    require(right, source, "parser", f"use one of {format_names(parsers[1:])}, or leave it out")


def _check_generator(definition: Mapping[str, Any], source: str) -> None:
    for key in ("needs_context", "rewords"):
        right = definition["frame"] == "input" or key not in definition
        require(right, source, key, "only the frame input has one; leave it out")
    right = definition["frame"] in WITH_DRAWS or "draws" not in definition
    require(right, source, "draws", f"are for the frames {format_names(WITH_DRAWS)} only")
    category = definition.get("category", "")
    if definition["frame"] != "perturbation":
        require(
            not category, source, "category", "only the frame perturbation has one; leave it out"
        )
        return
    right = _SLUG.fullmatch(category) is not None
    require(right, source, "category", "say what it generates, by the slug of a category")


def _check_counts(definition: Mapping[str, Any], source: str) -> None:
    for key in ("axes", "metrics", "steps", "draws"):
        few = len(definition.get(key, [])) <= MAX_LISTED
        require(few, source, key, f"list at most {MAX_LISTED}")
    frame, samples = definition["frame"], definition.get("samples", 1)
    right = 1 <= samples <= MAX_SAMPLES
    require(right, source, "samples", f"use a whole number from 1 to {MAX_SAMPLES}")
    right = samples > 1 or not definition.get("votes", False)
    require(right, source, "votes", "votes need at least 2 samples")
    examples = definition.get("examples", 0)
    require(0 <= examples <= MAX_EXAMPLES, source, "examples", f"use 0 to {MAX_EXAMPLES}")
    right = not examples or frame in WITH_EXAMPLES
    require(
        right, source, "examples", f"are shown in the frames {format_names(WITH_EXAMPLES)} only"
    )
    right = not (examples and definition.get("steps"))
    require(
        right,
        source,
        "examples",
        "work only with a single prompt; a chain has its examples in its prompts",
    )
    about = definition.get("about", "perturbed")
    right = about in ("perturbed", "gold") and (frame == "explanation" or "about" not in definition)
    require(right, source, "about", "write perturbed or gold, and only in the frame explanation")
    right = not definition.get("axes") or frame in WITH_AXES
    require(right, source, "axes", f"are for the frames {format_names(WITH_AXES)} only")


def _check_parameters(parameters: Mapping[str, Any], source: str) -> None:
    for name in filter(SECRET_NAME.search, parameters):
        remedy = "looks like a key; definitions are stored and shown, so leave it out"
        require(False, source, f"parameters.{name}", remedy)
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "write only values that JSON has: no dates, no nan, no inf"
        raise StrategyError(source, "parameters", remedy) from error


def _check_parts(strategy: Strategy, source: str) -> None:
    scored = strategy.output == "scores"
    given, taken = bool(strategy.metrics), strategy.metrics_from
    require(taken in ("", "task"), source, "metrics_from", 'write "task", or leave it out')
    require(scored or not (given or taken), source, "metrics", "only ratings and rubrics have them")
    right = not scored or given is not bool(taken)
    require(right, source, "metrics", 'list them or write metrics_from = "task", but not both')
    decides, slugs = strategy.decides, {metric.slug for metric in strategy.metrics}
    right = not decides or (scored and (bool(taken) or decides in slugs | {TOTAL}))
    require(right, source, "decides", f"name a metric or {TOTAL!r}, or leave it out")


def _scale(definition: Mapping[str, Any], source: str) -> Scale | None:
    table = definition.get("scale")
    if definition["output"] != "score":
        require(table is None, source, "scale", "only scores have a scale; leave it out")
    elif table is not None:
        return read_scale(table, source)
    else:
        right = bool(definition.get("metric"))
        require(right, source, "scale", "is missing; add low, high and step")
    return None


def _top(definition: Mapping[str, Any], scale: Scale | None, source: str) -> float | None:
    top: float | None = definition.get("top")
    if definition["frame"] != "reference":
        require(top is None, source, "top", "only reference strategies have one; leave it out")
        return None
    if scale is None:
        raise StrategyError(source, "scale", "is missing; a reference strategy needs a top")
    require(top == scale.high, source, "top", f"make it the high end of the scale, {scale.high}")
    return top


def _verdicts(definition: Mapping[str, Any], source: str) -> tuple[str, ...]:
    offered = definition.get("verdicts")
    if definition["output"] != "verdict":
        require(offered is None, source, "verdicts", "only pairs have verdicts; leave them out")
        return ()
    remedy = f"list those offered: A, B, and any others of {format_names(VERDICTS)}"
    known = [verdict for verdict in VERDICTS if verdict in (offered or [])]
    right = {"A", "B"} <= set(known) and len(known) == len(offered or [])
    require(right, source, "verdicts", remedy)
    return tuple(offered or ())
