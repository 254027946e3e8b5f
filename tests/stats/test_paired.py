import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.api import OLS
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from stats import families, paired
from stats.rates import ClusterSums

clusters = st.lists(
    st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(-n, n))), max_size=40
)


def generator(seed=1):
    return np.random.Generator(np.random.PCG64(seed))


def sums(pairs):
    """Of (items, sum of differences), one a cluster."""
    n, y = (np.array(side) for side in zip(*pairs, strict=True)) if pairs else ([], [])
    n, y = np.asarray(n), np.asarray(y)
    totals = (n.sum(), y.sum(), (n * n).sum(), (n * y).sum(), (y * y).sum())
    return ClusterSums(len(n), *(one.item() for one in totals))


# The difference


def test_a_difference_of_clusters_by_hand():
    # Clusters of 2, 1, 1 items with sums 2, 0, -1: d = 1/4, residuals 1.5, -.25, -1.25, squares
    # 2.25 + .0625 + 1.5625 = 3.875; v = 3/2 x 3.875 / 16 = 0.36328125, error 0.602728.
    found = paired.estimate_difference(sums([(2, 2), (1, 0), (1, -1)]))
    assert (found.value, found.n, found.reason) == (0.25, 4, "")
    assert found.standard_error == pytest.approx(math.sqrt(0.36328125))
    # Student's quantiles of 2 degrees of freedom: 4.302653 at 0.975, 1.060660 at 0.8.
    assert found.shows == pytest.approx((4.302653 + 1.060660) * math.sqrt(0.36328125))
    # Student's quantile of 2 degrees of freedom is 4.30: wider than what there is.
    assert (found.low, found.high) == (-1, 1)


def test_of_three_tests_a_difference_must_be_larger_to_be_found():
    # Student's quantile of 2 degrees of freedom at q = 1 - 0.05 / 6: (2q - 1) / sqrt(2 q (1 - q)).
    found = paired.estimate_difference(sums([(2, 2), (1, 0), (1, -1)]), tests=3)
    assert found.shows == pytest.approx((7.648804 + 1.060660) * math.sqrt(0.36328125))
    with pytest.raises(ValueError, match="family"):
        paired.estimate_difference(sums([(1, 0), (1, 1)]), tests=0)


@pytest.mark.parametrize("tests", [1, 45])
def test_a_difference_of_that_size_is_found_four_times_of_five(tests):
    """Twenty clusters with normal differences: the test of t at the level of the family."""
    rng, found, sets, m = np.random.default_rng(5), 0, 4_000, 20
    made = paired.estimate_difference(sums([(1, y) for y in rng.normal(size=m)]), tests=tests)
    apart = made.shows / made.standard_error / math.sqrt(m)  # in standard deviations
    values = rng.normal(apart, 1, size=(sets, m))
    p = scipy_stats.ttest_1samp(values, 0, axis=1).pvalue
    found = (p <= 0.05 / tests).mean()
    assert 0.78 < found < 0.84


def test_with_one_item_a_cluster_it_is_the_paired_t_interval():
    values = [1, 0, 0, -1, 1, 1, 0, 0, 1, 0] * 4
    found = paired.estimate_difference(sums([(1, value) for value in values]))
    low, high = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.standard_error == pytest.approx(scipy_stats.sem(values))


@given(st.lists(st.lists(st.integers(-1, 1), min_size=1, max_size=4), min_size=2, max_size=15))
def test_the_standard_error_is_the_clustered_one_of_statsmodels(parts):
    found = paired.estimate_difference(sums([(len(part), sum(part)) for part in parts]))
    values = np.concatenate(parts)
    groups = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert found.value == pytest.approx(fit.params[0], abs=1e-12)
    assert (found.standard_error or 0) == pytest.approx(fit.bse[0], abs=1e-9)


@pytest.mark.parametrize(
    ("pairs", "value", "reason"),
    [
        ([], None, "no item that both parsed"),
        ([(5, 2)], 0.4, "one cluster"),
        ([(1, 0), (3, 0)], 0, "all clusters differ alike"),
        ([(1, 1), (3, 3)], 1, "all clusters differ alike"),
        ([(3, 0.1), (3, 0.1), (3, 0.1)], 0.1 / 3, "all clusters differ alike"),
    ],
)
def test_without_spread_there_is_no_interval(pairs, value, reason):
    found = paired.estimate_difference(sums(pairs))
    assert found.value == (None if value is None else pytest.approx(value))
    assert (found.low, found.high, found.standard_error, found.shows) == (None,) * 4
    assert found.reason == reason


def test_a_level_is_a_fraction():
    with pytest.raises(ValueError, match="level"):
        paired.estimate_difference(sums([(1, 0), (1, 1)]), level=95)


@given(clusters)
def test_turning_the_runs_round_turns_the_difference_round(pairs):
    one = paired.estimate_difference(sums(pairs))
    other = paired.estimate_difference(sums([(n, -y) for n, y in pairs]))
    assert one.standard_error == other.standard_error
    if one.low is not None:
        assert (one.value, one.low, one.high) == pytest.approx(
            (-other.value, -other.high, -other.low)
        )
        assert -1 <= one.low <= one.value <= one.high <= 1


# McNemar


