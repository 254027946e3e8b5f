"""Canaries: a small frozen set of items that an evaluator is asked about again and again.

Each asking has an occasion of its own, so that nothing is taken from what was answered before;
what changes then is the evaluator.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from annotation.models import Membership, Project
from judging.errors import Refused
from judging.models import Endpoint, Outcome, Run, StrategyVersion
from judging.runs import lifecycle
from judging.runs.lifecycle import RunOptions
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

DEFAULT_ITEMS = 20


@dataclass(frozen=True)
class Drift:
    """How far a later asking differs from the first: of `n` items that both decided, `changed`
    have another outcome. `share` is changed / n with its interval, without a value where n is 0;
    items of one cluster are not independent.
    """

    run: Run
    n: int
    changed: int
    share: Estimate


def start_canary(
    project: Project,
    *,
    strategy: StrategyVersion,
    endpoint: Endpoint,
    member: Membership | None = None,
    options: RunOptions = lifecycle.DEFAULT_OPTIONS,
) -> Run:
    """The first asking, over ITEMS items drawn at random, or `limit`; later ones are over the same.

    Anything else as for `runs.start_run`.
    """
    if strategy.strategy().frame == "explanation":
        raise Refused(
            "A canary needs a strategy that evaluates items itself. Choose another strategy."
        )
    first = replace(
        options, limit=options.limit or DEFAULT_ITEMS, occasion=_occasion(timezone.now())
    )
    return lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, member=member, options=first
    )


def repeat_canary(
    run: Run, member: Membership | None = None, *, while_labelling: bool = False
) -> Run:
    """The same of the same evaluator once more, in the very texts that the first asking pinned."""
    check_canary(run)
    first = get_first_run(run)
    return lifecycle.clone_run(
        first,
        member,
        as_pinned=True,
        occasion=_occasion(timezone.now()),
        while_labelling=while_labelling,
    )


def check_canary(run: Run) -> None:
    """Raise `Refused` for a run that is no canary."""
    if not run.occasion:
        raise Refused(
            f"Run {run.number} is not a canary: it reuses stored answers. Start a new run as a "
            "canary."
        )


def get_first_run(run: Run) -> Run:
    """The first asking of the canary that a run belongs to."""
    return run.sources.first() or run


@dataclass(frozen=True)
class Canary:
    """All askings of one canary, the first of them first, and how far each later one drifted."""

    askings: list[Run]
    drifts: list[Drift]


def load_canary(run: Run) -> Canary:
    """The canary that a run belongs to, with all of its askings."""
    first = get_first_run(run)
    again = first.derived.exclude(occasion="").for_results()
    askings = [first, *again]
    return Canary(askings, compute_drift(askings))


def compute_drift(askings: Sequence[Run]) -> list[Drift]:
    """How far each asking after the first differs from it, by result and detail of the items.

    Items that either of the two misses are in neither number: a failure is no drift.
    """
    first, *later = sorted(askings, key=lambda run: run.number)
    before = _load_decisions(first)
    found = []
    for run in later:
        now = _load_decisions(run)
        both = before.keys() & now.keys()
        hits = {key: before[key] != now[key] for key in both}
        found.append(Drift(run, len(both), sum(hits.values()), _estimate_share(first, hits)))
    return found


def _load_decisions(run: Run) -> dict[tuple[int, str], tuple[object, ...]]:
    """What a run says of each item and axis that it decided; of a rating, its values."""
    decided = run.outcomes.settled().exclude(result=Outcome.Result.MISSING)
    rows = decided.values_list("item", "axis", "result", "detail", "values")
    return {
        (item, axis): (result, detail, values if result == Outcome.Result.SCORED else None)
        for item, axis, result, detail, values in rows
    }


def _estimate_share(run: Run, hits: Mapping[tuple[int, str], bool]) -> Estimate:
    """The share of what changed among the items and axes that both askings decided."""
    clusters = dict(run.outcomes.values_list("item", "cluster"))
    sums: dict[str, list[int]] = {}
    for (item, _), changed in hits.items():
        counted = sums.setdefault(clusters[item], [0, 0])
        counted[0] += 1
        counted[1] += changed
    return clustered_wilson(sum_clusters((n, y) for n, y in sums.values()))


def _occasion(now: datetime) -> str:
    """Its own, also where two projects ask the same evaluator in the same second."""
    return f"canary {now:%Y-%m-%d} {secrets.token_hex(6)}"
