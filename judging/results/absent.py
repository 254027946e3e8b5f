"""What could not be read: by cause and group, whether it depends on the category, and bounds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from judging.models import Outcome, Run
from judging.results import counting, framed, gathering, progress
from judging.results.counting import PARSED, UNDETECTED, Summed, text, when
from stats import absence
from stats.estimates import PValue

COLUMNS = ("parsed", "cause", "n", "lowest", "highest", "p", "p_reason", "score_invariant")
CATEGORY = "category"
NOT_TESTED = "judges no perturbed answers"

# Run, group and class of items.
Key = tuple[Any, ...]


def missing(runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `missing`: of each run and group a row a cause, the most frequent first; a group
    that lacks nothing has one row without a cause.

    `lowest` and `highest` are what the group's undetected rate could be had every missing outcome
    gone one way or the other: undetected / total and (undetected + missing) / total. A pair of
    which one order was read and did not choose gold is undetected in both. `p` is that of the
    run's error items: that what is missing does not depend on the category. Detectors and ratings
    have no undetected rate and no bounds here, and items of any kind in one row; `parsed` are all
    of which something was read. Raises `UnknownField`.
    """
    runs = list(runs)
    counting.check(by)
    rated, others = framed.apart(runs)
    order = {run.number: place for place, run in enumerate(runs)}
    rows = [*_of_rates(rated, by), *_counted(others, by)]
    return sorted(rows, key=lambda row: order[row["run"]])


def _of_rates(runs: Sequence[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    counts = {"undetected": f"CASE WHEN {PARSED} THEN {UNDETECTED} ELSE 0 END", "lost": _lost()}
    found = counting.summed(runs, by, counts=counts)
    causes, depends = _causes(runs, by), _depends(runs)
    return [
        row
        for one in found
        for row in _rows(one, causes.get(_key(one), {}), depends.get(one.run.pk))
    ]


def _counted(runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    """The rows of runs without an undetected rate."""
    known = {run.pk: run for run in runs}
    names = ", ".join(f"o.{name}" for name in ("run_id", *by))
    found: dict[Key, dict[str, int]] = {}
    for some in progress.apart(list(known), "counting outcomes") if known else ():
        statement = f"""
            SELECT {names}, o.cause, COUNT(*) AS n FROM {Outcome._meta.db_table} AS o
            WHERE {counting.counted(some)} GROUP BY {names}, o.cause ORDER BY n DESC, o.cause
        """
        for row in counting.records(statement):
            key = (row["run_id"], *(row[name] for name in by))
            found.setdefault(key, {})[row["cause"]] = int(row["n"])
    for (pk, *group), causes in sorted(found.items(), key=lambda one: _place(by, one[0])):
        parsed = causes.pop("", 0)
        bare = Summed(
            run=known[pk],
            group=dict(zip(by, group, strict=True)),
            invariant=False,
            total=parsed + sum(causes.values()),
            parsed=parsed,
            rates={},
            counts={},
        )
        yield from _rows(bare, causes, None)


def _place(by: Sequence[str], key: Key) -> list[int]:
    return counting.place(dict(zip(by, key[1:], strict=True)))


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
    lowest, highest = _bounds(found)
    tested = depends or PValue(None, 0, NOT_TESTED)
    listed: list[tuple[str | None, int]] = [*causes.items()]
    for cause, n in listed or [(None, 0)]:
        yield {
            **found.head(),
            "parsed": found.parsed,
            "cause": cause,
            "n": n,
            "lowest": lowest,
            "highest": highest,
            "p": tested.p,
            "p_reason": tested.reason or None,
            "score_invariant": found.invariant,
        }


def _bounds(found: Summed) -> tuple[float | None, float | None]:
    if not found.counts:
        return None, None
    sure = found.counts["undetected"] + found.counts["lost"]
    unsure = found.missing - found.counts["lost"]
    return sure / found.total, (sure + unsure) / found.total
