"""Coverage of intervals, false-positive rates of tests, and times for a million outcomes.

Run from the root of the checkout: python -m benchmarks.intervals [--quick]. The clusters are as
large as the questions of study 000 (one to eight items, 3.6 on average), or of four items each.
Each has its own detection rate; the spread of the rates follows from the given correlation within
clusters. A share of N simulated data sets has the standard error sqrt(c (1 - c) / N), which is
printed next to it. The random numbers are generated from one fixed seed.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from stats import (
    absence,
    bootstrap,
    closeness,
    correlation,
    families,
    paired,
    sensitivity,
    slices,
    trend,
)
from stats.estimates import Estimate
from stats.rates import ClusterSums, clustered_wilson, sum_cluster_arrays

# The questions of study 000, and clusters of the same mean size that are all alike.
SIZES = np.arange(1, 9)
WEIGHTS = np.array([0.12, 0.18, 0.22, 0.18, 0.13, 0.09, 0.05, 0.03])
EVEN = 4
NOMINAL = 0.95
# What an interval must reach from 20 clusters on, and up to which correlation.
ENOUGH, CLUSTERED, MANY = 0.90, 0.3, 20
ITEMS, CLUSTERS = 1_000_000, 10_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]


@dataclass(frozen=True)
class Shape:
    """Clusters of items with binary detection: their number, the rate, the correlation within, and
    whether all clusters have the same size."""

    clusters: int
    rate: float
    within: float
    even: bool = False


SHAPES = [
    Shape(clusters, rate, within, even)
    for even in (False, True)
    for clusters in (5, 10, 20, 40, 80, 170)
    for within in (0.0, 0.1, 0.3, 0.5, 0.8)
    for rate in (0.02, 0.1, 0.3, 0.5, 0.9, 0.98)
]


@dataclass(frozen=True)
class Coverage:
    """The share of 95 % intervals that contain the true rate, and their mean width."""

    share: float
    width: float


def drawn(shape: Shape, rng: np.random.Generator, sets: int) -> Iterator[tuple[Ints, Ints]]:
    """Simulate data sets: the items and the hits of each cluster (beta-binomial)."""
    for _ in range(sets):
        sizes = np.full(shape.clusters, EVEN)
        if not shape.even:
            sizes = rng.choice(SIZES, size=shape.clusters, p=WEIGHTS)
        yield sizes, rng.binomial(sizes, rates(shape, rng))


def rates(shape: Shape, rng: np.random.Generator) -> Floats:
    if not shape.within:
        return np.full(shape.clusters, shape.rate)
    spread = 1 / shape.within - 1
    return rng.beta(shape.rate * spread, (1 - shape.rate) * spread, size=shape.clusters)


def coverage(shape: Shape, rng: np.random.Generator, sets: int) -> tuple[Coverage, Coverage]:
    """Simulate clustered intervals, and intervals that treat items as independent."""
    clustered, plain = [], []
    for sizes, hits in drawn(shape, rng, sets):
        n, y = int(sizes.sum()), int(hits.sum())
        clustered.append(clustered_wilson(sum_cluster_arrays(sizes, hits), NOMINAL))
        plain.append(clustered_wilson(ClusterSums(n, n, y, n, y, y), NOMINAL))
    return _covered(clustered, shape.rate), _covered(plain, shape.rate)


def _covered(found: list[Estimate], rate: float) -> Coverage:
    ends = np.array([(one.low, one.high) for one in found], dtype=float)
    inside = (ends[:, 0] <= rate) & (rate <= ends[:, 1])
    return Coverage(float(inside.mean()), float((ends[:, 1] - ends[:, 0]).mean()))


def with_error(share: float, sets: int) -> str:
    return f"{100 * share:5.1f} +- {100 * sqrt(share * (1 - share) / sets):.1f}"


def print_coverage(rng: np.random.Generator, sets: int) -> None:
    """A line for each number of clusters and correlation: the rate at which coverage is least."""
    print(
        f"coverage of {100 * NOMINAL:.0f} % intervals of a rate, in per cent, {sets:,} sets each:"
    )
    print(
        "the least over the rates " + ", ".join(f"{one:g}" for one in _rates()) + ", with its rate"
    )
    print("clusters  sizes   within     clustered  at    width         plain   width")
    low = 0
    for (clusters, even, within), shapes in groupby(SHAPES, _all_but_rate):
        found = [(*coverage(shape, rng, sets), shape.rate) for shape in shapes]
        clustered, _, rate = min(found, key=lambda one: one[0].share)
        plain = min((one[1] for one in found), key=lambda one: one.share)
        width = [float(np.mean([one[place].width for one in found])) for place in (0, 1)]
        error = sqrt(ENOUGH * (1 - ENOUGH) / sets)
        missed = clustered.share < ENOUGH - 2 * error and within <= CLUSTERED
        low += missed and clusters >= MANY
        print(
            f"{clusters:8}  {'even  ' if even else 'uneven'}  {within:6.1f}   "
            f"{with_error(clustered.share, sets)}  {rate:4.2f}  {width[0]:.3f}   "
            f"{with_error(plain.share, sets)}   {width[1]:.3f}{'  below' * missed}",
            flush=True,
        )
    print(
        f"{low} of those with {MANY} clusters or more and a correlation up to {CLUSTERED} are "
        f"below {100 * ENOUGH:.0f} % by more than two standard errors"
    )


def _rates() -> list[float]:
    return sorted({shape.rate for shape in SHAPES})


def _all_but_rate(shape: Shape) -> tuple[int, bool, float]:
    return shape.clusters, shape.even, shape.within


def _ps(whole: bool, sizes: Ints, hits: Ints, rng: np.random.Generator) -> dict[str, float | None]:
    """The p of each test for one data set in which its hypothesis is true. Slices and kinds of
    items contain whole clusters, or split clusters."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    values = _as_items(sizes, hits, rng)
    units, of = (len(sizes), cluster) if whole else (len(cluster), np.arange(len(cluster)))
    inside, category = (rng.random(units) < 0.25)[of], rng.integers(6, size=units)[of]
    # Another evaluator with the same rate and other chances in each cluster.
    differences = values - _as_items(sizes, rng.binomial(sizes, rates(NULL, rng)), rng)
    return {
        "slice": slices.contrast_slice(values, inside, cluster, rng, category, draws=999).p,
        "missing": absence.permutation_p_value(values, category, cluster, rng, draws=199).p,
        "detection": paired.test_difference(differences, cluster, rng).p,
        "J": paired.test_j_difference(differences, inside, cluster).p,
        "trend": trend.estimate_trend(values, rng.integers(1, 5, size=units)[of], cluster).p,
    }


