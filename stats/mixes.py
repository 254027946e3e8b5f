"""Rates of several groups of items, and their mean with weights that somebody chose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.estimates import Estimate
from stats.rates import find_quantile, wilson

NO_WEIGHTED_ITEM = "no item in a group with a weight"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupRates:
    """The rates of groups that share clusters; the arrays have one entry per group, or per pair.

    `covariance` is that of the rates, without the factor for few clusters that `weigh` adds.
    `overlap` has, for groups g and h, the sum over clusters of n_cg n_ch / (n_g n_h), from which
    follows how many clusters a weighted mean rests on. With `single`, every item is a cluster of
    its own.
    """

    groups: Sequence[str]
    n: NDArray[np.int_]
    rate: Floats
    covariance: Floats
    overlap: Floats
    single: bool


def estimate_groups(hits: ArrayLike, groups: ArrayLike, clusters: ArrayLike) -> GroupRates:
    """The rate of each group that has items with a hit (0, 1 or a share, nan if missing).

    The covariance of two rates is linearised, with the items of a cluster taken together: sum_c
    e_cg e_ch, where e_cg is the sum of (hit - rate of g) / n_g over the items that cluster c has in
    group g.
    """
    values = np.asarray(hits, dtype=float)
    there = ~np.isnan(values)
    names, group = np.unique(np.asarray(groups)[there].astype(str), return_inverse=True)
    _, cluster = np.unique(np.asarray(clusters)[there], return_inverse=True)
    m, k = int(cluster.max(initial=-1)) + 1, len(names)
    cell = cluster * k + group
    items = np.bincount(cell, minlength=m * k).reshape(m, k)
    sums = np.bincount(cell, weights=values[there], minlength=m * k).reshape(m, k)
    n = items.sum(axis=0)
    rate = sums.sum(axis=0) / n
    apart, shares = (sums - rate * items) / n, items / n
    return GroupRates(
        names.tolist(), n, rate, apart.T @ apart, shares.T @ shares, m == int(n.sum())
    )


def weigh(found: GroupRates, weights: Mapping[str, float], level: float = 0.95) -> Estimate:
    """The mean of the groups' rates with these weights, which are divided by their sum.

    Groups without a weight do not count, and weights of groups without items are ignored. The
    interval is Wilson's for p (1 - p) / variance items, at most the effective number of items 1 /
    sum w_g^2 / n_g (Kish 1965), with Student's quantile for the effective number of clusters m_e =
    1 / sum_gh w_g w_h overlap_gh; the variance is w' covariance w m_e / (m_e - 1), or without that
    factor if every item is a cluster. With the shares of the items as weights it is that of
    `rates.clustered_wilson` for all items, or nearly so if clusters differ in size. `n` counts the
    items of the groups that count. No value without such an item, and no interval with one cluster.
    Raises ValueError for a negative weight.
    """
    if any(one < 0 for one in weights.values()):
        raise ValueError("a weight must not be negative")
    w = np.array([weights.get(name, 0.0) for name in found.groups], dtype=float)
    if not w.sum():
        return Estimate(None, None, None, 0, NO_WEIGHTED_ITEM)
    w /= w.sum()
    used = w > 0
    n, value = int(found.n[used].sum()), float(np.round(w @ found.rate, 12))
    clusters = 1 / float(w @ found.overlap @ w)
    if clusters < 1 + 1e-9:
        return Estimate(value, None, None, n, "one cluster")
    factor = 1.0 if found.single else clusters / (clusters - 1)
    variance = factor * float(w @ found.covariance @ w)
    most = 1 / float((w[used] ** 2 / found.n[used]).sum())
    independent = clusters if value in (0, 1) else value * (1 - value) / max(variance, 1e-300)
    quantile = find_quantile(level, None if found.single else clusters)
    return Estimate(value, *wilson(value, min(most, independent), quantile), n)
