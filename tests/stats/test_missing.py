import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from stats import absence
from stats.estimates import PValue


def generator(seed=1):
    return np.random.Generator(np.random.PCG64(seed))


def statistic(missing, group, cluster):
    """The sum over groups of squared, studentised excess, item by item."""
    rate, total = np.mean(missing), 0.0
    for k in set(group):
        share = np.mean([one == k for one in group])
        parts = dict.fromkeys(cluster, 0.0)
        for gone, own, c in zip(missing, group, cluster, strict=True):
            parts[c] += ((own == k) - share) * (gone - rate)
        total += sum(parts.values()) ** 2 / sum(part**2 for part in parts.values())
    return total


def test_groups_are_dealt_among_clusters_where_none_is_cut():
    # 11 clusters of one to three items, 4 of them in group A: all 330 ways written out.
    sizes = [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2]
    cluster = np.repeat(np.arange(11), sizes)
    missing = np.isin(np.arange(len(cluster)), [0, 1, 4, 5, 8, 15])
    seen = {
        chosen: statistic(missing, np.isin(cluster, chosen), cluster)
        for chosen in itertools.combinations(range(11), 4)
    }
    for chosen in ((0, 1, 2, 3), (3, 6, 8, 9), (1, 4, 6, 8)):
        exact = np.mean([one >= seen[chosen] - 1e-9 for one in seen.values()])
        group = np.where(np.isin(cluster, chosen), "A", "B")
        found = absence.permutation_p_value(missing, group, cluster, generator(), draws=3_000)
        assert found.p == pytest.approx(exact, abs=0.04)
        assert found.n == 6


def test_of_two_groups_of_single_items_p_is_the_two_sided_exact_one_by_hand():
    # All 3 missing replies in one group of five: 2 x C(5, 3) / C(10, 3) = 20 / 120, ties and all.
    found = absence.permutation_p_value(
        np.arange(10) < 3, np.arange(10) < 5, np.arange(10), generator(), 3_000
    )
    assert found.p == pytest.approx(1 / 6, abs=0.03)


def test_missing_replies_are_dealt_among_items_where_groups_cut_clusters():
    rng = generator(4)
    cluster, group = np.arange(60) // 3, rng.integers(3, size=60)
    missing = rng.random(60) < np.where(group == 1, 0.4, 0.1)
    found = statistic(missing, group, cluster)
    dealt = [statistic(rng.permutation(missing), group, cluster) for _ in range(600)]
    got = absence.permutation_p_value(missing, group, cluster, generator(), draws=3_000)
    assert got.p == pytest.approx(np.mean(np.array(dealt) >= found - 1e-9), abs=0.06)


@pytest.mark.parametrize("seed", range(4))
def test_of_single_items_p_comes_near_the_chi_square_test_of_scipy(seed):
    rng = generator(seed)
    group = rng.integers(4, size=800)
    missing = rng.random(800) < np.where(group == 0, 0.15 + 0.02 * seed, 0.15)
    counts = [[np.sum(missing[group == k] == flag) for k in range(4)] for flag in (True, False)]
    expected = scipy_stats.chi2_contingency(counts).pvalue
    found = absence.permutation_p_value(missing, group, np.arange(800), generator(), draws=2_000)
    assert found.p == pytest.approx(expected, abs=0.06)


def test_replies_that_go_missing_together_show_less():
    # Six of thirty questions of A and two of thirty of B, with four items each.
    gone, group = np.isin(np.arange(60), [0, 1, 2, 3, 4, 5, 30, 31]), np.arange(60) < 30
    four = np.repeat(gone, 4), np.repeat(group, 4)
    alone = absence.permutation_p_value(*four, np.arange(240), generator())
    together = absence.permutation_p_value(*four, np.repeat(np.arange(60), 4), generator())
    single = absence.permutation_p_value(gone, group, np.arange(60), generator())
    assert together.p == pytest.approx(single.p, abs=0.05)
    assert alone.p < 0.02 < together.p


def test_a_group_that_is_missing_altogether_has_the_smallest_p():
    group = np.arange(90) % 3
    found = absence.permutation_p_value(group == 2, group, np.arange(90), generator(), draws=99)
    assert found == PValue(1 / 100, 30)


@pytest.mark.parametrize(
    ("missing", "group", "cluster", "reason"),
    [
        ([], [], [], "one group"),
        ([True, False], ["a", "a"], [1, 2], "one group"),
        ([False] * 20, ["a", "b"] * 10, range(20), "all replies are missing, or none"),
        ([True] * 20, ["a", "b"] * 10, range(20), "all replies are missing, or none"),
        ([True, False] * 10, ["a", "b"] * 10, [i % 9 for i in range(20)], "under 10 clusters"),
    ],
)
def test_where_nothing_can_be_compared_there_is_no_p(missing, group, cluster, reason):
    found = absence.permutation_p_value(missing, group, list(cluster), generator())
    assert (found.p, found.reason) == (None, reason)
    assert not math.isnan(found.n)
