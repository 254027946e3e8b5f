"""Reads one definition of a strategy and refuses what cannot be used, with a remedy."""

import json
import re
from collections.abc import Mapping
from typing import Any

from annotation import taxonomy
from judging.prompts import wording
from judging.prompts.declared import TOTAL, VERDICTS, Scale, Strategy, StrategyError
from judging.prompts.parts import (
    axes_of,
    is_a,
    listed,
    metrics_of,
    name_of,
    need,
    resolved_axes,
    scale_of,
    steps_of,
)

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

SECRET = re.compile(r"(?i)key|secret|password|authorization|\btoken\b")
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
_PLAIN = (
    "slug", "title", "study", "frame", "output", "explanation", "metric", "metrics_from",
    "samples", "votes", "parameters", "examples", "fold", "parser", "decides", "about", "worded",
    "category", "needs_context",
)  # fmt: skip
_EMPTY = {"metric": ""}


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
        shown = scale if wording.shows_rubric(definition) else None
        definition["axes"] = resolved_axes(definition["axes"], shown, source)
    plain = {key: definition[key] for key in _PLAIN if key in definition}
    system = definition.get("system", "").strip()
    strategy = Strategy(
        **_EMPTY | plain,
        system=system,
        prompt=definition.get("prompt", "").strip(),
        scale=scale,
        top=_top(definition, scale, source),
        verdicts=_verdicts(definition, source),
        axes=axes_of(definition.get("axes", []), source),
        metrics=metrics_of(definition.get("metrics", []), source),
        steps=steps_of(definition.get("steps", []), definition["output"], system, source),
        definition=definition,
    )
    _check_parts(strategy, source)
    wording.check(strategy, source)
    return strategy


def _check_keys(definition: Mapping[str, Any], source: str) -> None:
    for key in definition:
        need(key in _KEYS, source, key, f"unknown key, use one of {listed(_KEYS)}")
    for key, (kind, needed) in _KEYS.items():
        if key in definition:
            right = is_a(definition[key], kind)
            need(right, source, key, f"has the wrong type, write {name_of(kind)}")
        else:
            need(not needed, source, key, "is missing, add it")
    right = _SLUG.fullmatch(definition["slug"]) is not None
    need(right, source, "slug", "use small letters, digits and single hyphens")


def _check_kind(definition: Mapping[str, Any], source: str) -> None:
    frame, metric = definition["frame"], definition.get("metric", "")
    need(frame in OUTPUT_OF_FRAME, source, "frame", f"use one of {listed(OUTPUT_OF_FRAME)}")
    output = OUTPUT_OF_FRAME[frame]
    right = definition["output"] == output
    need(right, source, "output", f"frame {frame!r} takes the output {output!r}")
    if metric:
        need(metric in METRICS, source, "metric", f"use one of {listed(METRICS)}, or leave it out")
        frames = FRAMES_OF_METRIC[metric]
        need(frame in frames, source, "metric", f"{metric} scores in the frame {listed(frames)}")
    fold = definition.get("fold", "")
    right = fold in FOLDS if frame == "fold" else not fold
    remedy = f"use one of {listed(FOLDS)}" if frame == "fold" else "only the frame fold has one"
    need(right, source, "fold", remedy)
    _check_made(definition, source)
    parsers = ("", *PARSERS.get(output, ()))
    right = definition.get("parser", "") in parsers
    need(right, source, "parser", f"use one of {listed(parsers[1:])}, or leave it out")


def _check_made(definition: Mapping[str, Any], source: str) -> None:
    right = definition["frame"] == "input" or "needs_context" not in definition
    need(right, source, "needs_context", "only the frame input has one, leave it out")
    category = definition.get("category", "")
    if definition["frame"] != "perturbation":
        need(not category, source, "category", "only the frame perturbation has one, leave it out")
        return
    known = [one.slug for one in taxonomy.load().categories]
    need(category in known, source, "category", f"say what it makes, one of {listed(known)}")


def _check_counts(definition: Mapping[str, Any], source: str) -> None:
    frame, samples = definition["frame"], definition.get("samples", 1)
    right = 1 <= samples <= MAX_SAMPLES
    need(right, source, "samples", f"use a whole number from 1 to {MAX_SAMPLES}")
    right = samples > 1 or not definition.get("votes", False)
    need(right, source, "votes", "a vote needs samples, 2 or more")
    examples = definition.get("examples", 0)
    need(0 <= examples <= MAX_EXAMPLES, source, "examples", f"use 0 to {MAX_EXAMPLES}")
    right = not examples or frame in WITH_EXAMPLES
    need(right, source, "examples", f"are shown in the frames {listed(WITH_EXAMPLES)} only")
    right = not (examples and definition.get("steps"))
    need(right, source, "examples", "belong to one question; a chain has its own in its prompts")
    about = definition.get("about", "perturbed")
    right = about in ("perturbed", "gold") and (frame == "explanation" or "about" not in definition)
    need(right, source, "about", "say perturbed or gold, in the frame explanation only")
    right = not definition.get("axes") or frame in WITH_AXES
    need(right, source, "axes", f"are for the frames {listed(WITH_AXES)} only")


def _check_parameters(parameters: Mapping[str, Any], source: str) -> None:
    for name in filter(SECRET.search, parameters):
        remedy = "looks like a key; definitions are stored and shown, so leave it out"
        need(False, source, f"parameters.{name}", remedy)
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "write only what JSON can say: no dates, no nan, no inf"
        raise StrategyError(source, "parameters", remedy) from error


def _check_parts(strategy: Strategy, source: str) -> None:
    scored = strategy.output == "scores"
    given, taken = bool(strategy.metrics), strategy.metrics_from
    need(taken in ("", "task"), source, "metrics_from", 'say "task", or leave it out')
    need(scored or not (given or taken), source, "metrics", "only ratings and rubrics have them")
    right = not scored or given is not bool(taken)
    need(right, source, "metrics", 'list them, or say metrics_from = "task", not both')
    decides, slugs = strategy.decides, {metric.slug for metric in strategy.metrics}
    right = not decides or (scored and (bool(taken) or decides in slugs | {TOTAL}))
    need(right, source, "decides", f"name a metric or {TOTAL!r}, or leave it out")


def _scale(definition: Mapping[str, Any], source: str) -> Scale | None:
    table = definition.get("scale")
    if definition["output"] != "score":
        need(table is None, source, "scale", "only scores have a scale, leave it out")
    elif table is not None:
        return scale_of(table, source)
    else:
        right = bool(definition.get("metric"))
        need(right, source, "scale", "is missing, add low, high and step")
    return None


def _top(definition: Mapping[str, Any], scale: Scale | None, source: str) -> float | None:
    top: float | None = definition.get("top")
    if definition["frame"] != "reference":
        need(top is None, source, "top", "only reference strategies have one, leave it out")
        return None
    if scale is None:
        raise StrategyError(source, "scale", "is missing, a reference strategy needs a top")
    need(top == scale.high, source, "top", f"make it the high end of the scale, {scale.high}")
    return top


def _verdicts(definition: Mapping[str, Any], source: str) -> tuple[str, ...]:
    offered = definition.get("verdicts")
    if definition["output"] != "verdict":
        need(offered is None, source, "verdicts", "only pairs have verdicts, leave them out")
        return ()
    remedy = f"list those offered: A, B, and any others of {listed(VERDICTS)}"
    known = [verdict for verdict in VERDICTS if verdict in (offered or [])]
    right = {"A", "B"} <= set(known) and len(known) == len(offered or [])
    need(right, source, "verdicts", remedy)
    return tuple(offered or ())
