"""Decide the outcome of an item from its readings, or from the outcomes of several runs.

The module item_decisions decides a single sample; combination combines several samples.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from judging.strategies import Strategy
from judging.strategies.frames import CallSpec, list_calls
from judging.strategies.replies import combination, item_decisions
from judging.strategies.replies.causes import (
    CAUSES,
    DETECTED,
    MADE,
    MISSING,
    ONE_ORDER,
    SCORED,
    UNDETECTED,
    Decision,
)
from judging.strategies.replies.combination import DecisionLike
from judging.strategies.replies.outputs import ParsedReply

__all__ = [
    "CAUSES",
    "DETECTED",
    "MADE",
    "MISSING",
    "ONE_ORDER",
    "SCORED",
    "UNDETECTED",
    "Decision",
    "combine",
    "decide",
]  # fmt: skip


def decide(
    strategy: Strategy,
    readings: Mapping[tuple[CallSpec, int], ParsedReply],
    *,
    texts: Mapping[str, Any] | None = None,
) -> Decision:
    """Decide the outcome of one item along one axis, from the readings of all calls and samples.

    The number next to a call is the number of the sample. Several samples are votes if the strategy
    says so, otherwise repeats. If an item has two calls, sample j of the first call is paired with
    sample j of the second. In a chain the last step decides; readings of earlier steps may be
    included. A request that failed permanently is given as ParsedReply(None, cause=...). `texts`
    are the item's; they are only needed to check whether the replies of a generator are usable.
    Raises ValueError if there are calls of two axes, or if the reading of a call is missing, since
    an item with open calls has no outcome yet.
    """
    axes = {spec.axis for spec, _ in readings}
    if len(axes) > 1:
        raise ValueError(f"readings of {len(axes)} axes, and an outcome is of one")
    if strategy.generates:
        return item_decisions.decide_generated(strategy, readings.values(), texts or {})
    specs = list_calls(strategy, axis=next(iter(axes), ""), step=strategy.last_step)
    samples = sorted({sample for _, sample in readings}) or [0]
    parts = [
        item_decisions.decide_sample(strategy, _select_sample(specs, readings, sample))
        for sample in samples
    ]
    if len(parts) == 1:
        return parts[0]
    return (
        combination.combine_votes(parts) if strategy.votes else combination.combine_repeats(parts)
    )


def combine(
    strategy: Strategy, outcomes: Sequence[DecisionLike], *, source: Strategy | None = None
) -> Decision:
    """Compute the outcome of an item in a derived run from its outcomes in the source runs.

    For a run without a result on the item, give a Decision with result missing and a cause, so that
    the run counts in the total. `strategy.fold` is "majority" (see combination.combine_votes),
    "veto" (combine_veto), "weighted" (combine_weighted, with `strategy.weights` in the order of the
    outcomes) or "mean" (combine_panel). `source` is the strategy of the source runs; a mean with
    references needs it. Raises ValueError for a mean without scores, and without any outcome.
    """
    if not outcomes:
        raise ValueError("no outcome to fold")
    if strategy.fold == "majority":
        return combination.combine_votes(outcomes)
    if strategy.fold == "veto":
        return combination.combine_veto(outcomes)
    if strategy.fold == "weighted":
        return combination.combine_weighted(outcomes, strategy.weights)
    return combination.combine_panel(outcomes, source)


def _select_sample(
    specs: Sequence[CallSpec], readings: Mapping[tuple[CallSpec, int], ParsedReply], sample: int
) -> dict[CallSpec, ParsedReply]:
    absent = [spec for spec in specs if (spec, sample) not in readings]
    if absent:
        raise ValueError(f"no reading of {absent[0]}, so the item is not decided yet")
    return {spec: readings[spec, sample] for spec in specs}
