"""Reads one definition of a strategy and refuses what cannot be used, with a remedy."""

import json
import re
from collections.abc import Mapping
from typing import Any

from annotation.items import taxonomy
from judging.strategies import validation
from judging.strategies.definition_tables import (
    format_names,
    format_type,
    is_of_type,
    read_axes,
    read_metrics,
    read_scale,
    read_steps,
    require,
    resolve_axes,
)
from judging.strategies.schema import TOTAL, VERDICTS, Scale, Strategy, StrategyError

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
}
# metric -> the frames that show it what it measures; ROUGE-L without a reference would say 0
FRAMES_OF_METRIC = {
    "rouge-l": ("reference", "matching"),
    "rouge-l-unicode": ("reference", "matching"),
    "string-match": ("matching",),
    "length": ("single",),
}
METRICS = tuple(FRAMES_OF_METRIC)
# output -> its parsers by name; "" is the usual one
PARSERS = {"detection": ("strict", "phrases-001")}
FOLDS = ("majority", "mean")
MAX_SAMPLES, MAX_EXAMPLES = 100, 50
WITH_AXES = ("single", "pair", "reference")
WITH_EXAMPLES = ("detection", "rating", "rubric", "matching")

SECRET_NAME = re.compile(r"(?i)key|secret|password|authorization|\btoken\b")
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
}
# taken as they are once they were checked
_PLAIN_KEYS = (
    "slug", "title", "study", "frame", "output", "explanation", "metric", "metrics_from",
    "samples", "votes", "parameters", "examples", "fold", "parser", "decides", "about", "worded",
    "category", "needs_context",
)  # fmt: skip
_DEFAULTS = {"metric": ""}


def from_definition(definition: Mapping[str, Any], source: str = "definition") -> Strategy:
    """The strategy that a parsed TOML file describes; StrategyError if it describes none.

    `source` is what errors name: the file, or where else the definition was kept. Axes that it
    names are looked up, and the strategy's own definition holds them in full.
    """
    _check_keys(definition, source)
    _check_kind(definition, source)
    _check_counts(definition, source)
    _check_parameters(definition.get("parameters", {}), source)
    scale = _scale(definition, source)
    definition = dict(definition)
    if "axes" in definition:
        shown = scale if validation.shows_rubric(definition) else None
        definition["axes"] = resolve_axes(definition["axes"], shown, source)
    plain = {key: definition[key] for key in _PLAIN_KEYS if key in definition}
    system = definition.get("system", "").strip()
    strategy = Strategy(
        **_DEFAULTS | plain,
        system=system,
        prompt=definition.get("prompt", "").strip(),
        scale=scale,
        top=_top(definition, scale, source),
        verdicts=_verdicts(definition, source),
        axes=read_axes(definition.get("axes", []), source),
        metrics=read_metrics(definition.get("metrics", []), source),
        steps=read_steps(definition.get("steps", []), definition["output"], system, source),
        definition=definition,
    )
    _check_parts(strategy, source)
    validation.check_prompts(strategy, source)
    return strategy


def _check_keys(definition: Mapping[str, Any], source: str) -> None:
    for key in definition:
        require(key in _KEYS, source, key, f"unknown key, use one of {format_names(_KEYS)}")
    for key, (kind, needed) in _KEYS.items():
        if key in definition:
            right = is_of_type(definition[key], kind)
            require(right, source, key, f"has the wrong type, write {format_type(kind)}")
        else:
            require(not needed, source, key, "is missing, add it")
    right = _SLUG.fullmatch(definition["slug"]) is not None
    require(right, source, "slug", "use small letters, digits and single hyphens")


def _check_kind(definition: Mapping[str, Any], source: str) -> None:
    frame, metric = definition["frame"], definition.get("metric", "")
    require(
        frame in OUTPUT_OF_FRAME, source, "frame", f"use one of {format_names(OUTPUT_OF_FRAME)}"
    )
    output = OUTPUT_OF_FRAME[frame]
    right = definition["output"] == output
    require(right, source, "output", f"frame {frame!r} takes the output {output!r}")
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
    right = definition["frame"] == "input" or "needs_context" not in definition
    require(right, source, "needs_context", "only the frame input has one, leave it out")
    category = definition.get("category", "")
    if definition["frame"] != "perturbation":
        require(
            not category, source, "category", "only the frame perturbation has one, leave it out"
        )
        return
    known = [one.slug for one in taxonomy.load().categories]
    require(
        category in known, source, "category", f"say what it makes, one of {format_names(known)}"
    )


