import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from stats import bootstrap, correlation

NAN = math.nan
ALL = [correlation.pearson, correlation.spearman, correlation.kendall]
ORACLES = {
    correlation.pearson: scipy_stats.pearsonr,
    correlation.spearman: scipy_stats.spearmanr,
    correlation.kendall: scipy_stats.kendalltau,
}

few_values = st.integers(1, 4).map(float)
# Whole steps of a fine scale, as ROUGE-L has: ties are ties in every way of computing them.
many_values = st.integers(0, 2000).map(lambda step: step / 1000)
columns = st.lists(
    st.tuples(
        st.one_of(st.just(NAN), few_values), st.one_of(st.just(NAN), few_values, many_values)
    ),
    max_size=25,
)


def value(measure, x, y):
    return measure(x, y).point().value


def test_pearson_by_hand():
    # x 1 2 3 4, y 2 1 4 3: products of deviations (-1.5)(-.5) + (-.5)(-1.5) + .5(1.5) + 1.5(.5)
    # = 3; squares 5 on either side: 3/5.
    assert value(correlation.pearson, [1, 2, 3, 4], [2, 1, 4, 3]) == pytest.approx(0.6)


def test_spearman_with_ties_by_hand():
    # Ranks 1.5 1.5 3 4 and 1 2.5 2.5 4, less 2.5: -1 -1 .5 1.5 and -1.5 0 0 1.5.
    # Products 1.5 + 2.25 = 3.75; squares 4.5 and 4.5: 3.75 / 4.5 = 5/6.
    assert value(correlation.spearman, [1, 1, 2, 3], [1, 2, 2, 9]) == pytest.approx(5 / 6)


def test_kendall_with_ties_by_hand():
    # As above, 6 pairs: one tied on each side, the other four in the same order: 4 / sqrt(5 x 5).
    assert value(correlation.kendall, [1, 1, 2, 3], [1, 2, 2, 9]) == pytest.approx(0.8)
    # 1 2 3 against 2 3 1: pairs +, -, -: (1 - 2) / 3.
    assert value(correlation.kendall, [1, 2, 3], [2, 3, 1]) == pytest.approx(-1 / 3)


@given(columns, st.sampled_from(ALL))
def test_a_correlation_equals_that_of_scipy(pairs, measure):
    x, y = np.array(pairs).reshape(-1, 2).T
    there = ~np.isnan(x) & ~np.isnan(y)
    found = measure(x, y).point()
    assert found.n == there.sum()
    if min(len(set(x[there])), len(set(y[there]))) > 1:
        assert found.value == pytest.approx(ORACLES[measure](x[there], y[there])[0], abs=1e-12)
    else:
        assert found.value is None
        assert found.reason == (correlation.CONSTANT if found.n else correlation.NO_PAIR)


@pytest.mark.parametrize("measure", ALL)
def test_a_correlation_of_many_values_equals_that_of_scipy(measure):
    rng = np.random.Generator(np.random.PCG64(3))
    x = rng.normal(size=3000)
    y = np.round(x + rng.normal(size=3000), 2)
    assert value(measure, x, y) == pytest.approx(ORACLES[measure](x, y)[0], abs=1e-12)


@pytest.mark.parametrize("measure", ALL)
def test_a_correlation_has_no_unit_and_no_sides(measure):
    rng = np.random.Generator(np.random.PCG64(4))
    x, y = rng.integers(5, size=(2, 60)).astype(float)
    found = value(measure, x, y)
    assert value(measure, y, x) == pytest.approx(found, abs=1e-12)
    assert value(measure, 1e6 + 1e-3 * x, -y) == pytest.approx(-found, abs=1e-6)


@pytest.mark.parametrize("measure", ALL)
@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([], [], correlation.NO_PAIR),
        ([1, NAN], [NAN, 2], correlation.NO_PAIR),
        ([3], [4], correlation.CONSTANT),
        ([0.1, 0.1, 0.1], [1, 2, 3], correlation.CONSTANT),
        ([1, 2, 3], [0.3, 0.3, 0.3], correlation.CONSTANT),
    ],
)
def test_an_empty_or_constant_side_has_no_correlation(measure, x, y, reason):
    found = measure(x, y).point()
    assert (found.value, found.reason) == (None, reason)


@pytest.mark.parametrize("measure", ALL)
def test_a_draw_is_the_correlation_of_the_items_drawn(measure):
    rng = np.random.Generator(np.random.PCG64(5))
    x, y = rng.integers(4, size=40) / 3, rng.integers(90, size=40) / 7
    figure = measure(x, y)
    for _ in range(20):
        drawn = rng.integers(40, size=40)
        weights = np.bincount(drawn, minlength=40).astype(float)
        got = figure.of(weights[None, :] @ figure.terms)[0]
        assert got == pytest.approx(ORACLES[measure](x[drawn], y[drawn])[0], abs=1e-12)