def test_mcnemar_by_hand():
    # 1 and 5: 2 (C(6,0) + C(6,1)) / 2^6 = 14/64.
    found = paired.mcnemar_test(1, 5)
    assert (found.p, found.n) == (pytest.approx(14 / 64), 6)
    assert paired.mcnemar_test(3, 3).p == 1
    assert paired.mcnemar_test(0, 0) == paired.PValue(1.0, 0, test="exact")
    with pytest.raises(ValueError, match="not counts"):
        paired.mcnemar_test(-1, 3)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_equals_statsmodels_and_scipy(one, other):
    found = paired.mcnemar_test(one, other).p
    assert found == pytest.approx(statsmodels_mcnemar([[7, one], [other, 9]], exact=True).pvalue)
    if one + other:
        assert found == pytest.approx(scipy_stats.binomtest(one, one + other).pvalue)


# Signs flipped


def every_pattern(values):
    """The share of sign patterns whose sum is as far from 0, each written out."""
    apart = np.abs([value for value in values if value])
    patterns = np.array(list(itertools.product([1, -1], repeat=len(apart)))).reshape(
        2 ** len(apart), len(apart)
    )
    return (np.abs(patterns @ apart) >= abs(sum(values)) - 1e-9).mean()


def test_signs_of_three_clusters_by_hand():
    # 3, 2, -1: sum 4. Of the eight patterns +-3 +-2 +-1 those with 4 or more: 6, 4 and their
    # mirrors: 4 of 8.
    found = paired.sign_flip_test([3, 0, 2, -1], generator())
    assert (found.p, found.n, found.test) == (pytest.approx(0.5), 3, "exact")


def test_where_nothing_differs_p_is_one():
    assert paired.sign_flip_test([0, 0], generator()).p == 1
    assert paired.test_difference([0, 0], generator()) == paired.PValue(1.0, 0, test="exact")
    assert paired.test_difference([], generator()) == paired.PValue(
        None, 0, "no item that both parsed"
    )


def test_one_cluster_can_never_show():
    assert paired.test_difference([9], generator()).p == 1


@given(st.lists(st.integers(-4, 4), max_size=12), st.sampled_from([1, 3, 7, 60]))
def test_p_is_the_share_of_all_sign_patterns(values, repeats):
    # Sums of whole items, or of shares of so many repeats.
    sums = [value / repeats for value in values]
    found = paired.sign_flip_test(sums, generator())
    assert found.p == pytest.approx(every_pattern(sums), rel=1e-12)
    assert (found.n, found.test) == (sum(value != 0 for value in values), "exact")


def test_shares_of_unlike_numbers_of_repeats_tie_in_spite_of_rounding():
    sums = [1 / 3, 2 / 3 - 1 / 2, 1 / 5, -1 / 2, 1 / 6 + 2 / 3, 0.1 + 0.2, -0.3]
    found = paired.sign_flip_test(sums, generator())
    assert found.p == pytest.approx(every_pattern(sums), rel=1e-12)
    # 0.1 + 0.2 is not 0.3: every pattern but those that cancel is as far.
    assert paired.sign_flip_test([0.1, 0.2, -0.3], generator()).p == 1
    assert paired.sign_flip_test([0.1, 0.2, 0.3], generator()).p == pytest.approx(0.25)
    # As far as 0.5, among 0.9, 0.5, 0.5 and 0.1: three of four.
    assert paired.sign_flip_test([-0.5, 0.2, -0.2], generator()).p == pytest.approx(0.75)


@given(st.integers(0, 400), st.integers(0, 400))
def test_flipping_single_items_is_the_exact_mcnemar_test(one, other):
    sums = [1] * one + [-1] * other + [0] * 5
    expected = paired.mcnemar_test(one, other)
    assert paired.test_difference(sums, generator()) == expected
    assert paired.sign_flip_test(sums, generator()).p == pytest.approx(expected.p, rel=1e-9)
    assert paired.sign_flip_test([2.5 * one for one in sums], generator()).p == pytest.approx(
        expected.p, rel=1e-9
    )


def test_p_falls_as_far_as_the_clusters_allow():
    # Every one of 40 clusters differs the same way: one pattern and its mirror of 2^40.
    assert paired.sign_flip_test([2] * 40, generator()).p == pytest.approx(2**-39)
    # 190 pairs of twenty runs: Holm still tells such a pair apart, and 1,000 others with it.
    assert max(families.holm([2**-39] * 1_190)) < 1e-6


def test_long_distributions_are_transformed_and_stay_exact():
    # Sizes 1 to 4 of 30 clusters each: multiplied out one cluster after the other.
    values = np.repeat([1, -1, 2, -2, 3, -3, 4, -4], [20, 10, 22, 8, 18, 12, 25, 5])
    exact = np.ones(1)
    for size in np.abs(values):
        exact = (np.pad(exact, (0, size)) + np.pad(exact, (size, 0))) / 2
    least = (np.abs(values).sum() - values.sum()) // 2
    found = paired.sign_flip_test(values, generator())
    assert found.p == pytest.approx(2 * exact[: least + 1].sum(), rel=1e-10)
    assert found.p < 1e-5


def test_without_a_grid_patterns_are_drawn_and_with_many_clusters_t_has_the_tail(monkeypatch):
    values = np.random.default_rng(4).normal(0.3, size=14)
    drawn = paired.sign_flip_test(values, generator())
    assert (drawn.test, drawn.n) == ("drawn", 14)
    exact = every_pattern(values.tolist())
    # Five standard errors of a million draws.
    assert drawn.p == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 10**6))
    whole = np.random.default_rng(5).integers(-3, 4, size=400) + 0.25
    exact = paired.sign_flip_test(whole, generator())
    monkeypatch.setattr(paired, "MOST_POINTS", 100)
    tail = paired.sign_flip_test(whole, generator())
    assert (exact.test, tail.test) == ("exact", "t")
    assert tail.p == pytest.approx(exact.p, rel=0.02)
