"""Canaries: a small fixed set of items that is sent to the same evaluator repeatedly.

Each repetition has its own occasion, so no stored answer is reused, and a difference means that the
evaluator has changed.
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
from judging.runs.lifecycle import RunConfig
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

DEFAULT_ITEMS = 20


@dataclass(frozen=True)
class Drift:
    """The drift of a later repetition from the first run: of `n` items decided in both runs,
    `changed` items have another outcome. `share` is changed / n with its interval; it has no value
    if n is 0. The interval takes into account that items of the same cluster are not
    independent."""

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
    config: RunConfig = lifecycle.DEFAULT_CONFIG,
) -> Run:
    """Start the first run of a canary, over `limit` items drawn at random, by default
    DEFAULT_ITEMS. Later repetitions use the same items. In all other respects this works like
    `lifecycle.start_run`."""
    if strategy.strategy().frame == "explanation":
        raise Refused(
            "A canary needs a strategy that evaluates items itself. Choose another strategy."
        )
    first = replace(config, limit=config.limit or DEFAULT_ITEMS, occasion=_occasion(timezone.now()))
    return lifecycle.start_run(
        project, strategy=strategy, endpoint=endpoint, member=member, config=first
    )


def repeat_canary(
    run: Run, member: Membership | None = None, *, while_labelling: bool = False
) -> Run:
    """Repeat the first run of a canary with the same evaluator and exactly the texts that the run
    pinned."""
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
    """Raise `Refused` for a run that is not a canary."""
    if not run.occasion:
        raise Refused(
            f"Run {run.number} is not a canary: it reuses stored answers. Start a new run as a "
            "canary."
        )


def get_first_run(run: Run) -> Run:
    """Return the first run of the canary that a run belongs to."""
    return run.sources.first() or run


@dataclass(frozen=True)
class Canary:
    """All runs of a canary in order, and the drift of each later run from the first run."""

    askings: list[Run]
    drifts: list[Drift]


def load_canary(run: Run) -> Canary:
    """Load the canary that a run belongs to, with all runs of the canary."""
    first = get_first_run(run)
    again = first.derived.exclude(occasion="").for_results()
    askings = [first, *again]
    return Canary(askings, compute_drift(askings))


def compute_drift(askings: Sequence[Run]) -> list[Drift]:
    """Compute the drift of each run after the first, by comparing result and detail of each item.

    Items that are missing in either run are left out, since a failure is not drift, and so are
    items that a supplement asked again, since other parameters are no drift either.
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
    """Load the decided outcomes of a run by item and axis; for a rating, with its values."""
    decided = run.outcomes.settled().exclude(result=Outcome.Result.MISSING)
    decided = decided.exclude(calls__supplement__gt=0)
    rows = decided.values_list("item", "axis", "result", "detail", "values")
    return {
        (item, axis): (result, detail, values if result == Outcome.Result.SCORED else None)
        for item, axis, result, detail, values in rows
    }


def _estimate_share(run: Run, hits: Mapping[tuple[int, str], bool]) -> Estimate:
    """Estimate the share of changed outcomes among the items and axes decided in both runs."""
    clusters = dict(run.outcomes.values_list("item", "cluster"))
    sums: dict[str, list[int]] = {}
    for (item, _), changed in hits.items():
        counted = sums.setdefault(clusters[item], [0, 0])
        counted[0] += 1
        counted[1] += changed
    return clustered_wilson(sum_clusters((n, y) for n, y in sums.values()))


def _occasion(now: datetime) -> str:
    """Return a new occasion. It is unique even if two projects repeat a canary with the same
    evaluator in the same second."""
    return f"canary {now:%Y-%m-%d} {secrets.token_hex(6)}"