def _check_counts(definition: Mapping[str, Any], source: str) -> None:
    frame, samples = definition["frame"], definition.get("samples", 1)
    right = 1 <= samples <= MAX_SAMPLES
    require(right, source, "samples", f"use a whole number from 1 to {MAX_SAMPLES}")
    right = samples > 1 or not definition.get("votes", False)
    require(right, source, "votes", "a vote needs samples, 2 or more")
    examples = definition.get("examples", 0)
    require(0 <= examples <= MAX_EXAMPLES, source, "examples", f"use 0 to {MAX_EXAMPLES}")
    right = not examples or frame in WITH_EXAMPLES
    require(
        right, source, "examples", f"are shown in the frames {format_names(WITH_EXAMPLES)} only"
    )
    right = not (examples and definition.get("steps"))
    require(right, source, "examples", "belong to one question; a chain has its own in its prompts")
    about = definition.get("about", "perturbed")
    right = about in ("perturbed", "gold") and (frame == "explanation" or "about" not in definition)
    require(right, source, "about", "say perturbed or gold, in the frame explanation only")
    right = not definition.get("axes") or frame in WITH_AXES
    require(right, source, "axes", f"are for the frames {format_names(WITH_AXES)} only")


def _check_parameters(parameters: Mapping[str, Any], source: str) -> None:
    for name in filter(SECRET_NAME.search, parameters):
        remedy = "looks like a key; definitions are stored and shown, so leave it out"
        require(False, source, f"parameters.{name}", remedy)
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "write only what JSON can say: no dates, no nan, no inf"
        raise StrategyError(source, "parameters", remedy) from error


def _check_parts(strategy: Strategy, source: str) -> None:
    scored = strategy.output == "scores"
    given, taken = bool(strategy.metrics), strategy.metrics_from
    require(taken in ("", "task"), source, "metrics_from", 'say "task", or leave it out')
    require(scored or not (given or taken), source, "metrics", "only ratings and rubrics have them")
    right = not scored or given is not bool(taken)
    require(right, source, "metrics", 'list them, or say metrics_from = "task", not both')
    decides, slugs = strategy.decides, {metric.slug for metric in strategy.metrics}
    right = not decides or (scored and (bool(taken) or decides in slugs | {TOTAL}))
    require(right, source, "decides", f"name a metric or {TOTAL!r}, or leave it out")


def _scale(definition: Mapping[str, Any], source: str) -> Scale | None:
    table = definition.get("scale")
    if definition["output"] != "score":
        require(table is None, source, "scale", "only scores have a scale, leave it out")
    elif table is not None:
        return read_scale(table, source)
    else:
        right = bool(definition.get("metric"))
        require(right, source, "scale", "is missing, add low, high and step")
    return None


def _top(definition: Mapping[str, Any], scale: Scale | None, source: str) -> float | None:
    top: float | None = definition.get("top")
    if definition["frame"] != "reference":
        require(top is None, source, "top", "only reference strategies have one, leave it out")
        return None
    if scale is None:
        raise StrategyError(source, "scale", "is missing, a reference strategy needs a top")
    require(top == scale.high, source, "top", f"make it the high end of the scale, {scale.high}")
    return top


def _verdicts(definition: Mapping[str, Any], source: str) -> tuple[str, ...]:
    offered = definition.get("verdicts")
    if definition["output"] != "verdict":
        require(offered is None, source, "verdicts", "only pairs have verdicts, leave them out")
        return ()
    remedy = f"list those offered: A, B, and any others of {format_names(VERDICTS)}"
    known = [verdict for verdict in VERDICTS if verdict in (offered or [])]
    right = {"A", "B"} <= set(known) and len(known) == len(offered or [])
    require(right, source, "verdicts", remedy)
    return tuple(offered or ())