def _as_items(sizes: Ints, hits: Ints, rng: np.random.Generator) -> Floats:
    """The items of clusters, in random order: otherwise their first ones would be the hits."""
    return np.concatenate(
        [rng.permutation(np.arange(n) < y) for n, y in zip(sizes, hits, strict=True)]
    ).astype(float)


NULL = Shape(120, 0.3, 0.4)


def print_levels(rng: np.random.Generator, sets: int) -> None:
    print(
        f"\nfalse findings at 5 %, in per cent, {sets:,} sets each, correlation {NULL.within} in"
        f" {NULL.clusters} clusters; at most {100 * _most(sets):.1f} by two standard errors"
    )
    for name, whole in (("whole clusters", True), ("parts of clusters", False)):
        found = [_ps(whole, *one, rng) for one in drawn(NULL, rng, sets)]
        for test in found[0]:
            share = float(np.mean([p is not None and p <= 0.05 for p in (f[test] for f in found)]))
            above = "  above" * (share > _most(sets))
            print(f"{name:20}{test:12}{with_error(share, sets)}{above}", flush=True)


def _most(sets: int) -> float:
    return 0.05 + 2 * sqrt(0.05 * 0.95 / sets)


# How many of the slices are blind, and how many points more of their errors are missed.
SLICES, PLANTED, DEEPER = 12, 3, 0.3


def print_discoveries(rng: np.random.Generator, sets: int) -> None:
    """Search twelve slices of which three are blind, or none, as the page Blind spots does."""
    print(f"\nblind spots, {SLICES} slices of 120 clusters, q at 5 %, {sets:,} sets each")
    for planted in (0, PLANTED):
        false, power = [], []
        for sizes, _ in drawn(NULL, rng, sets):
            cluster = np.repeat(np.arange(len(sizes)), sizes)
            slice_of = rng.integers(SLICES, size=len(cluster))
            missed = rates(NULL, rng)[cluster] + DEEPER * (slice_of < planted)
            values = (rng.random(len(cluster)) < missed).astype(float)
            among = slices.SliceableItems.from_values(values, cluster, rng)
            ps = [among.contrast(slice_of == one, draws=1_999).p for one in range(SLICES)]
            qs = families.benjamini_hochberg(ps)
            blind = {one for one, q in enumerate(qs) if q is not None and q <= 0.05}
            false.append(len([one for one in blind if one >= planted]) / max(1, len(blind)))
            power.append(len([one for one in blind if one < planted]))
        rate = float(np.mean(false))
        words = f"{planted} planted: false discoveries {with_error(rate, sets)}"
        if planted:
            words += f", power {100 * sum(power) / planted / sets:.1f}"
        print(words + "  above" * (rate > _most(sets)), flush=True)


