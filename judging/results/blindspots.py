"""Which slices of the items a run misses more than the rest."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from annotation.models import Project
from judging.models import Run
from judging.results import counting, detecting, gathering, progress
from judging.results.gathering import Bools, Gathered
from stats import families, slices
from stats.slices import LEAST_DIFFERENCE, Contrast

CATEGORY, ABILITY = "category", "ability"
OWN_STRATA = (CATEGORY, ABILITY)
SIGNIFICANT = 0.05
# Values of one field that are slices; a field with more names items, not groups.
MOST_VALUES = 50
COLUMNS = (
    "total", "missing", "slice", "n", "clusters", "rate", "rest", "difference", "p", "q", "tests",
    "blind", "reason",
)  # fmt: skip

# A slice by its name, which items are in it, and whether it is compared within categories.
Slice = tuple[str, Bools, bool]


def blind_spots(project: Project, runs: Iterable[Run], by: Sequence[str]) -> list[dict[str, Any]]:
    """The table `blindspots`: of each run every value of the fields `by`, and every pair of values
    of two of them, against the rest of the error items; the largest difference first.

    Fields are columns of items or their own. `rate` is the undetected rate of the slice's `n`
    parsed items, `rest` that beside it. Slices other than an ability or a category are compared
    within categories, and `difference` is that of Mantel and Haenszel. `p` is one-sided; `q`
    (Benjamini and Hochberg) is over all `tests` of the run. A slice is `blind` with q below 0.05
    and 10 points of difference or more, which is exploratory. Raises `UnknownField`.
    """
    named = detecting.groupings(project, by)
    found = gathering.gather(runs, () if CATEGORY in by else (CATEGORY,), named)
    return [row for one in found for row in _of_run(one, [group.name for group in named])]


def _of_run(found: Gathered, names: Sequence[str]) -> list[dict[str, Any]]:
    errors = found.only(~found.invariant)
    held = {name: _texts(values) for name, values in errors.fields.items()}
    # As numbers, since every slice sorts them.
    _, categories = np.unique(held[CATEGORY], return_inverse=True)
    said = f"searching run {found.run.number}"
    tested = [
        (name, _contrast(errors, name, inside, categories if within else None))
        for name, inside, within in progress.through(list(_slices(names, held)), said)
    ]
    qs = families.benjamini_hochberg([one.p for _, one in tested])
    tests = sum(one.p is not None for _, one in tested)
    head = {
        **counting.run_columns(found.run),
        "total": len(errors.item),
        "missing": int(np.isnan(errors.detected).sum()),
    }
    rows = [
        {**head, **_row(name, one, q), "tests": tests}
        for (name, one), q in zip(tested, qs, strict=True)
    ]
    return sorted(rows, key=_far)


def _slices(names: Sequence[str], held: dict[str, Any]) -> Iterator[Slice]:
    single: dict[str, list[tuple[str, Bools]]] = {}
    for name in names:
        values = sorted(set(held[name]) - {""})
        # One value is no slice, and a field with many names the items themselves.
        fits = 1 < len(values) <= MOST_VALUES
        single[name] = [(f"{name}={one}", held[name] == one) for one in values if fits]
    for name, found in single.items():
        yield from ((title, inside, name not in OWN_STRATA) for title, inside in found)
    for one, other in combinations(names, 2):
        if {one, other} <= {*OWN_STRATA}:
            continue
        for first, inside in single[one]:
            for second, also in single[other]:
                if (both := inside & also).any():
                    yield f"{first}, {second}", both, True


def _contrast(found: Gathered, name: str, inside: Bools, strata: Any) -> Contrast:
    rng = gathering.generator("blindspots", [found.run], name)
    return slices.contrast(1 - found.detected, inside, found.cluster, rng, strata)


def _row(name: str, one: Contrast, q: float | None) -> dict[str, Any]:
    large = one.difference is not None and one.difference >= LEAST_DIFFERENCE
    return {
        "slice": name,
        "n": one.n,
        "clusters": one.clusters,
        "rate": one.rate,
        "rest": one.rest,
        "difference": one.difference,
        "p": one.p,
        "q": q,
        "blind": large and q < SIGNIFICANT if q is not None else None,
        "reason": one.reason or None,
    }


def _texts(values: Any) -> Any:
    return np.array(["" if one is None else str(one) for one in values], dtype=object)


def _far(row: dict[str, Any]) -> tuple[bool, float, str]:
    return row["q"] is None, -(row["difference"] or 0), row["slice"]
