"""Figures of runs: what figures.md defines, counted by the database."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from judging.models import Outcome, Run
from judging.results import counted, frames
from judging.results.counted import FIELDS, GroupSums, UnknownField, taxonomy_order
from judging.results.explanations import EXPLANATION_FRAME
from stats.estimates import Estimate
from stats.rates import clustered_wilson

__all__ = ["FIELDS", "UnknownField", "tabulate_left_out", "tabulate_undetected", "taxonomy_order"]

LEFT_OUT_COLUMNS = ("pending", "other_revision", "items", "shared")


@dataclass(frozen=True)
class UndetectedRow:
    """One row of the `undetected` table: counts and the undetected rate of a group of items.

    rate = undetected / parsed, for score-invariant items too, where it is the share left unmoved;
    None with a reason where nothing was parsed. `total` = parsed + missing. An item that was
    asked about repeatedly is `undetected` by the share of its repeats. `invariant` says whether
    the items are score-invariant, so that a detection is a false alarm.
    """

    run: Run
    group: dict[str, str]
    invariant: bool
    total: int
    missing: int
    parsed: int
    undetected: float
    estimate: Estimate

    @property
    def detected(self) -> float:
        return counted.round_sum(self.parsed - self.undetected)

    def as_row(self) -> dict[str, Any]:
        return {
            "run": self.run.number,
            "endpoint": self.run.endpoint.name,
            "strategy": self.run.strategy.slug,
            **self.group,
            "total": self.total,
            "missing": self.missing,
            "parsed": self.parsed,
            "detected": self.detected,
            "undetected": self.undetected,
            "rate": self.estimate.value,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "reason": self.estimate.reason or None,
            "score_invariant": self.invariant,
        }


def tabulate_undetected(
    runs: Iterable[Run], by: Sequence[str] = ("ability", "category")
) -> list[UndetectedRow]:
    """Undetected rates of runs by fields of their outcomes, in the order of the taxonomy.

    An outcome counts only against a current resolution of the revision that it judged, and of
    several axes that of the item's ability. The interval knows that items of one cluster are
    alike. `by` may be empty: one row a run.

    What must not be summed is never mixed: without ability or category in `by` score-invariant
    items are left out, whose rate reads the other way, and without both the repeats of other
    items; repeats of both kinds in one category make two rows. Detectors and ratings have no such
    rate and no row. Raises `UnknownField`.
    """
    rated, _ = frames.split_by_rate(runs)
    rates = {"undetected": (counted.PARSED_SQL, counted.UNDETECTED_SQL)}
    found = counted.sum_outcomes(rated, by, rates=rates)
    return [_row(sums) for sums in found]


def tabulate_left_out(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `left_out`: how many outcomes of each run no figure counts, by reason.

    `pending` are not asked about yet; of `other_revision` the item is held for something else than
    when it was judged (corrected texts, another resolution). `items` count, and `shared` of them
    count of every one of the runs; of checks of explanations, which judge no item, it is None. Four
    queries, and none without a run.
    """
    known = {run.pk: run for run in runs}
    if not known:
        return []
    of_runs = f"o.run_id IN ({', '.join(map(str, known))}) AND o.main"
    pending = _count_by_run(f"{of_runs} AND o.result = 'pending'")
    settled = _count_by_run(f"{of_runs} AND o.result <> 'pending'")
    held = _count_by_run(counted.counted_condition(known))
    judging = [
        pk for pk, run in known.items() if run.strategy.strategy().frame != EXPLANATION_FRAME
    ]
    shared = _count_shared(judging)
    return [
        {
            **counted.run_columns(run),
            "pending": pending.get(pk, 0),
            "other_revision": settled.get(pk, 0) - held.get(pk, 0),
            "items": held.get(pk, 0),
            "shared": shared if pk in judging else None,
        }
        for pk, run in known.items()
    ]


def _count_by_run(such: str) -> dict[int, int]:
    """How many outcomes of each run are such."""
    table = Outcome._meta.db_table
    statement = f"SELECT o.run_id, COUNT(*) AS n FROM {table} AS o WHERE {such} GROUP BY o.run_id"
    return {row["run_id"]: int(row["n"]) for row in counted.fetch_dicts(statement)}


def _count_shared(runs: Sequence[int]) -> int:
    """How many items count of every one of these runs."""
    if not runs:
        return 0
    table = Outcome._meta.db_table
    [row] = counted.fetch_dicts(
        f"SELECT COUNT(*) AS n FROM (SELECT o.item_id FROM {table} AS o"
        f" WHERE {counted.counted_condition(runs)} GROUP BY o.item_id"
        f" HAVING COUNT(DISTINCT o.run_id) = {len(runs)}) AS of_all"
    )
    return int(row["n"])


def _row(found: GroupSums) -> UndetectedRow:
    sums = found.rates["undetected"]
    return UndetectedRow(
        run=found.run,
        group=found.group,
        invariant=found.invariant,
        total=found.total,
        missing=found.missing,
        parsed=found.parsed,
        undetected=sums.y,
        estimate=clustered_wilson(sums),
    )
