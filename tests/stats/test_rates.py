import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from stats.rates import (
    ClusterSums,
    RateBounds,
    bound_difference,
    bound_wrong_labels,
    clustered_wilson,
    design_effect,
    estimate_mean_rate,
    estimate_rate,
    items_to_overturn,
    sum_clusters,
)

clusters = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=40,
)


def wilson_by_roots(p, n, z):
    """The p0 for which |p - p0| = z sqrt(p0 (1 - p0) / n): roots of a quadratic in p0."""
    a, b, c = 1 + z * z / n, -(2 * p + z * z / n), p * p
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_sums_of_three_clusters():
    assert sum_clusters([(4, 1), (2, 2), (3, 0)]) == ClusterSums(3, 9, 3, 16 + 4 + 9, 4 + 4, 1 + 4)


def test_clusters_without_items_do_not_count():
    assert sum_clusters([(4, 1), (0, 0), (2, 2)]) == sum_clusters([(4, 1), (2, 2)])


@pytest.mark.parametrize("cluster", [(2, 3), (2, -1), (-1, 0)])
def test_impossible_clusters_are_refused(cluster):
    with pytest.raises(ValueError, match="cluster"):
        sum_clusters([cluster])


def test_single_items_give_the_plain_wilson_interval():
    # 10 items, 3 hits, z = 1.959964: z^2 = 3.841459, shrink = 1.3841459,
    # centre = (0.3 + 0.19207295) / 1.3841459 = 0.355506,
    # half = 1.959964 / 1.3841459 x sqrt(0.021 + 0.009603647) = 0.247715.
    got = clustered_wilson(sum_clusters([(1, 1)] * 3 + [(1, 0)] * 7))
    assert (got.value, got.n, got.reason) == (0.3, 10, "")
    assert got.low == pytest.approx(0.107791, abs=1e-6)
    assert got.high == pytest.approx(0.603222, abs=1e-6)


@given(st.integers(2, 400), st.data())
def test_plain_wilson_equals_scipy(n, data):
    hits = data.draw(st.integers(0, n))
    oracle = scipy_stats.binomtest(hits, n).proportion_ci(0.9, method="wilson")
    got = clustered_wilson(sum_clusters([(1, 1)] * hits + [(1, 0)] * (n - hits)), level=0.9)
    assert (got.low, got.high) == pytest.approx((oracle.low, oracle.high), abs=1e-12)


def test_design_effect_of_three_clusters_by_hand():
    # p = 3/9; residuals 1 - 4/3, 2 - 2/3, 0 - 1 = -1/3, 4/3, -1: squares sum to 26/9.
    # v = 3/2 x 26/9 / 81 = 13/243; v n / (p q) = 13/27 / (2/9) = 13/6.
    assert design_effect(sum_clusters([(4, 1), (2, 2), (3, 0)])) == pytest.approx(13 / 6)


def test_clusters_of_unlike_items_have_a_wider_interval_by_hand():
    # As above: 9 / (13/6) = 54/13 effective items, in 81 / 29 effective clusters.
    z = scipy_stats.t.ppf(0.975, 81 / 29 - 1)
    got = clustered_wilson(sum_clusters([(4, 1), (2, 2), (3, 0)]))
    assert got.value == pytest.approx(1 / 3)
    assert (got.low, got.high) == pytest.approx(wilson_by_roots(1 / 3, 54 / 13, z), abs=1e-12)


def test_three_clusters_of_two_items_by_hand():
    # p = 1/2, residuals 0, 1, -1: v = 3/2 x 2 / 36 = 1/12, v n / (p q) = 2, so three items.
    # Student's quantile of 2 degrees of freedom has the closed form (2q - 1) / sqrt(2 q (1 - q)).
    z = 0.95 / math.sqrt(2 * 0.975 * 0.025)
    got = clustered_wilson(sum_clusters([(2, 1), (2, 2), (2, 0)]))
    assert (got.low, got.high) == pytest.approx(wilson_by_roots(1 / 2, 3, z), abs=1e-12)


def test_one_large_cluster_beside_a_small_one_leaves_one_degree_of_freedom():
    # 121 / 101 effective clusters; the residuals are 10/11 and -10/11: v = 2 x 2 x 100 / 121 / 121,
    # p q = 10 / 121. Student's quantile of 1 degree of freedom is tan(pi (q - 1/2)).
    effective = 11 / (400 / 121**2 * 11 / (10 / 121))
    got = clustered_wilson(sum_clusters([(10, 10), (1, 0)]))
    z = math.tan(math.pi * 0.475)
    assert (got.low, got.high) == pytest.approx(wilson_by_roots(10 / 11, effective, z), abs=1e-9)


def test_twin_items_count_as_one():
    # All pairs agree: residuals +-1, v = 10/9 x 10 / 400 = 1/36, v n / (p q) = 20/36 x 4 = 20/9.
    got = clustered_wilson(sum_clusters([(2, 2)] * 5 + [(2, 0)] * 5))
    z = scipy_stats.t.ppf(0.975, 9)
    assert (got.low, got.high) == pytest.approx(wilson_by_roots(0.5, 9, z), abs=1e-12)


