"""Rates that an evaluator reports, corrected by a sample of items that people labelled too.

The evaluator judged all items, people a random sample of them. For each item there is the verdict
of the evaluator (0, 1 or a share between), the label of people (0 or 1, nan where nobody labelled
it), and the number of its cluster. The rate to estimate is the share of 1 that people would have
given. Variances are linearised, with the items of a cluster taken together:
v = m / (m - 1) sum e_c^2, where e_c is the sum of the influences of a cluster's items and m the
number of clusters. As in `rates.clustered_wilson`, intervals use Student's quantile for the
effective number of clusters, here of those with a label, and the normal one if each of these has
one label. They are cut to 0 and 1.
"""

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.estimates import Estimate
from stats.rates import estimate_rate, find_quantile

Floats = NDArray[np.float64]

NO_LABELS, ALL_LABELLED = "no labels of people", "all items have labels of people"
ONE_LABELLED_CLUSTER = "labels in one cluster only"
ONE_KIND = "labels of one kind only"
NO_BETTER = "no better than chance on the labelled items"
NO_SPREAD = "nothing varies"
NO_GOLD_CHECK = "no check of gold answers"
ALL_CREDITED = "the check finds an error in every explanation"
CUT = "cut to the range from 0 to 1"


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The rate by people's labels alone, by the evaluator alone on the items without labels, and
    three corrected estimates. `weight` is that of the evaluator in PPI++, 0 to 1, None without an
    estimate."""

    people: Estimate
    evaluator: Estimate
    rogan_gladen: Estimate
    ppi: Estimate
    ppi_plus: Estimate
    weight: float | None


@dataclass(frozen=True, slots=True)
class _Sample:
    labels: Floats
    judged: Floats  # by the evaluator, on the items with labels
    rest: Floats  # by the evaluator, on the items without
    cluster: NDArray[np.int_]  # of the items with labels, then of the others
    level: float

    def estimate(self, value: float, of_labelled: Floats, of_rest: Floats) -> Estimate:
        """The estimate with these influences, which have a mean of 0 and are divided here by the
        number of items."""
        n, reason = len(self.labels) + len(self.rest), "" if 0 <= value <= 1 else CUT
        value = min(1.0, max(0.0, value))
        labelled = np.bincount(self.cluster[: len(self.labels)])
        if np.count_nonzero(labelled) < 2:
            return Estimate(value, None, None, n, ONE_LABELLED_CLUSTER)
        each = np.concatenate([of_labelled / len(self.labels), of_rest / max(1, len(self.rest))])
        sums = np.bincount(self.cluster, weights=each)
        m = int(self.cluster.max()) + 1
        variance = m / (m - 1) * float((sums**2).sum())
        if variance <= 1e-18:
            return Estimate(value, None, None, n, NO_SPREAD)
        alone = None if labelled.max() == 1 else len(self.labels) ** 2 / float((labelled**2).sum())
        width = find_quantile(self.level, alone) * sqrt(variance)
        return Estimate(value, max(0.0, value - width), min(1.0, value + width), n, reason)


def correct_rate(
    verdicts: ArrayLike, labels: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> CorrectedRate:
    """Estimate the rate of 1 among all items in five ways.

    n items have labels Y and verdicts f, N others have verdicts only. People: mean Y. Evaluator:
    mean f of the others. Both have the interval of `rates.clustered_wilson`. PPI (Angelopoulos and
    others 2023): mean f of the others + mean (Y - f). PPI++ (Angelopoulos, Duchi and Zrnic 2023):
    w mean f of the others + mean (Y - w f), with the weight w = cov(Y, f) / ((1 + n / N) var f),
    cut to 0 and 1; cov over the labelled items divides by n, var over all items by n + N - 1. With
    w = 0 it is people's labels alone, with w = 1 PPI. Rogan and Gladen (1978): (p + specificity -
    1) / (sensitivity + specificity - 1) with p = mean f of the others, the interval by the delta
    method; it needs labels of both kinds, and an evaluator that is better than chance on them.

    Items with an nan verdict are left out. There are no corrected estimates if all items have
    labels or none has. An interval needs labels in two clusters; `reason` says what is lacking, or
    that a value was outside 0 to 1 and was cut. Raises ValueError for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    sample = _sort(verdicts, labels, clusters, level)
    y, rest = sample.labels, sample.rest
    people = estimate_rate(y, sample.cluster[: len(y)])
    evaluator = estimate_rate(rest, sample.cluster[len(y) :])
    if not len(y) or not len(rest):
        reason = ALL_LABELLED if len(y) else NO_LABELS
        none = Estimate(None, None, None, len(y) + len(rest), reason)
        return CorrectedRate(people, evaluator, none, none, none, None)
    weight = _tune(y, sample.judged, rest)
    return CorrectedRate(
        people,
        evaluator,
        rogan_gladen=_rogan_gladen(sample),
        ppi=_ppi(sample, 1.0),
        ppi_plus=_ppi(sample, weight),
        weight=weight,
    )


