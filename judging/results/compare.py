"""Pairwise comparison of runs over the same items: differences, intervals and tests."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from annotation.items import taxonomy
from annotation.labelling.models.labels import SI_ITEM
from judging.models import Run
from judging.results import arrays, counted, progress
from judging.results.arrays import Floats, Ints, RunArrays
from stats import families, paired
from stats.rates import ClusterSums

ABILITY = "ability"
COLUMNS = (
    "run_a", "endpoint_a", "strategy_a", "run_b", "endpoint_b", "strategy_b", "ability",
    "total", "missing", "n", "only_a", "only_b", "difference", "low", "high", "p", "p_holm", "q",
    "test", "standard_error", "shows", "letters_a", "letters_b", "reason",
)  # fmt: skip


class RunPair(NamedTuple):
    """Two runs over the error items of one ability, "" for all abilities."""

    a: RunArrays
    b: RunArrays
    ability: str


def compare(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `compare`: all pairs of runs, compared on the error items that both parsed; first
    over all abilities, then by ability.

    `difference` is a's detection rate minus b's over `n` items; `only_a` and `only_b` count the
    items that only that run detected. `total` counts the items of either run; `missing` of these
    items are left out. p comes from `paired.test_difference`, and `test` says whether p is exact,
    from random draws or from Student's t. `p_holm` is p adjusted for all pairs. If two runs share
    no letter, they differ: `p_holm` is below 0.05. Rows by ability are exploratory and have q
    (Benjamini and Hochberg) instead.
    """
    found = [one.only(~one.invariant) for one in arrays.load_arrays(runs, (ABILITY,))]
    pairs = list(combinations(found, 2))
    headline = [_row(RunPair(a, b, "")) for a, b in progress.iterate(pairs, "comparing runs")]
    by_ability = progress.iterate(pairs, "comparing runs by ability")
    exploratory = [_row(part) for a, b in by_ability for part in _pair_by_ability(a, b)]
    _adjust(headline, "p_holm", families.holm([row["p"] for row in headline]))
    _adjust(exploratory, "q", families.benjamini_hochberg([row["p"] for row in exploratory]))
    apart = families.different_pairs([row["p_holm"] for row in headline], len(found))
    letters = families.compact_letters(len(found), apart)
    for row, (a, b) in zip(headline, combinations(range(len(found)), 2), strict=True):
        row |= {"letters_a": letters[a], "letters_b": letters[b]}
    return [*headline, *exploratory]


def _pair_by_ability(a: RunArrays, b: RunArrays) -> Iterator[RunPair]:
    for ability in (one.slug for one in taxonomy.load().abilities if one.slug != SI_ITEM):
        first, second = (one.only(one.fields[ABILITY] == ability) for one in (a, b))
        if len(first.item) or len(second.item):
            yield RunPair(first, second, ability)


def _row(pair: RunPair) -> dict[str, Any]:
    a, b, ability = pair
    first, second, cluster = _common_items(a, b)
    sums, differences = _sum_clusters(first - second, cluster)
    made = paired.estimate_difference(sums)
    rng = arrays.make_generator("compare", [a.run, b.run], ability)
    tested = paired.test_difference(differences, rng)
    total = len(np.union1d(a.item, b.item))
    return {
        **_run_columns(a.run, "a"),
        **_run_columns(b.run, "b"),
        "ability": ability or None,
        "total": total,
        "missing": total - made.n,
        "n": made.n,
        "only_a": counted.round_sum(np.maximum(first - second, 0).sum()),
        "only_b": counted.round_sum(np.maximum(second - first, 0).sum()),
        "difference": made.value,
        "low": made.low,
        "high": made.high,
        "p": tested.p,
        "p_holm": None,
        "q": None,
        "test": tested.test or None,
        "standard_error": made.standard_error,
        "shows": made.shows,
        "letters_a": None,
        "letters_b": None,
        "reason": made.reason or tested.reason or None,
    }


def _common_items(a: RunArrays, b: RunArrays) -> tuple[Floats, Floats, Ints]:
    """Both runs' values on the items that both parsed, and the clusters of these items."""
    first, second, cluster = a.detected, b.detected, a.cluster
    if not np.array_equal(a.item, b.item):
        _, of_a, of_b = np.intersect1d(a.item, b.item, assume_unique=True, return_indices=True)
        first, second, cluster = first[of_a], second[of_b], cluster[of_a]
    there = ~np.isnan(first) & ~np.isnan(second)
    return first[there], second[there], cluster[there]


def _sum_clusters(apart: Floats, cluster: Ints) -> tuple[ClusterSums, Floats]:
    """Compute the sums for the interval, and the difference of each cluster."""
    counted = np.bincount(cluster)
    held = counted > 0
    items = counted[held]
    # Sums of shares such as thirds have rounding errors.
    y: Floats = np.round(np.bincount(cluster, weights=apart).astype(float), 9)[held]
    sums = ClusterSums(
        m=len(items),
        n=int(items.sum()),
        nn=int((items**2).sum()),
        y=float(y.sum()),
        ny=float((items * y).sum()),
        yy=float((y**2).sum()),
    )
    return sums, y


def _run_columns(run: Run, side: str) -> dict[str, Any]:
    names = {"run": run.number, "endpoint": run.endpoint.name, "strategy": run.strategy.slug}
    return {f"{name}_{side}": value for name, value in names.items()}


def _adjust(rows: Sequence[dict[str, Any]], name: str, ps: Iterable[float | None]) -> None:
    for row, p in zip(rows, ps, strict=True):
        row[name] = p
