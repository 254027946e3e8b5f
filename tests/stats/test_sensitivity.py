import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from stats import bootstrap, rates, sensitivity
from stats.estimates import Estimate

NAN = math.nan
# 4 of 5 errors detected, one missing; 1 of 4 invariant items, two missing.
DETECTED = [1, 1, 1, 1, 0, NAN, 1, 0, 0, 0, NAN, NAN]
INVARIANT = [False] * 6 + [True] * 6


def j_of(detected, invariant, clusters=None):
    """J of items, from their two rates."""
    hits, calm = np.asarray(detected, dtype=float), np.asarray(invariant, dtype=bool)
    cluster = np.arange(len(hits)) if clusters is None else np.asarray(clusters)
    return sensitivity.youden_j(
        *(rates.estimate_rate(hits[side], cluster[side]) for side in (~calm, calm))
    )


def test_j_by_hand():
    found = j_of(DETECTED, INVARIANT)
    assert (found.value, found.n, found.reason) == (pytest.approx(4 / 5 - 1 / 4), 9, "")


def test_the_interval_of_j_is_the_one_that_newcombe_prints():
    # 56 of 70 against 48 of 80: .2, Wilson .6924 to .8773 and .4904 to .7002; Newcombe (1998),
    # table II, method 10: .0524 to .3339.
    sides = np.repeat([False, True], [70, 80])
    found = j_of([1] * 56 + [0] * 14 + [1] * 48 + [0] * 32, sides)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    # 10 of 10 against 0 of 10: .6075 to 1, where drawing leaves no width at all.
    found = j_of([1] * 10 + [0] * 10, np.repeat([False, True], [10, 10]))
    assert (found.value, found.low, found.high) == pytest.approx((1, 0.6075, 1), abs=5e-5)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=4, max_size=12))
def test_the_interval_of_j_holds_it_and_stays_between_its_ends(clusters):
    hits = [float(place < many) for many, n in clusters for place in range(n)]
    cluster = [number for number, (_, n) in enumerate(clusters) for _ in range(n)]
    found = j_of(hits, np.array(cluster) % 2 == 0, cluster)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_j_knows_that_items_of_a_question_are_alike():
    detected, invariant = np.arange(80) % 2, np.arange(80) >= 40
    alone = j_of(detected, invariant)
    twins = j_of(np.repeat(detected, 2), np.repeat(invariant, 2), np.repeat(np.arange(80), 2))
    assert twins.value == alone.value
    assert (twins.low, twins.high) == pytest.approx((alone.low, alone.high), abs=0.01)


def test_d_prime_by_hand():
    # 5 of 9 items are errors and 4 are not: z((4 + 5/9) / (5 + 10/9)) - z((1 + 4/9) / (4 + 8/9)),
    # which is z(41/55) - z(13/44) = 0.66025 + 0.53752.
    found = sensitivity.d_prime(DETECTED, INVARIANT).point()
    assert found.value == pytest.approx(0.66025 + 0.53752, abs=1e-5)
    assert found.value == pytest.approx(norm.ppf(41 / 55) - norm.ppf(13 / 44))


@given(st.lists(st.tuples(st.sampled_from([0, 0.4, 1, NAN]), st.booleans()), max_size=20))
def test_figures_are_their_formulas_over_the_parsed_items_of_each_kind(items):
    errors, alarms = (
        [hit for hit, invariant in items if invariant == kind and not math.isnan(hit)]
        for kind in (False, True)
    )
    sides = [hit for hit, _ in items], [kind for _, kind in items]
    j, d_prime = j_of(*sides), sensitivity.d_prime(*sides).point()
    assert j.n == d_prime.n == len(errors) + len(alarms)
    if errors and alarms:
        n = len(errors) + len(alarms)
        z = [norm.ppf((n * np.mean(side) + 1) / (n + 2)) for side in (errors, alarms)]
        assert j.value == pytest.approx(np.mean(errors) - np.mean(alarms), abs=1e-9)
        assert d_prime.value == pytest.approx(z[0] - z[1], abs=1e-12)
    else:
        assert j.value is d_prime.value is None


