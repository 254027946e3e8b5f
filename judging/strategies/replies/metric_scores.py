"""Parse a reply that gives one number for each metric.

In JSON each metric is a key (its slug or title), at the top level or under "scores". Its value is a
number, or an object with a "score" and reasons. In prose the value follows the metric's name: `S1:
1, S2: 0`. If the reply has `<RESULT>...</RESULT>`, only the content of the last one counts. For a
single metric, `[RESULT] 2` is enough. If a metric has several numbers, the
last number counts. A metric that is not mentioned, or whose value cannot be used, has a cause
instead of a number; all other metrics still count.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from judging.strategies.replies import json_objects, parsing, values
from judging.strategies.replies.json_objects import Fields
from judging.strategies.replies.parsing import AnswerPatterns, MarkedPhrase
from judging.strategies.schema import Metric, Strategy

Scores = dict[str, float | str]

SCORES_KEY, SCORE_KEY = "scores", "score"
_RESULT = parsing.build_last_finder(
    re.compile(r"\[RESULT\]\s{0,4}(?=([^\n]{1,60}))", re.IGNORECASE)
)
# the more informative cause comes first
_CAUSES = ("off_scale", "unparsable")


def list_answer_keys(strategy: Strategy) -> frozenset[str]:
    """List the keys by which an object counts as an answer: the metrics of the strategy, and
    "scores".
    """
    return frozenset({SCORES_KEY, *_names(strategy.metrics)})


def build_patterns(strategy: Strategy) -> AnswerPatterns:
    """Build the patterns for tags, or for a reply in which some metric has a value. With a single
    metric, `[RESULT]` counts too."""
    return AnswerPatterns(
        marked=_find_single if len(strategy.metrics) == 1 else parsing.find_tagged,
        loose=(_build_mention_finder(strategy.metrics),),
    )


def _find_single(text: str, start: int) -> MarkedPhrase | None:
    return parsing.find_tagged(text, start) or _RESULT(text, start)


def parse_scores(raw: Fields | str, strategy: Strategy) -> tuple[Scores | None, str]:
    """Parse the value of every metric. If no metric has a value, the result is None and a cause."""
    said = _collect_scores(raw, strategy.metrics)
    found: Scores = {}
    for metric in strategy.metrics:
        value = values.parse_score(said.get(metric.slug), metric.scale, metric.admits)
        found[metric.slug] = value.cause if value.value is None else float(value.value)
    if any(not isinstance(value, str) for value in found.values()):
        return found, ""
    return None, next((cause for cause in _CAUSES if cause in found.values()), "unparsable")


def _collect_scores(raw: Fields | str, metrics: tuple[Metric, ...]) -> Fields:
    """Collect the raw value of each metric, by slug; a later value of the same metric replaces an
    earlier value.
    """
    names = _names(metrics)
    if isinstance(raw, str):
        if len(metrics) == 1 and not _pattern(metrics).search(raw):
            return {metrics[0].slug: raw}
        pairs: Iterator[tuple[str, Any]] = _mentions(raw, metrics)
    else:
        nested = raw.get(SCORES_KEY)
        inner = nested if isinstance(nested, dict) else {}
        pairs = ((key, _number(value)) for key, value in (raw | inner).items())
    return {names[key]: value for key, value in pairs if key in names}


def _number(value: Any) -> Any:
    return value.get(SCORE_KEY) if isinstance(value, dict) else value


def _names(metrics: tuple[Metric, ...]) -> dict[str, str]:
    """Each name of a metric -> its slug; a slug takes precedence over another metric's title."""
    titles = {json_objects.normalize_key(metric.title): metric.slug for metric in metrics}
    return titles | {json_objects.normalize_key(metric.slug): metric.slug for metric in metrics}


def _build_mention_finder(metrics: tuple[Metric, ...]) -> Callable[[str, int], MarkedPhrase | None]:
    def find(text: str, start: int) -> MarkedPhrase | None:
        first = _pattern(metrics).search(text, start)
        return MarkedPhrase(text[first.start() :], first.start(), len(text)) if first else None

    return find


def _mentions(text: str, metrics: tuple[Metric, ...]) -> Iterator[tuple[str, str]]:
    return (
        (json_objects.normalize_key(one[1]), one[2]) for one in _pattern(metrics).finditer(text)
    )


@lru_cache(maxsize=256)
def _pattern(metrics: tuple[Metric, ...]) -> re.Pattern[str]:
    """A metric's name followed by its value, which only a lookahead matches.

    A name without a number, as in a repeated rubric, does not match; "NA" matches without giving a
    number.
    """
    longest_first = sorted(_names(metrics), key=len, reverse=True)
    names = "|".join(re.escape(name).replace("\\-", r"[\s_-]{1,3}") for name in longest_first)
    closing, opening = r"[\"'*_`\])]{0,4}", r"[\"'*_`\[(]{0,4}"
    said = r"(?=([-+−]?[0-9][^\n]{0,60}|(?:n/?a|none|null|unknown)\b))"
    return re.compile(
        rf"(?<![\w-])({names})(?![\w-])(?:[ \t]?\([^()\n]{{1,30}}\))?{closing}[ \t]{{0,4}}[:=]"
        rf"{opening}\s{{0,4}}{opening}{said}",
        re.IGNORECASE,
    )