@pytest.mark.parametrize("hits, rate", [(0, 0.0), (3, 1.0)])
def test_without_variation_the_clusters_are_the_items(hits, rate):
    # Design effect n/m = 3, so 4 effective items, and Wilson at the edge is z^2 / (n + z^2) wide.
    got = clustered_wilson(sum_clusters([(3, hits)] * 4))
    z = scipy_stats.t.ppf(0.975, 3)
    width = z * z / (4 + z * z)
    assert got.value == rate
    assert (got.low, got.high) == pytest.approx((max(0, rate - width), min(1, rate + width)))


def test_balanced_clusters_never_count_for_more_than_their_items():
    assert design_effect(sum_clusters([(2, 1)] * 10)) == 1.0


def test_one_cluster_has_a_rate_but_no_interval():
    got = clustered_wilson(sum_clusters([(5, 2)]))
    assert (got.value, got.low, got.high, got.reason) == (0.4, None, None, "one cluster")


def test_no_items_have_no_rate():
    got = clustered_wilson(sum_clusters([]))
    assert (got.value, got.low, got.high, got.n, got.reason) == (None, None, None, 0, "no items")


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_a_fraction(level):
    with pytest.raises(ValueError, match="level"):
        clustered_wilson(sum_clusters([(1, 0), (1, 1)]), level)


@given(clusters)
def test_the_interval_holds_the_rate_and_stays_within_bounds(pairs):
    got = clustered_wilson(sum_clusters(pairs))
    assert 0 <= got.low <= got.value <= got.high <= 1


@given(clusters)
def test_hits_and_misses_mirror_each_other(pairs):
    hits = clustered_wilson(sum_clusters(pairs))
    misses = clustered_wilson(sum_clusters([(n, n - y) for n, y in pairs]))
    assert (misses.low, misses.high) == pytest.approx((1 - hits.high, 1 - hits.low), abs=1e-9)


@given(clusters)
def test_the_five_sums_hold_the_variance_of_the_residuals(pairs):
    m, n, y = len(pairs), sum(p[0] for p in pairs), sum(p[1] for p in pairs)
    assume(n > m and 0 < y < n)
    p = y / n
    variance = m / (m - 1) * sum((hits - p * items) ** 2 for items, hits in pairs) / n**2
    expected = max(1, variance * n / (p * (1 - p)))
    assert design_effect(sum_clusters(pairs)) == pytest.approx(expected, rel=1e-9)


def test_a_rate_of_items_sums_clusters_and_leaves_out_the_missing():
    got = estimate_rate([1, 0, math.nan, 1, 1, math.nan], [7, 7, 7, 3, 3, 5])
    assert got == clustered_wilson(sum_clusters([(2, 1), (2, 2)]))
    assert (got.value, got.n) == (0.75, 4)