def test_perfect_and_blind_evaluators_have_finite_figures():
    # All of 3 and none of 3: J 1, d' 2 z(3.5 / 4) = 2 x 1.15035. Alike on either side: 0.
    kinds = [False] * 3 + [True] * 3
    perfect = [1, 1, 1, 0, 0, 0]
    assert j_of(perfect, kinds).value == 1
    d_prime = sensitivity.d_prime(perfect, kinds).point()
    assert d_prime.value == pytest.approx(2 * 1.15035, abs=1e-5)
    for detected in ([0] * 6, [1] * 6):
        assert j_of(detected, kinds).value == 0
        assert sensitivity.d_prime(detected, kinds).point().value == 0


@pytest.mark.parametrize(
    ("detected", "invariant", "reason"),
    [
        ([], [], "no parsed item"),
        ([NAN], [True], "no parsed item"),
        ([1, 0, NAN], [False, False, True], "no score-invariant item"),
        ([1, 0], [True, True], "no error item"),
    ],
)
def test_a_run_without_items_of_either_kind_has_a_dash(detected, invariant, reason):
    for found in (j_of(detected, invariant), sensitivity.d_prime(detected, invariant).point()):
        assert (found.value, found.reason) == (None, reason)


def test_where_a_rate_has_no_interval_j_has_none_and_says_why():
    one = Estimate(0.5, None, None, 4, "one cluster")
    found = sensitivity.youden_j(Estimate(0.75, 0.4, 0.9, 4), one)
    assert found == Estimate(0.25, None, None, 8, "one cluster")
    assert sensitivity.youden_j(one, one).reason == "one cluster"


def test_of_d_prime_both_kinds_need_ten_clusters():
    rng = np.random.Generator(np.random.PCG64(1))
    detected = rng.random(300) < 0.5
    invariant = np.arange(300) < 100
    few = np.where(invariant, np.arange(300) % 9, np.arange(300))
    figure = sensitivity.d_prime(detected, invariant)
    found = bootstrap.estimate(figure, few, rng)
    assert (found.low, found.reason) == (None, "under 10 clusters")
    found = bootstrap.estimate(figure, np.arange(300), rng)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("rate", [0, 0.5, 1])
@pytest.mark.parametrize("numbers", [(1884, 516), (200, 20), (3, 90)])
def test_equal_rates_have_a_d_prime_of_0_for_any_numbers_of_items(numbers, rate):
    invariant = np.repeat([False, True], numbers)
    found = sensitivity.d_prime(np.full(sum(numbers), rate), invariant).point()
    assert found.value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("alike", [0, 1])
def test_d_prime_has_no_interval_if_all_items_of_one_kind_are_alike(alike):
    rng = np.random.Generator(np.random.PCG64(1))
    invariant = np.arange(60) < 20
    detected = np.where(invariant, alike, np.arange(60) % 2)
    found = sensitivity.estimate_d_prime(detected, invariant, np.arange(60), rng)
    assert found.value is not None
    assert (found.low, found.reason) == (None, "all items of one kind alike")
    detected[0] = 1 - alike
    found = sensitivity.estimate_d_prime(detected, invariant, np.arange(60), rng)
    assert found.low < found.value < found.high


def test_a_perfect_d_prime_has_no_interval_of_no_width():
    rng = np.random.Generator(np.random.PCG64(1))
    # As many of either kind in every cluster, so that each draw has as many, too.
    figure = sensitivity.d_prime([1, 0] * 20, [False, True] * 20)
    found = bootstrap.estimate(figure, np.repeat(np.arange(20), 2), rng)
    assert (found.low, found.high, found.reason) == (None, None, "all draws agree")