@pytest.mark.parametrize("measure", ALL)
def test_a_draw_of_one_value_has_no_correlation(measure):
    figure = measure([0.1, 0.7, 0.3], [1, 2, 2])
    weights = np.array([[0.0, 3.0, 0.0], [1.0, 0.0, 2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = figure.of(weights @ figure.terms)
    assert np.isnan(got[0])
    assert got[1] == pytest.approx(1)


@pytest.mark.parametrize("measure", ALL)
def test_what_rounding_leaves_is_no_spread_and_nothing_exceeds_one(measure):
    rng = np.random.Generator(np.random.PCG64(7))
    for items in range(3, 60):
        x = rng.normal(size=items)
        figure = measure(x, x / 3 + 0.1)
        # Every item alone, seven times over; and all of them, on one line.
        alone = figure.of(7 * np.eye(items) @ figure.terms)
        assert np.isnan(alone).all()
        assert 1 - 1e-12 < figure.point().value <= 1


@pytest.mark.parametrize("measure", ALL)
def test_the_interval_holds_the_value_and_knows_clusters(measure):
    rng = np.random.Generator(np.random.PCG64(6))
    x = np.repeat(rng.integers(1, 4, size=60), 4)
    y = x + np.repeat(rng.integers(-1, 2, size=60), 4)
    alone, together = (
        bootstrap.estimate(measure(x, y), clusters, rng, draws=400)
        for clusters in (np.arange(240), np.repeat(np.arange(60), 4))
    )
    assert together.low < together.value < together.high
    # Four items that are one: twice as wide.
    ratio = (together.high - together.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(2, abs=0.4)
    assert bootstrap.estimate(measure(x, y), x, rng).reason == "under 10 clusters"


def test_sides_of_unlike_length_are_refused():
    with pytest.raises(ValueError, match="not two scores per item"):
        correlation.pearson([1, 2], [1, 2, 3])


UNITS = [correlation.pearson_of_units, correlation.spearman_of_units]


def test_an_interval_of_pearson_over_units_by_hand():
    # r 0.6 over 4 units (as above): atanh 0.6 = 0.6931 -/+ 1.96 / sqrt(1) is -1.2668 and 2.6531.
    found, p = correlation.pearson_of_units([1, 2, 3, 4], [2, 1, 4, 3])
    assert (found.value, found.low, found.high) == pytest.approx((0.6, -0.8529, 0.9901), abs=1e-4)
    # t = 0.6 sqrt(2 / 0.64) = 1.0607; with 2 degrees of freedom P = 1 - t / sqrt(2 + t^2) = 0.4.
    assert (found.n, p.n, p.p) == (4, 4, pytest.approx(0.4))


def test_an_interval_of_spearman_over_units_by_hand():
    # rho 0.6; variance 1 + 0.18, root 1.0863: atanh -1.4359 and 2.8222.
    found, p = correlation.spearman_of_units([1, 2, 3, 4], [2, 1, 4, 3])
    assert (found.low, found.high) == pytest.approx((-0.8929, 0.9929), abs=1e-4)
    # Of 24 orders of four ranks sum d^2 is 0 in 1, 2 in 3, 4 in 1: rho 1, .8, .6; as many below 0.
    assert p.p == pytest.approx(10 / 24)


@given(st.lists(st.tuples(few_values, many_values), min_size=4, max_size=14))
def test_p_of_units_equals_that_of_scipy(pairs):
    x, y = np.array(pairs).T
    if min(len(set(x)), len(set(y))) < 2:
        return
    for of, oracle in zip(UNITS, (scipy_stats.pearsonr, scipy_stats.spearmanr), strict=True):
        found, p = of(x, y)
        expected = oracle(x, y)
        assert found.value == pytest.approx(expected.statistic, abs=1e-9)
        if of is correlation.pearson_of_units or len(x) > correlation.MOST_ORDERED:
            least = 2 / math.factorial(len(x))
            assert p.p == pytest.approx(max(expected.pvalue, least), abs=1e-9)
        if of is correlation.pearson_of_units and 1 - abs(found.value) > 1e-9:
            ends = expected.confidence_interval()
            assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=1e-6)


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_p_of_few_ranks_is_that_of_a_permutation_test(n):
    rng = np.random.default_rng(n)
    x, y = rng.integers(0, 4, n).astype(float), rng.random(n)
    rho = scipy_stats.spearmanr(x, y).statistic

    def statistic(one):
        return scipy_stats.spearmanr(one, y).statistic

    expected = scipy_stats.permutation_test(
        (x,), statistic, permutation_type="pairings", n_resamples=np.inf, alternative="two-sided"
    )
    # Scipy doubles the smaller tail; here both are counted, which is the same for symmetric ones.
    drawn = np.abs(expected.null_distribution)
    _, p = correlation.spearman_of_units(x, y)
    assert p.p == pytest.approx((drawn >= abs(rho) - 1e-9).mean())


@pytest.mark.parametrize("of", UNITS)
def test_a_correlation_over_units_that_does_not_exist_says_why(of):
    few, p = of([1, 2, 3, NAN], [1, 2, 4, 5])
    assert (few.value, few.n, few.reason) == (None, 3, correlation.FEW_UNITS)
    assert (p.p, p.reason) == (None, correlation.FEW_UNITS)
    flat, p = of([1, 2, 3, 4], [5, 5, 5, 5])
    assert (flat.value, flat.reason, p.p) == (None, correlation.CONSTANT, None)
    # On one line an interval would have no width, and p is that of the one order of 24, or its
    # reverse.
    line, p = of([1, 2, 3, 4], [-2, -4, -6, -8])
    assert line.value == pytest.approx(-1)
    assert (line.low, line.high, line.reason) == (None, None, correlation.IN_STEP)
    assert p.p == pytest.approx(2 / 24)


def test_p_of_units_is_never_below_that_of_one_order_and_its_reverse():
    _, p = correlation.pearson_of_units([1, 2, 3, 4], [1, 2, 3, 4.0001])
    assert p.p == pytest.approx(2 / 24)
