"""Figures of runs: what figures.md defines, counted by the database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from annotation import taxonomy
from annotation.models import Resolution
from judging.models import Outcome, Run
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson

FIELDS = ("ability", "category", "source_ability")


class UnknownField(ValueError):
    """A field that outcomes cannot be grouped by; the message names those that can be."""


@dataclass(frozen=True)
class Undetected:
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
        return _count(self.parsed - self.undetected)

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


@dataclass(frozen=True)
class LeftOut:
    """Outcomes of a run that no figure counts: not asked yet, or the item is held for something
    else than when it was judged (corrected texts, another resolution)."""

    pending: int
    other_revision: int


def undetected(
    runs: Iterable[Run], by: Sequence[str] = ("ability", "category")
) -> list[Undetected]:
    """Undetected rates of runs by fields of their outcomes, in the order of the taxonomy.

    An outcome counts only against a current resolution of the revision that it judged, and of
    several axes that of the item's ability. The interval knows that items of one cluster are
    alike. `by` may be empty: one row a run.

    What must not be summed is never mixed: without ability or category in `by` score-invariant
    items are left out, whose rate reads the other way, and without both the repeats of other
    items; repeats of both kinds in one category make two rows. Raises `UnknownField`.
    """
    unknown = [name for name in by if name not in FIELDS]
    if unknown:
        raise UnknownField(
            f"Outcomes cannot be grouped by {', '.join(unknown)}; there are {', '.join(FIELDS)}."
        )
    found = []
    for run in runs:
        rows = [_row(run, by, record) for record in _sums(run, by)]
        found += sorted(rows, key=lambda row: (place(row.group), row.invariant))
    return found


def left_out(run: Run) -> LeftOut:
    """How many outcomes of a run no figure counts, by reason."""
    counted = _records(f"SELECT COUNT(*) AS n {_COUNTED}", run)[0]["n"]
    pending = run.outcomes.main().pending().count()
    return LeftOut(pending, run.outcomes.main().count() - pending - counted)


def missing(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Missing outcomes that figures count, by run and cause, most frequent first."""
    statement = f"""
        SELECT o.cause AS cause, COUNT(*) AS n {_COUNTED} AND o.result = 'missing'
        GROUP BY o.cause ORDER BY n DESC, cause
    """
    return [{**_run_columns(run), **row} for run in runs for row in _records(statement, run)]


# What stands behind every headline number: settled outcomes whose item is held for the same
# thing now as when it was judged, on the axis that is the item's own.
_COUNTED = f"""
    FROM {Outcome._meta.db_table} AS o
    WHERE o.run_id = %(run)s AND o.main AND o.result <> 'pending' AND EXISTS (
        SELECT 1 FROM {Resolution._meta.db_table} AS r
        WHERE r.item_id = o.item_id AND r.current AND r.revision_id = o.revision_id
        AND (o.truth = '' OR r.value = o.truth)
    )
"""

# How much of an item was not noticed: of its repeats a share, without repeats all or nothing.
_UNDETECTED = """
    CASE o.result
        WHEN 'detected' THEN 1 - COALESCE(o.share, 1)
        WHEN 'undetected' THEN 1 - COALESCE(o.share, 0)
        ELSE 0
    END
"""


def _sums(run: Run, by: Sequence[str]) -> list[dict[str, Any]]:
    """Per group: counts, and the five sums over clusters that the interval needs."""
    names = ", ".join([*by, "invariant"])
    inner = f"""
        SELECT {names}, cluster, COUNT(*) AS total,
            SUM(CASE WHEN o.result = 'missing' THEN 0 ELSE 1 END) AS n, SUM({_UNDETECTED}) AS y
        {_COUNTED} AND o.result <> 'scored' {_unmixed(by)} GROUP BY {names}, cluster
    """
    statement = f"""
        SELECT {names}, SUM(CASE WHEN n > 0 THEN 1 ELSE 0 END) AS m, SUM(n) AS n, SUM(y) AS y,
            SUM(n * n) AS nn, SUM(n * y) AS ny, SUM(y * y) AS yy, SUM(total) AS total
        FROM ({inner}) AS clusters GROUP BY {names}
    """
    return _records(statement, run)


def _unmixed(by: Sequence[str]) -> str:
    repeats = "AND o.ability <> ''" if not {"ability", "category"} <= set(by) else ""
    invariant = "AND NOT o.invariant" if not {"ability", "category"} & set(by) else ""
    return f"{repeats} {invariant}"


def _records(statement: str, run: Run) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"run": run.pk})
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, record, strict=True)) for record in cursor.fetchall()]


def _row(run: Run, by: Sequence[str], record: Mapping[str, Any]) -> Undetected:
    sums = ClusterSums(
        m=int(record["m"]),
        n=int(record["n"]),
        nn=int(record["nn"]),
        y=_count(record["y"]),
        ny=_count(record["ny"]),
        yy=_count(record["yy"]),
    )
    total = int(record["total"])
    return Undetected(
        run=run,
        group={name: record[name] for name in by},
        invariant=bool(record["invariant"]),
        total=total,
        missing=total - sums.n,
        parsed=sums.n,
        undetected=sums.y,
        estimate=clustered_wilson(sums),
    )


def _count(total: Any) -> float:
    """A sum of shares as whole as it is: thirds that a database added up leave a rest."""
    rounded = round(float(total), 9)
    return int(rounded) if rounded.is_integer() else rounded


def _run_columns(run: Run) -> dict[str, Any]:
    return {"run": run.number, "endpoint": run.endpoint.name, "strategy": run.strategy.slug}


def place(group: Mapping[str, str]) -> list[int]:
    """Sort key: abilities and categories as the taxonomy has them, unknown ones last."""
    known = taxonomy.load()
    abilities = [ability.slug for ability in known.abilities]
    slugs = [category.slug for category in known.categories]
    orders = {"ability": abilities, "source_ability": abilities, "category": slugs}
    return [
        orders[name].index(value) if value in orders[name] else len(orders[name])
        for name, value in group.items()
    ]