def test_shares_that_add_up_to_whole_hits_are_whole_hits():
    thirds = [1 / 3, 1 / 3, 1 / 3, 0, 0, 0]
    assert estimate_rate(thirds, [1, 1, 1, 2, 2, 2]) == clustered_wilson(
        sum_clusters([(3, 1), (3, 0)])
    )
    assert estimate_rate([0.1] * 10 + [0] * 10, np.arange(20) // 10).value == 1 / 20


@pytest.mark.parametrize(
    ("hits", "groups", "reason"),
    [([], [], "no items"), ([math.nan], [1], "no items"), ([1, 0], [1, 1], "one cluster")],
)
def test_a_rate_of_no_items_or_one_cluster_has_no_interval(hits, groups, reason):
    got = estimate_rate(hits, groups)
    assert (got.low, got.high, got.reason) == (None, None, reason)


def test_bounds_of_a_difference_take_opposite_extremes():
    got = bound_difference(RateBounds(0.3, 0.5), RateBounds(0.1, 0.4))
    assert (got.lowest, got.highest) == pytest.approx((-0.1, 0.4))
    assert bound_difference(RateBounds(0.3, 0.5), RateBounds(None, None)) == RateBounds(None, None)
    assert bound_difference(RateBounds(None, None), RateBounds(0.3, 0.5)) == RateBounds(None, None)


@pytest.mark.parametrize(("hits", "wrong"), [(7, 2), (1, 3), (9, 4), (0, 1), (10, 1), (5, 0)])
def test_bounds_of_wrong_labels_are_those_of_any_choice_of_wrong_ones(hits, wrong):
    items = [1] * hits + [0] * (10 - hits)
    left = [sum(kept) / len(kept) for kept in combinations(items, 10 - wrong)]
    got = bound_wrong_labels(hits / 10, 10, wrong / 10)
    assert (got.lowest, got.highest) == pytest.approx((min(left), max(left)))


def test_bounds_of_wrong_labels_need_right_ones():
    assert bound_wrong_labels(0.5, 0, 0.1) == RateBounds(None, None)
    with pytest.raises(ValueError, match="below 1"):
        bound_wrong_labels(0.5, 10, 1.0)


def test_ten_hits_of_ten_withstand_two_misses_and_not_a_third():
    # Wilson's lower end with z^2 = 3.841459: 10 of 12 gives 0.552, 10 of 13 gives 0.497 < 0.5.
    # 12: (0.833333 + 0.160061 - 1.959964 sqrt(0.0115741 + 0.0066692)) / 1.3201216 = 0.5520
    # 13: (0.769231 + 0.147748 - 1.959964 sqrt(0.0136550 + 0.0056826)) / 1.2954969 = 0.4974
    assert items_to_overturn(sum_clusters([(1, 1)] * 10), 0.5) == 2


def test_what_lies_below_the_bar_withstands_as_many_hits():
    assert items_to_overturn(sum_clusters([(1, 0)] * 10), 0.5) == 2


@pytest.mark.parametrize("found", [[], [(5, 5)], [(1, 1), (1, 0)] * 10])
def test_what_is_not_settled_has_no_number(found):
    assert items_to_overturn(sum_clusters(found), 0.5) is None


def test_one_item_can_be_enough_to_change_it():
    # 5 of 5: lower end 5 / (5 + 3.841459) = 0.5655; 5 of 6: 0.4365.
    assert items_to_overturn(sum_clusters([(1, 1)] * 5), 0.5) == 0


@pytest.mark.parametrize("bar", [0, 1, -1, 2])
def test_a_bar_that_no_rate_can_lie_on_both_sides_of_is_refused(bar):
    with pytest.raises(ValueError, match="threshold"):
        items_to_overturn(sum_clusters([(1, 1)]), bar)


@given(clusters, st.floats(0.05, 0.95))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_the_number_keeps_the_side_and_one_more_does_not(found, bar):
    """Some seconds with the many examples of CI."""
    sums = sum_clusters(found)
    number = items_to_overturn(sums, bar)
    assume(number is not None)
    above = clustered_wilson(sums).low > bar

    def keeps(k):
        estimate = clustered_wilson(sum_clusters([*found, *[(1, 0 if above else 1)] * k]))
        return estimate.low > bar if above else estimate.high < bar

    assert keeps(number)
    assert not any(keeps(number + more) for more in (1, 2, 3, 50))


# Means of rates


def cells(seed, items=40, prompts=4, clusters=15):
    """Whether each item is a case and a hit by each prompt, and its cluster."""
    rng = np.random.default_rng(seed)
    cases = rng.random((items, prompts)) < 0.6
    return cases & (rng.random((items, prompts)) < 0.7), cases, rng.integers(clusters, size=items)


@pytest.mark.parametrize("seed", range(8))
def test_the_mean_of_one_rate_is_that_rate_with_its_interval(seed):
    hits, cases, cluster = cells(seed, prompts=1, clusters=(15, 400)[seed % 2])
    case = cases[:, 0]
    expected = estimate_rate(hits[case, 0], cluster[case])
    found = estimate_mean_rate(hits, cases, cluster)
    assert (found.n, found.reason) == (expected.n, "")
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-9
    )


def test_over_the_same_items_a_mean_of_rates_is_the_rate_of_their_shares():
    hits, _, cluster = cells(1)
    expected = estimate_rate(hits.mean(axis=1), cluster)
    found = estimate_mean_rate(hits, np.ones(hits.shape), cluster)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_mean_of_rates_over_unlike_items_by_hand():
    # Two prompts, four items alone in their clusters. The first accuses three, two rightly; the
    # second the last alone, rightly: (2/3 + 1) / 2. Weights 1/6, 1/6, 1/6 + 1/2, 0: n = 1 / (1/36 +
    # 1/36 + 16/36) = 2.
    hits = [[1, 0], [0, 0], [1, 1], [0, 0]]
    cases = [[1, 0], [1, 0], [1, 1], [0, 0]]
    found = estimate_mean_rate(hits, cases, range(4))
    assert (found.value, found.n) == (pytest.approx(5 / 6), 3)
    z = scipy_stats.norm.ppf(0.975)
    assert (found.low, found.high) == pytest.approx(wilson_by_roots(5 / 6, 2, z))


@pytest.mark.parametrize("hit", [0, 1])
def test_a_mean_of_rates_at_an_end_has_an_interval_of_some_width(hit):
    # Four clusters of three items each count as four items, as in one rate.
    found = estimate_mean_rate(np.full((12, 4), hit), np.ones((12, 4)), np.arange(12) // 3)
    expected = clustered_wilson(sum_clusters([(3, 3 * hit)] * 4))
    assert (found.value, found.low, found.high) == pytest.approx(
        (hit, expected.low, expected.high), abs=1e-9
    )


def test_a_mean_of_rates_says_why_it_has_no_interval():
    assert estimate_mean_rate([[0, 0]], [[0, 0]], [1]).reason == "no items"
    found = estimate_mean_rate([[1, 0]] * 3, [[1, 1]] * 3, [7] * 3)
    assert (found.value, found.low, found.reason) == (0.5, None, "one cluster")
    with pytest.raises(ValueError, match="level"):
        estimate_mean_rate([[1]], [[1]], [1], level=95)
