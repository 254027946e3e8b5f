"""What could not be read: by cause and group, whether it depends on the category, and bounds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from judging.models import Outcome, Run
from judging.results import counting, gathering, progress
from judging.results.counting import PARSED, UNDETECTED, Summed, text, when
from stats import absence
from stats.estimates import PValue

COLUMNS = ("parsed", "cause", "n", "lowest", "highest", "p", "p_reason", "score_invariant")
CATEGORY = "category"
NOT_TESTED = "judges no error items"

# Run, group and class of items.
Key = tuple[Any, ...]


def missing(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `missing`: of each run and group a row a cause, the most frequent first; a group
    that lacks nothing has one row without a cause.

    `lowest` and `highest` are what the group's undetected rate could be had every missing outcome
    gone one way or the other: undetected / total and (undetected + missing) / total. A pair of
    which one order was read and did not choose gold is undetected in both. `p` is that of the
    run's error items: that what is missing does not depend on the category.
    """
    runs = list(runs)
    counts = {"undetected": f"CASE WHEN {PARSED} THEN {UNDETECTED} ELSE 0 END", "lost": _lost()}
    found = counting.summed(runs, by, counts=counts)
    causes, depends = _causes(runs, by), _depends(runs)
    return [
        row
        for one in found
        for row in _rows(one, causes.get(_key(one), {}), depends.get(one.run.pk))
    ]


def _lost() -> str:
    """One where the order that was read did not choose gold."""
    # SQLite says 0 for what is false in JSON.
    chose_gold = f"CAST({text('chose_gold')} AS TEXT)"
    return when(f"o.cause = 'one_order' AND {chose_gold} IN ('false', '0')")


def _causes(runs: Sequence[Run], by: Sequence[str]) -> dict[Key, dict[str, int]]:
    if not runs:
        return {}
    names = ", ".join(f"o.{name}" for name in ("run_id", *by, "invariant"))
    statement = f"""
        SELECT {names}, o.cause, COUNT(*) AS n FROM {Outcome._meta.db_table} AS o
        WHERE {counting.counted(run.pk for run in runs)} AND o.result = 'missing'
            {counting.unmixed(by)}
        GROUP BY {names}, o.cause ORDER BY n DESC, o.cause
    """
    found: dict[Key, dict[str, int]] = {}
    for row in counting.records(statement):
        key = (row["run_id"], *(row[name] for name in by), bool(row["invariant"]))
        found.setdefault(key, {})[row["cause"]] = int(row["n"])
    return found


def _depends(runs: Sequence[Run]) -> dict[int, PValue]:
    found = {}
    for one in progress.through(gathering.gather(runs, (CATEGORY,)), "dealing missing replies"):
        errors = one.only(~one.invariant)
        _, category = np.unique(errors.fields[CATEGORY].astype(str), return_inverse=True)
        rng = gathering.generator("missing", [one.run])
        gone = np.isnan(errors.detected)
        found[one.run.pk] = absence.depends(gone, category, errors.cluster, rng)
    return found


def _key(found: Summed) -> Key:
    return (found.run.pk, *found.group.values(), found.invariant)


def _rows(
    found: Summed, causes: Mapping[str, int], depends: PValue | None
) -> Iterable[dict[str, Any]]:
    sure = found.counts["undetected"] + found.counts["lost"]
    unsure = found.missing - found.counts["lost"]
    tested = depends or PValue(None, 0, NOT_TESTED)
    listed: list[tuple[str | None, int]] = [*causes.items()]
    for cause, n in listed or [(None, 0)]:
        yield {
            **found.head(),
            "parsed": found.parsed,
            "cause": cause,
            "n": n,
            "lowest": sure / found.total,
            "highest": (sure + unsure) / found.total,
            "p": tested.p,
            "p_reason": tested.reason or None,
            "score_invariant": found.invariant,
        }