# Rates of two evaluators, clusters, and the correlation within.
PAIRS = [
    (one, other, clusters, within)
    for clusters in (10, 20, 40, 120)
    for within in (0.1, 0.3)
    for one, other in ((0.5, 0.5), (0.95, 0.95), (0.9, 0.7), (0.98, 0.9))
]


def print_differences(rng: np.random.Generator, sets: int) -> None:
    """Coverage of the difference of two detection rates, and of that of two J."""
    print(f"\ncoverage of 95 % intervals of differences between two runs, {sets:,} sets each")
    print("clusters  within   rates         detection  width          J      width")
    for one, other, clusters, within in PAIRS:
        found = [_differences(one, other, clusters, within, rng) for _ in range(sets)]
        parts = []
        for place, truth in enumerate((one - other, one - other)):
            ends = np.array([(f[place].low, f[place].high) for f in found], dtype=float)
            covered = float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
            parts.append(f"{with_error(covered, sets)}  {(ends[:, 1] - ends[:, 0]).mean():.3f}")
        print(
            f"{clusters:8}  {within:6.1f}   {one:.2f} {other:.2f}   {'   '.join(parts)}", flush=True
        )


def _differences(
    one: float, other: float, clusters: int, within: float, rng: np.random.Generator
) -> tuple[Estimate, Estimate]:
    """The differences of detection and of J, between evaluators for which the same questions are
    hard, and which give as many false alarms: 10 % of a fifth of the items."""
    sizes = rng.choice(SIZES, size=clusters, p=WEIGHTS)
    cluster, ease = np.repeat(np.arange(clusters), sizes), rng.random(clusters)
    invariant = rng.random(len(cluster)) < 0.2
    # At least one of each kind, in two clusters.
    invariant[cluster == 0], invariant[cluster == 1] = True, True
    invariant[cluster == 2], invariant[cluster == 3] = False, False
    spread = 1 / within - 1
    hits = []
    for rate in (one, other):
        chances = [betaincinv(p * spread, (1 - p) * spread, ease)[cluster] for p in (rate, 0.1)]
        hits.append(rng.random(len(cluster)) < np.where(invariant, chances[1], chances[0]))
    apart = hits[0].astype(float) - hits[1]
    detection, alarm = (
        paired.estimate_difference(apart[side], cluster[side]) for side in (~invariant, invariant)
    )
    return detection, sensitivity.youden_j(detection, alarm)


# Detection and false alarms of two runs: with the same J at other rates, alike, and with another J.
POINTS = [
    ((0.7, 0.2), (0.5, 0.0)),
    ((0.95, 0.25), (0.75, 0.05)),
    ((0.7, 0.2), (0.7, 0.2)),
    ((0.9, 0.05), (0.6, 0.1)),
]
# Error items and score-invariant items.
KINDS = [(52, 5), (200, 10), (200, 20), (200, 60)]
# The correlation within questions, and of a question's detection and false alarms in a run: 1 if it
# is the same question that draws both, -1 if the opposite one does.
TOGETHER = [(0.0, 0), (0.3, 1), (0.3, -1)]


def print_j_tests(rng: np.random.Generator, sets: int) -> None:
    """How often the test of J finds a difference: at most at its level if J is the same."""
    print(
        f"\npairs of runs with p < 0.05 for the difference of J, in per cent, {sets:,} sets each;"
        f" at most {100 * _most(sets):.1f} by two standard errors if J is the same"
    )
    print("detection / false alarms   items     within  together   J apart   p < 0.05")
    for one, other in POINTS:
        apart = round(one[0] - one[1] - other[0] + other[1], 9)
        for errors, calm in KINDS:
            for within, together in TOGETHER:
                found = [
                    paired.test_j_difference(
                        *_draw_pair(one, other, errors, calm, within, together, rng)
                    ).p
                    for _ in range(sets)
                ]
                share = float(np.mean([p is not None and p < 0.05 for p in found]))
                above = "  above" * (not apart and share > _most(sets))
                points = f"{one[0]:.2f}/{one[1]:.2f} {other[0]:.2f}/{other[1]:.2f}"
                print(
                    f"{points}   {errors:7}/{calm:<4}{within:8.1f}{together:10}{apart:10.2f}   "
                    f"{with_error(share, sets)}{above}",
                    flush=True,
                )


def _draw_pair(
    one: tuple[float, float],
    other: tuple[float, float],
    errors: int,
    calm: int,
    within: float,
    together: int,
    rng: np.random.Generator,
) -> tuple[Floats, NDArray[np.bool_], Ints]:
    """The differences of two runs, which items are score-invariant, and the clusters; one item each
    without a correlation. Each run finds other clusters hard."""
    n = errors + calm
    invariant = rng.permutation(n) < calm
    cluster = np.arange(n)
    if within:
        cluster = np.repeat(cluster, rng.choice(SIZES, size=n, p=WEIGHTS))[:n]
    hits = []
    for detection, alarm in (one, other):
        chances = np.where(invariant, alarm, detection)
        if within:
            ease, spread = rng.random(n), 1 / within - 1
            at = np.where(invariant & (together < 0), 1 - ease[cluster], ease[cluster])
            inside = chances > 0
            chances[inside] = betaincinv(
                chances[inside] * spread, (1 - chances[inside]) * spread, at[inside]
            )
        hits.append((rng.random(n) < chances).astype(float))
    return hits[0] - hits[1], invariant, cluster


