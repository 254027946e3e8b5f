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