def correct_credit(found: float, false_credit: float) -> float | None:
    """The share of errors that explanations really name, of the share `found` that a check says
    they name, if it also says so of a share `false_credit` of explanations that name none.

    That is Rogan and Gladen's formula with a sensitivity of 1: (found - false credit) / (1 - false
    credit), cut to 0 and 1; None if every explanation gets false credit.
    """
    if false_credit >= 1:
        return None
    return min(1.0, max(0.0, (found - false_credit) / (1 - false_credit)))


def correct_after_credit(
    after: Estimate, equal: float, found: float | None, false_credit: Estimate
) -> Estimate:
    """The undetected rate after credit for explanations, corrected for false credit.

    `after` is the rate if all that a check finds is credited: undetected minus found, of the parsed
    items. `equal` is the share of the parsed items whose explanations were checked, `found` the
    share of these in which the check finds an error, and `false_credit` the same share for
    explanations that name none. The corrected rate is after + equal (found - `correct_credit`). Its
    interval adds the squared distances of the ends of `after`, and of the values at the ends of
    `false_credit`, and takes the root (Zou and Donner 2008). No value without a rate of false
    credit, or if every explanation gets it; no interval if one of the two rates has none.
    """
    if after.value is None or found is None or false_credit.value is None:
        return Estimate(None, None, None, after.n, after.reason or NO_GOLD_CHECK)
    if false_credit.value >= 1:
        return Estimate(None, None, None, after.n, ALL_CREDITED)
    base = after.value

    def at(credit: float) -> float:
        real = correct_credit(found, credit)
        return base + equal * (found - (0.0 if real is None else real))

    value = at(false_credit.value)
    if after.low is None or after.high is None:
        return Estimate(value, None, None, after.n, after.reason)
    if false_credit.low is None or false_credit.high is None:
        return Estimate(value, None, None, after.n, false_credit.reason)
    below = hypot(base - after.low, value - at(false_credit.low))
    above = hypot(after.high - base, at(false_credit.high) - value)
    return Estimate(value, max(0.0, value - below), min(1.0, value + above), after.n)


def _sort(verdicts: ArrayLike, labels: ArrayLike, clusters: ArrayLike, level: float) -> _Sample:
    f, y = np.asarray(verdicts, dtype=float), np.asarray(labels, dtype=float)
    there = ~np.isnan(f)
    labelled, others = there & ~np.isnan(y), there & np.isnan(y)
    cluster = np.asarray(clusters)
    order = np.concatenate([cluster[labelled], cluster[others]])
    _, numbers = np.unique(order, return_inverse=True)
    return _Sample(y[labelled], f[labelled], f[others], numbers, level)


def _tune(y: Floats, f: Floats, rest: Floats) -> float:
    """The weight of the evaluator that makes the variance of PPI++ least."""
    every = np.concatenate([f, rest])
    spread = float(every.var(ddof=1)) if len(every) > 1 else 0.0
    if spread <= 0:
        return 0.0
    shared = float(((y - y.mean()) * (f - f.mean())).mean())
    return min(1.0, max(0.0, shared / ((1 + len(y) / len(rest)) * spread)))


def _ppi(sample: _Sample, weight: float) -> Estimate:
    rectifier = sample.labels - weight * sample.judged
    imputed = weight * sample.rest
    value = float(imputed.mean() + rectifier.mean())
    return sample.estimate(value, rectifier - rectifier.mean(), imputed - imputed.mean())


def _rogan_gladen(sample: _Sample) -> Estimate:
    y, f, rest = sample.labels, sample.judged, sample.rest
    n = len(y) + len(rest)
    positive = y > 0.5
    if positive.all() or not positive.any():
        return Estimate(None, None, None, n, ONE_KIND)
    sensitivity, specificity = float(f[positive].mean()), float(1 - f[~positive].mean())
    j, p = sensitivity + specificity - 1, float(rest.mean())
    if j <= 0:
        return Estimate(None, None, None, n, NO_BETTER)
    value = (p + specificity - 1) / j
    # The derivatives by sensitivity and specificity, at the value itself, which may be outside 0
    # to 1.
    share = float(positive.mean())
    apart = np.where(
        positive,
        -value * (f - sensitivity) / share,
        (1 - value) * (1 - f - specificity) / (1 - share),
    )
    return sample.estimate(value, apart / j, (rest - p) / j)
