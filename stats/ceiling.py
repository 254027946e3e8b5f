"""Compare the evaluator with human raters: human ceiling and alternative annotator test.

Both take the raters' labels as items x raters and the evaluator's as one number per item, nan if
missing. Each rater in turn is compared with the other raters. The evaluator is compared with the
same other raters on the same items. An item is used if the rater, another rater and the evaluator
labelled it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from stats import bootstrap
from stats.agreement import interval_alpha
from stats.bootstrap import Figure
from stats.correlation import rank_values
from stats.families import benjamini_yekutieli
from stats.means import clustered_mean
from stats.paired import ONE_CLUSTER, estimate_difference

# With two raters, a random evaluator passes if they do not agree much.
FEWEST_RATERS = 3
FEWEST_ITEMS = 50
SIGNIFICANT = 0.05
TOO_FEW = (
    f"under {FEWEST_RATERS} raters with {FEWEST_ITEMS} items shared with others and the evaluator"
)

NO_AGREEMENT = "the annotators agree no better than by chance"

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Measure = Callable[[Floats, Floats], Figure]
Scale = Literal["nominal", "interval"]


@dataclass(frozen=True, slots=True, eq=False)
class RaterCeiling:
    """A rater (column) and the evaluator, each compared with the mean of the other raters.

    `bootstrap.subtract_figures(evaluator, people)` is the evaluator's lead over the rater.
    """

    rater: int
    people: Figure
    evaluator: Figure


def rater_ceilings(table: ArrayLike, evaluator: ArrayLike, measure: Measure) -> list[RaterCeiling]:
    """The ceiling of each rater who shares items with another.

    A ceiling has the closeness of the rater and that of the evaluator to the mean of the other
    raters' labels. The measure of closeness is, for example, `correlation.spearman`.
    """
    given, said = _check_sides(table, evaluator)
    found = []
    for rater, shared in shared_items(given, said):
        others = np.delete(given, rater, axis=1)
        means = np.full(len(given), np.nan)
        means[shared] = np.nanmean(others[shared], axis=1)
        found.append(RaterCeiling(rater, measure(means, given[:, rater]), measure(means, said)))
    return found


def mean_ceiling(found: list[RaterCeiling]) -> RaterCeiling | None:
    """The unweighted means over raters of the human ceiling and of the evaluator; `rater` is -1.

    A mean is undefined if one rater's value is undefined. The result is None without raters.
    """
    if not found:
        return None
    people, evaluator = [one.people for one in found], [one.evaluator for one in found]
    return RaterCeiling(-1, mean_figure(people), mean_figure(evaluator))


def rater_bounds(table: ArrayLike, evaluator: ArrayLike, *, ranks: bool = False) -> list[Figure]:
    """The correlation that a perfect evaluator would have with the mean of the others, for each
    rater of `rater_ceilings`, in the same order and on the same items.

    A perfect evaluator gives the true value; the mean of k others has errors of its own, so that
    correlation is the root of the reliability of the mean, k r / (1 + (k - 1) r) (Spearman 1910,
    Brown 1910). r, the reliability of one rater, is Krippendorff's interval alpha over all raters
    of these items, and k the harmonic mean of the number of others. One more rater reaches the root
    of r times the reliability of the mean: with r = .5 and two others .58, and a perfect evaluator
    .82. The raters' errors are taken to be independent and of the same size. With `ranks`, for
    Spearman's correlation, numbers are replaced by their mid-ranks over all labels (r is then the
    ordinal alpha); that is an approximation.

    Undefined if all labels are the same, or if r is not above 0: the raters then agree no better
    than by chance.
    """
    given, said = _check_sides(table, evaluator)
    return [_bound(given, rater, shared, ranks) for rater, shared in shared_items(given, said)]


def _bound(given: Floats, rater: int, shared: Bools, ranks: bool) -> Figure:
    labels = np.where(shared[:, None], given, np.nan)
    others = (~np.isnan(np.delete(labels, rater, axis=1))).sum(axis=1)
    if ranks:
        labels = rank_values(labels)
    alpha = interval_alpha(labels)
    inverse = clustered_mean(np.where(shared, 1 / np.maximum(others, 1), np.nan))

    def of(values: Floats) -> Floats:
        r, inverse_k = values.T
        # k r / (1 + (k - 1) r), both sides divided by k.
        mean = np.divide(r, inverse_k + (1 - inverse_k) * r, out=np.zeros_like(r), where=r > 0)
        return np.where(r > 0, np.sqrt(mean), np.nan)

    found = bootstrap.combine_figures([alpha, inverse], of)
    return found if alpha.point().value is None else replace(found, undefined=NO_AGREEMENT)


def mean_figure(figures: list[Figure]) -> Figure:
    """The unweighted mean of figures over the same items, undefined if one of them is."""
    return bootstrap.combine_figures(figures, lambda values: values.mean(axis=1))


@dataclass(frozen=True, slots=True)
class Advantage:
    """The evaluator against one rater: how often each is at least as close to the other raters.

    `evaluator` and `people` are fractions of the `n` items. `p` tests that the evaluator is not as
    good; `q` is adjusted over the raters after Benjamini and Yekutieli.
    """

    rater: int
    n: int
    evaluator: float
    people: float
    p: float | None
    q: float | None


@dataclass(frozen=True, slots=True)
class AltTest:
    """May the evaluator replace a rater? Yes if `wins` is one half or more.

    `wins` is the share of raters that the evaluator beats at q < alpha. `advantage` is the mean
    over raters of `Advantage.evaluator`. `reason` says why a value is None.
    """

    epsilon: float
    wins: float | None
    advantage: float | None
    raters: tuple[Advantage, ...]
    reason: str = ""

    @property
    def passed(self) -> bool | None:
        """True if `wins` is one half or more; None if `wins` is unknown."""
        return None if self.wins is None else self.wins >= 0.5


def alt_test(
    table: ArrayLike,
    evaluator: ArrayLike,
    clusters: ArrayLike,
    epsilon: float,
    scale: Scale = "nominal",
    alpha: float = SIGNIFICANT,
) -> AltTest:
    """The alternative annotator test (Calderon, Reichart and Dror 2025, section 3).

    An item's closeness is minus the share of the others with a different label (nominal) or minus
    the root mean squared distance from their labels (interval). Against rater j the evaluator wins
    an item if it is at least as close as j, and j wins it if j is at least as close as the
    evaluator. A one-sided t test checks that j's share of wins exceeds the evaluator's by less than
    `epsilon`, the allowance for the evaluator being cheaper (0.2 for experts, 0.15 for trained
    people, 0.1 for crowds). The variance is clustered, as in `paired.estimate_difference`; with one
    item per cluster, the test is the paired t test of the paper. Raters with under 50 shared items
    are left out, and three raters are needed. There is no test if all items of a rater are in one
    cluster.
    """
    given, said = _check_sides(table, evaluator)
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    found = [
        _advantage(rater, given, said, shared, cluster, epsilon, scale)
        for rater, shared in shared_items(given, said)
        if shared.sum() >= FEWEST_ITEMS
    ]
    if len(found) < FEWEST_RATERS:
        return AltTest(epsilon, None, None, (), TOO_FEW)
    qs = benjamini_yekutieli([one.p for one in found])
    raters = tuple(
        Advantage(one.rater, one.n, one.evaluator, one.people, one.p, q)
        for one, q in zip(found, qs, strict=True)
    )
    known = [q for q in qs if q is not None]
    advantage = sum(one.evaluator for one in raters) / len(raters)
    if len(known) < len(raters):
        return AltTest(epsilon, None, advantage, raters, ONE_CLUSTER)
    return AltTest(epsilon, sum(q < alpha for q in known) / len(raters), advantage, raters)


def _advantage(
    rater: int,
    given: Floats,
    said: Floats,
    shared: Bools,
    cluster: NDArray[np.int_],
    epsilon: float,
    scale: Scale,
) -> Advantage:
    others = np.delete(given, rater, axis=1)[shared]
    own = _closeness(given[shared, rater], others, scale)
    its = _closeness(said[shared], others, scale)
    p = _p(np.sign(own - its), cluster[shared], epsilon)
    return Advantage(
        rater, len(own), float((its >= own).mean()), float((own >= its).mean()), p, None
    )


def _p(differences: Floats, cluster: NDArray[np.int_], epsilon: float) -> float | None:
    """The p of the hypothesis that the mean difference is epsilon or more; None with one
    cluster."""
    found = estimate_difference(differences, cluster)
    clusters = len(np.unique(cluster))
    if found.value is None or clusters == 1:
        return None
    if found.standard_error is None:
        return float(found.value >= epsilon)
    return float(stdtr(clusters - 1, (found.value - epsilon) / found.standard_error))


def _closeness(labels: Floats, others: Floats, scale: Scale) -> Floats:
    """The closeness per item (higher is closer), rounded so that equal distances tie."""
    there = ~np.isnan(others)
    apart = np.where(there, labels[:, None] - others, 0.0)
    if scale == "nominal":
        return -np.round((apart != 0).sum(axis=1) / there.sum(axis=1), 9)
    return -np.round(np.sqrt((apart**2).sum(axis=1) / there.sum(axis=1)), 9)


def _check_sides(table: ArrayLike, evaluator: ArrayLike) -> tuple[Floats, Floats]:
    given, said = np.asarray(table, dtype=float), np.asarray(evaluator, dtype=float)
    if given.ndim != 2 or said.shape != (len(given),):
        raise ValueError(f"{given.shape} labels do not go with {said.shape} of the evaluator")
    return given, said


def shared_items(given: Floats, said: Floats) -> Iterator[tuple[int, Bools]]:
    """For each rater (column), the items that the rater, another rater and the evaluator scored.

    Raters without such items are left out. `rater_ceilings` and `alt_test` use these items.
    """
    there = ~np.isnan(given)
    several = (there.sum(axis=1) > 1) & ~np.isnan(said)
    for rater in range(given.shape[1]):
        shared = there[:, rater] & several
        if shared.any():
            yield rater, shared
