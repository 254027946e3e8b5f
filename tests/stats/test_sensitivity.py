import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from stats import bootstrap, sensitivity

NAN = math.nan
# 4 of 5 errors detected, one missing; 1 of 4 invariant items, two missing.
DETECTED = [1, 1, 1, 1, 0, NAN, 1, 0, 0, 0, NAN, NAN]
INVARIANT = [False] * 6 + [True] * 6
BOTH = [sensitivity.j, sensitivity.d_prime]


def test_j_by_hand():
    found = sensitivity.j(DETECTED, INVARIANT).point()
    assert (found.value, found.n, found.reason) == (pytest.approx(4 / 5 - 1 / 4), 9, "")


def test_d_prime_by_hand():
    # z(4.5 / 6) - z(1.5 / 5) = 0.67449 + 0.52440
    found = sensitivity.d_prime(DETECTED, INVARIANT).point()
    assert found.value == pytest.approx(0.67449 + 0.52440, abs=1e-5)
    assert found.value == pytest.approx(norm.ppf(4.5 / 6) - norm.ppf(1.5 / 5))


@given(st.lists(st.tuples(st.sampled_from([0, 0.4, 1, NAN]), st.booleans()), max_size=20))
def test_figures_are_their_formulas_over_the_parsed_items_of_each_kind(items):
    errors, alarms = (
        [hit for hit, invariant in items if invariant == kind and not math.isnan(hit)]
        for kind in (False, True)
    )
    j, d_prime = (one([hit for hit, _ in items], [kind for _, kind in items]) for one in BOTH)
    assert j.n == d_prime.n == len(errors) + len(alarms)
    if errors and alarms:
        z = [norm.ppf((sum(side) + 0.5) / (len(side) + 1)) for side in (errors, alarms)]
        assert j.point().value == pytest.approx(np.mean(errors) - np.mean(alarms), abs=1e-12)
        assert d_prime.point().value == pytest.approx(z[0] - z[1], abs=1e-12)
    else:
        assert j.point().value is d_prime.point().value is None


def test_shares_of_repeats_count_as_they_are():
    assert sensitivity.j([0.8, 0.4, 0.2], [False, False, True]).point().value == pytest.approx(0.4)


def test_perfect_and_blind_evaluators_have_finite_figures():
    # All of 3 and none of 3: J 1, d' 2 z(3.5 / 4) = 2 x 1.15035. Alike on either side: 0.
    kinds = [False] * 3 + [True] * 3
    perfect = [one([1, 1, 1, 0, 0, 0], kinds).point().value for one in BOTH]
    assert perfect == pytest.approx([1, 2 * 1.15035], abs=1e-5)
    for detected in ([0] * 6, [1] * 6):
        assert [one(detected, kinds).point().value for one in BOTH] == [0, 0]


@pytest.mark.parametrize("figure", BOTH)
@pytest.mark.parametrize(
    ("detected", "invariant", "reason"),
    [
        ([], [], "no parsed item"),
        ([NAN], [True], "no parsed item"),
        ([1, 0, NAN], [False, False, True], "no score-invariant item"),
        ([1, 0], [True, True], "no error item"),
    ],
)
def test_a_run_without_items_of_either_kind_has_a_dash(figure, detected, invariant, reason):
    found = figure(detected, invariant).point()
    assert (found.value, found.reason) == (None, reason)


@pytest.mark.parametrize("figure", BOTH)
def test_both_kinds_need_ten_clusters(figure):
    rng = np.random.Generator(np.random.PCG64(1))
    detected = rng.random(300) < 0.5
    invariant = np.arange(300) < 100
    few = np.where(invariant, np.arange(300) % 9, np.arange(300))
    found = bootstrap.estimate(figure(detected, invariant), few, rng)
    assert (found.low, found.reason) == (None, "under 10 clusters")
    found = bootstrap.estimate(figure(detected, invariant), np.arange(300), rng)
    assert found.low < found.value < found.high


def test_the_interval_of_j_is_that_of_independent_rates_and_knows_clusters():
    # 900 items, 400 of them errors, half of either kind detected: variance .25/400 + .25/500,
    # error 0.03354, 1.96 of which are 0.0657.
    detected = np.arange(900) % 2
    invariant = np.arange(900) >= 400
    rng = np.random.Generator(np.random.PCG64(2))
    found = bootstrap.estimate(sensitivity.j(detected, invariant), np.arange(900), rng)
    assert (found.low, found.high) == pytest.approx((-0.0657, 0.0657), abs=0.008)
    # An error item in a cluster with an invariant one that goes the same way: noise cancels.
    detected, clusters = np.repeat(np.arange(400) % 2, 2), np.repeat(np.arange(400), 2)
    found = bootstrap.estimate(sensitivity.j(detected, np.arange(800) % 2), clusters, rng)
    assert (found.value, found.low, found.high) == pytest.approx((0, 0, 0))
