"""Offline baselines: they compute a metric, give the same result every time, and cost nothing.

They are useful because they are so limited: ROUGE-L reacts to every changed word, and length reacts
only to length. So they show how meaningful a figure is before any evaluator is called.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from judging.evaluators.providers.answers import Answer, Prompt, Target
from judging.evaluators.providers.canonical_json import canonical_json
from judging.evaluators.providers.errors import Rejected
from stats import matching, rouge

if TYPE_CHECKING:
    import aiohttp

title = "Baseline (offline)"
offline = True
is_evaluator = False
default_parameters: Mapping[str, Any] = MappingProxyType({})


def body(
    *,
    model: str,
    parameters: Mapping[str, Any],
    prompt: Prompt,
    schema: Mapping[str, Any] | None = None,
    api: str = "chat",
    template: str = "",
    json_mode: str = "",
) -> bytes:
    """Return the prompt's parts as canonical JSON; no other argument changes the result.

    Parts: `metric` (a name in METRICS), `response`, and for all but length `reference`, a text or a
    list.
    """
    return canonical_json(dict(prompt.parts))


async def ask(session: "aiohttp.ClientSession | None", target: Target, body: bytes) -> Answer:
    """Compute the metric for one body. The text of the answer is strict JSON, {"score": ...}, not
    rounded.

    The computation runs in a thread, so that long texts do not block the event loop. Raises
    Rejected for an unknown metric and for missing parts.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    metric, score = await asyncio.to_thread(_measure, body)
    return Answer(
        text=json.dumps({"score": score}),
        finish="stop",
        model=metric,
        tokens_in=0,
        tokens_out=0,
        started=started,
        seconds=time.perf_counter() - clock,
    )


def _measure(body: bytes) -> tuple[str, float]:
    parts = json.loads(body)
    metric = str(parts.get("metric"))
    if metric not in METRICS:
        raise Rejected(f"There is no metric {metric[:60]!r}; there are: {', '.join(METRICS)}.")
    try:
        return metric, METRICS[metric](parts)
    except (KeyError, ValueError) as error:
        raise Rejected(f"{metric} cannot be measured without {error}.") from None


def _rouge(measure: rouge.Metric, parts: Mapping[str, Any]) -> float:
    return rouge.best_score(_references(parts), parts["response"], measure)


def _string_match(parts: Mapping[str, Any]) -> float:
    return matching.string_match(_references(parts), parts["response"])


def _references(parts: Mapping[str, Any]) -> list[str]:
    reference = parts["reference"]
    return [reference] if isinstance(reference, str) else reference


METRICS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "rouge-l": partial(_rouge, rouge.rouge_l),
    "rouge-l-unicode": partial(_rouge, rouge.rouge_l_unicode),
    "string-match": _string_match,
    "length": lambda parts: len(parts["response"]),
}
