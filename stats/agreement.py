"""Agreement between annotators who label the same items.

Percent agreement, agreement with the majority of the others and accuracy against known answers are
rates, and have the interval of a rate. The other measures are `Figure`s: `figure.point()` returns
the value alone, and `bootstrap.estimate(figure, ratings.clusters, rng)` adds the interval. The
maximum of every measure is 1. For the chance-corrected measures 0 is chance level and below 0 is
worse than chance. An undefined value is None with a reason, never 0 or 1.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from stats.bootstrap import Figure
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters
from stats.ratings import MISSING, RatingPairs, Ratings, rating_pairs

Weights = Literal["identity", "linear", "quadratic", "ordinal"]
Level = Literal["nominal", "ordinal", "interval"]

Floats = NDArray[np.float64]

NO_PAIR = "no item with two labels"
CONSTANT = "all labels are the same"


def percent_agreement(ratings: Ratings) -> Estimate:
    """Share of agreeing pairs among all pairs of labels of the same item, as a rate.

    This equals the mean over pairs of annotators, weighted by the number of items they share. An
    item with more labels weighs more; if all items have the same number of labels, it equals
    Fleiss's mean over items. The value is a fraction of 1; `n` counts items with two labels or
    more.
    """
    two = rating_pairs(ratings)
    return _rate(ratings, two.item, two.code_a == two.code_b, NO_PAIR)


def confusion_matrix(ratings: Ratings, a: int, b: int) -> NDArray[np.int_]:
    """Count items by the class from rater a (row) and the class from rater b (column)."""
    both = (ratings.codes[:, [a, b]] != MISSING).all(axis=1)
    cells = ratings.codes[both, a] * ratings.classes + ratings.codes[both, b]
    shape = (ratings.classes, ratings.classes)
    return np.bincount(cells, minlength=ratings.classes**2).reshape(shape)


def cohen_kappa(ratings: Ratings, weights: Weights = "identity") -> Figure:
    """Cohen's kappa of each pair of raters, averaged with the number of shared items as weight.

    kappa = 1 - sum w o / sum w e, with o the confusion matrix, e = row sum x column sum / n and w
    the disagreement: 1 off the diagonal, |x - y| (linear) or (x - y)^2 (quadratic) of the classes'
    values (Cohen 1960; 1968). Undefined for a pair if both gave the same single class to all
    items; such pairs are left out of the mean and `reason` counts them. For one pair use
    `cohen_kappa(ratings.only(a, b))`.
    """
    two, size = rating_pairs(ratings), ratings.classes
    pair_ids, pair = np.unique(two.a * ratings.codes.shape[1] + two.b, return_inverse=True)
    apart = 1 - _weights(ratings.values, weights)
    # Of each pair's matrix, kappa only needs the sums of rows, of columns and of the disagreement:
    # many annotators have thousands of pairs, and a matrix has far more cells.
    first = pair * (2 * size + 1)
    places = (first + two.code_a, first + size + two.code_b, first + 2 * size)
    ones = np.ones(len(pair))
    terms = _sparse(
        np.concatenate([ones, ones, apart[two.code_a, two.code_b]]),
        np.tile(two.item, 3),
        np.concatenate(places),
        (len(ratings.codes), len(pair_ids) * (2 * size + 1)),
    )
    pairs = (len(pair_ids), 2 * size + 1)

    def of(sums: Floats) -> Floats:
        n, kappa = _kappas(sums.reshape(-1, *pairs), apart)
        defined = ~np.isnan(kappa)
        return _ratio(np.where(defined, n * kappa, 0).sum(axis=1), (n * defined).sum(axis=1))

    whole = np.asarray(terms.sum(axis=0), dtype=float).reshape(1, *pairs)
    left_out = int(np.isnan(_kappas(whole, apart)[1]).sum())
    note = f"left out {left_out} of {len(pair_ids)} pairs: {CONSTANT}" if left_out else ""
    return Figure(terms, of, _items(ratings, two), NO_PAIR, CONSTANT, note)


def fleiss_kappa(ratings: Ratings, k: int) -> Figure:
    """Fleiss's kappa on the items that have exactly k labels, from any raters.

    kappa = (P - Pe) / (1 - Pe); P is the mean over items of sum n_j (n_j - 1) / (k (k - 1)), Pe
    the sum of squared shares of the classes (Fleiss 1971). Undefined if all labels are the same,
    and for k under 2, where no disagreement is possible.
    """
    counts = ratings.counts()
    used = (counts.sum(axis=1) == k) & (k >= 2)
    agree = (counts * (counts - 1)).sum(axis=1) / max(1, k * (k - 1))
    terms = csr_array(np.column_stack([agree, np.ones(len(counts)), counts]) * used[:, None])

    def of(sums: Floats) -> Floats:
        n = sums[:, 1]
        chance = (_ratio(sums[:, 2:], k * n[:, None]) ** 2).sum(axis=1)
        return _ratio(_ratio(sums[:, 0], n) - chance, 1 - chance)

    return Figure(terms, of, used, f"no item with exactly {k} labels, two or more", CONSTANT)


def krippendorff_alpha(ratings: Ratings, level: Level = "nominal") -> Figure:
    """Krippendorff's alpha on all items with two labels or more, for any number of raters.

    alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck, with o the coincidence matrix (each pair
    of an item's m labels in both orders, divided by m - 1), n_c its row sums and n their sum. The
    distance d is 0 or 1 (nominal), (x_c - x_k)^2 of the values (interval), or the squared distance
    of the mid-ranks, where a mid-rank is n_c / 2 plus all counts below (ordinal, the same as (n_c +
    ... + n_k - (n_c + n_k) / 2)^2). Krippendorff (2011). Undefined if all labels on these items are
    the same.
    """
    two, size = rating_pairs(ratings), ratings.classes
    share = 1 / (ratings.counts().sum(axis=1)[two.item] - 1)
    cells = (two.code_a * size + two.code_b, two.code_b * size + two.code_a)
    terms = _sparse(
        np.concatenate([share, share]),
        np.concatenate([two.item, two.item]),
        np.concatenate(cells),
        (len(ratings.codes), size * size),
    )

    def of(sums: Floats) -> Floats:
        o = sums.reshape(len(sums), size, size)
        n_c = o.sum(axis=2)
        apart = _distances(n_c, ratings.values, level)
        expected = np.einsum("dc,dk,dck->d", n_c, n_c, apart, optimize=True)
        return 1 - _ratio((n_c.sum(axis=1) - 1) * (o * apart).sum(axis=(1, 2)), expected)

    return Figure(terms, of, _items(ratings, two), NO_PAIR, CONSTANT)


def interval_alpha(table: ArrayLike) -> Figure:
    """Krippendorff's alpha for numbers, items x raters with nan for a missing one: the same as
    `krippendorff_alpha` at the level "interval", for any number of different values.

    alpha = 1 - observed / expected. With the m numbers of an item, two or more, and all n of them:
    observed = 2 sum m / (m - 1) sum (x - mean of the item)^2 / n, expected = 2 (n sum x^2 - (sum
    x)^2) / (n (n - 1)) (Krippendorff 2011). For 0 and 1 it equals the nominal alpha. Raters are
    interchangeable, so they may be samples of one evaluator. Undefined if all numbers are the same.
    """
    x = np.asarray(table, dtype=float)
    m = (~np.isnan(x)).sum(axis=1)
    used = m > 1
    # Moved to about 0, which changes no difference and saves digits.
    x = np.where(used[:, None], x - (np.nanmean(x[used]) if used.any() else 0.0), np.nan)
    total, squares = np.nansum(x, axis=1), np.nansum(x * x, axis=1)
    within = np.maximum(0, squares - total**2 / np.maximum(m, 1)) * m / np.maximum(m - 1, 1)
    terms = csr_array(np.column_stack([m, total, squares, within]) * used[:, None])

    def of(sums: Floats) -> Floats:
        n, whole, square, apart = sums.T
        spread = n * square - whole**2
        expected = np.where(spread > 1e-9 * n * square, spread, 0.0)
        return 1 - _ratio((n - 1) * apart, expected)

    return Figure(terms, of, used, NO_PAIR, CONSTANT)


def gwet_ac(ratings: Ratings, weights: Weights = "identity") -> Figure:
    """Gwet's AC1 (weights "identity") or AC2 for any number of raters; labels may be missing.

    (pa - pe) / (1 - pe). pa is the mean over items with two labels or more of
    sum_k r_k (sum_l w_kl r_l - 1) / (r (r - 1)); pe = T / (q (q - 1)) sum pi_k (1 - pi_k), with T
    the sum of the weights, q the number of classes and pi_k the mean over all labelled items of
    r_k / r (Gwet 2008; 2014, chapters 4 and 5). The weights measure closeness: 1 - |x - y| / range
    (linear), 1 - (x - y)^2 / range^2 (quadratic), or by position 1 - C(|k - l| + 1, 2) / C(q, 2)
    (ordinal). q counts the declared classes, so pass the whole scale; with one class AC is
    undefined. If all labels are the same, the result is 1.
    """
    counts, q = ratings.counts(), ratings.classes
    r = counts.sum(axis=1)
    close = _weights(ratings.values, weights)
    agree = (counts * (counts @ close - 1)).sum(axis=1) / np.maximum(r * (r - 1), 1)
    shares = counts / np.maximum(r, 1)[:, None]
    terms = csr_array(np.column_stack([agree, r >= 2, r >= 1, shares]))
    spread = close.sum() / max(1, q * (q - 1))

    def of(sums: Floats) -> Floats:
        if q < 2:
            return np.full(len(sums), np.nan)
        pi = _ratio(sums[:, 3:], sums[:, 2:3])
        chance = spread * (pi * (1 - pi)).sum(axis=1)
        return _ratio(_ratio(sums[:, 0], sums[:, 1]) - chance, 1 - chance)

    return Figure(terms, of, r >= 2, NO_PAIR, "one class")


def agreement_with_majority(ratings: Ratings, rater: int) -> Estimate:
    """Share of a rater's labels that equal the majority of the others on the same item, as a rate.

    The majority is the class that more than half of the others gave; with one other rater it is
    that rater's label. Items without such a majority are left out; `n` counts the rest.
    """
    items, most = majorities_of_others(ratings, rater)
    own = ratings.codes[items, rater]
    return _rate(ratings, items, own == most, "no item with a majority of the others")


def majorities_of_others(ratings: Ratings, rater: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Find the items with a label from the rater and a majority of the others. Return their
    positions and the code of the majority on each."""
    others = np.delete(ratings.codes, rater, axis=1)
    counts = Ratings(others, ratings.values, ratings.clusters).counts()
    decided = 2 * counts.max(axis=1, initial=0) > counts.sum(axis=1)
    items = np.flatnonzero(decided & (ratings.codes[:, rater] != MISSING))
    return items, counts[items].argmax(axis=1) if items.size else items


def accuracy_against_known(ratings: Ratings, rater: int, known: ArrayLike) -> Estimate:
    """Share of a rater's labels that equal the item's known answer, as a rate.

    `known` holds one value per item, nan if no answer is known. A known answer that is not a class
    of the ratings never matches. `n` counts the items with a label and a known answer.
    """
    answers, own = np.asarray(known, dtype=float), ratings.codes[:, rater]
    items = np.flatnonzero(~np.isnan(answers) & (own != MISSING))
    hits = ratings.values[own[items]] == answers[items]
    return _rate(ratings, items, hits, "no item with a known answer")


def _rate(
    ratings: Ratings, items: NDArray[np.int_], hits: NDArray[np.bool_], empty: str
) -> Estimate:
    """Estimate a rate over cases. Each case belongs to an item and is a hit or not. `n` counts
    items, not cases."""
    if not items.size:
        return Estimate(None, None, None, 0, empty)
    cluster = ratings.clusters[items]
    cases, hit = np.bincount(cluster), np.bincount(cluster, weights=hits)
    rate = clustered_wilson(sum_clusters(zip(cases.tolist(), hit.tolist(), strict=True)))
    return Estimate(rate.value, rate.low, rate.high, len(np.unique(items)), rate.reason)


def _kappas(sums: Floats, apart: Floats) -> tuple[Floats, Floats]:
    """Number of items and kappa of each pair, draws x pairs; nan where undefined. `sums` has the
    row sums of each pair's confusion matrix, its column sums, and the sum of its disagreement."""
    rows, columns, disagreement = np.split(sums, [len(apart), 2 * len(apart)], axis=2)
    n = rows.sum(axis=2)
    chance = ((rows @ apart) * columns).sum(axis=2)
    return n, 1 - _ratio(n * disagreement[:, :, 0], chance)


def _weights(values: Floats, weights: Weights) -> Floats:
    """The closeness of every pair of classes, 1 on the diagonal and 0 for the farthest pair:
    classes x classes."""
    steps = values[:, None] - values
    if weights == "ordinal":
        ranks = np.abs(np.subtract.outer(np.arange(len(values)), np.arange(len(values))))
        steps = np.sqrt(ranks * (ranks + 1))
    if weights == "identity" or len(values) < 2:
        return np.eye(len(values))
    power = 1 if weights == "linear" else 2
    return 1 - (np.abs(steps) / np.abs(steps).max()) ** power


def _distances(n_c: Floats, values: Floats, level: Level) -> Floats:
    """The distances between classes for alpha: draws x classes x classes, since ranks depend on the
    draw."""
    if level == "nominal":
        return np.broadcast_to(1 - np.eye(len(values)), (len(n_c), len(values), len(values)))
    ranks = np.cumsum(n_c, axis=1) - n_c / 2 if level == "ordinal" else values[None, :]
    apart = (ranks[:, :, None] - ranks[:, None, :]) ** 2
    return np.broadcast_to(apart, (len(n_c), len(values), len(values)))


def _items(ratings: Ratings, two: RatingPairs) -> NDArray[np.bool_]:
    used = np.zeros(len(ratings.codes), dtype=bool)
    used[two.item] = True
    return used


def _sparse(
    data: Floats, item: NDArray[np.int_], term: NDArray[np.int_], shape: tuple[int, int]
) -> csr_array:
    return csr_array(coo_array((data, (item, term)), shape=shape).tocsr())


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole, nan where whole is 0."""
    shape = np.broadcast_shapes(part.shape, whole.shape)
    return np.divide(part, whole, out=np.full(shape, np.nan), where=whole != 0)