# Error items, score-invariant items, detection and false alarms.
SENSITIVITIES = [
    *((200, 20, rate, rate) for rate in (0.05, 0.5, 0.95)),
    *((200, 20, 0.8, 0.3), (200, 20, 0.9, 0.1), (200, 60, 0.95, 0.95), (200, 60, 0.9, 0.1)),
    *((100, 100, 0.95, 0.95), (80, 20, 0.95, 0.6), (40, 20, 0.9, 0.1), (40, 12, 0.7, 0.4)),
    *((40, 12, 0.9, 0.1), (20, 20, 0.8, 0.3)),
]


def print_d_primes(rng: np.random.Generator, sets: int) -> None:
    """Coverage of the intervals of d', of single items, and how often there is none."""
    print(f"\ncoverage of 95 % intervals of d', in per cent, {sets:,} sets each")
    print("items      detection  false alarms   covered       no interval")
    for errors, calm, detection, alarm in SENSITIVITIES:
        truth = float(ndtri(detection) - ndtri(alarm))
        invariant = np.arange(errors + calm) >= errors
        ends = []
        for _ in range(sets):
            hits = rng.random(errors + calm) < np.where(invariant, alarm, detection)
            one = sensitivity.estimate_d_prime(hits, invariant, np.arange(errors + calm), rng)
            if one.low is not None and one.high is not None:
                ends.append((one.low, one.high))
        covered = float(np.mean([low <= truth <= high for low, high in ends]))
        print(
            f"{f'{errors}/{calm}':10} {detection:9.2f} {alarm:13.2f}   "
            f"{with_error(covered, len(ends))} {100 * (1 - len(ends) / sets):11.1f}",
            flush=True,
        )


def print_times(rng: np.random.Generator, items: int) -> None:
    cluster = rng.integers(CLUSTERS, size=items)
    hits = rng.random(items) < (rng.random(CLUSTERS) / 2 + 0.25)[cluster]
    people, scores = rng.integers(1, 4, size=items), rng.integers(1, 11, size=items)
    rouge = np.round(rng.random(items), 3)
    half = rng.random(items) < 0.5
    category = rng.integers(22, size=items)
    apart = hits.astype(int) - (rng.random(items) < 0.5)
    figures = {
        "d'": lambda: sensitivity.d_prime(hits, half),
        "RMSE": lambda: closeness.rmse(people, scores),
        "Pearson": lambda: correlation.pearson(people, scores),
        "Spearman": lambda: correlation.spearman(people, scores),
        "Kendall": lambda: correlation.kendall(people, scores),
        "Spearman, ROUGE-L": lambda: correlation.spearman(people, rouge),
        "Kendall, ROUGE-L": lambda: correlation.kendall(people, rouge),
    }
    print(f"\nseconds for {items:,} outcomes in {CLUSTERS:,} clusters, {bootstrap.DRAWS:,} draws")
    for name, figure in figures.items():
        seconds(name, lambda figure=figure: bootstrap.estimate(figure(), cluster, rng))
    seconds("signs", lambda: paired.test_difference(apart, cluster, rng))
    seconds("a category", lambda: slices.contrast_slice(hits, category == 3, cluster, rng))
    seconds("a large slice", lambda: slices.contrast_slice(hits, half, cluster, rng, category))
    few = np.isin(cluster, np.arange(150)) & half
    seconds(
        "a slice of 150 clusters", lambda: slices.contrast_slice(hits, few, cluster, rng, category)
    )
    gone = rng.random(items) < 0.01
    seconds(
        "missing by category", lambda: absence.permutation_p_value(gone, category, cluster, rng)
    )


def seconds(name: str, of: Callable[[], object]) -> None:
    start = time.perf_counter()
    of()
    print(f"{name:24} {time.perf_counter() - start:6.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, to see that it runs")
    tenth = 10 if parser.parse_args().quick else 1
    rng = np.random.Generator(np.random.PCG64(1))
    print_coverage(rng, 4_000 // tenth)
    print_differences(rng, 1_000 // tenth)
    print_levels(rng, 1_000 // tenth)
    print_j_tests(rng, 1_000 // tenth)
    print_d_primes(rng, 1_000 // tenth)
    print_discoveries(rng, 400 // tenth)
    print_times(rng, ITEMS // tenth)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
