import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from stats import bootstrap, closeness
from stats.rates import RateBounds

NAN = math.nan
scores = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=30)
MEASURES = [
    closeness.rmse, closeness.mae, closeness.bias, partial(closeness.accuracy_002, total_range=15),
]  # fmt: skip


def test_errors_by_hand():
    # Errors 1, -2, 2 on three items; the fourth and fifth lack one side. Squares 9, absolutes 5.
    people, evaluator = [1, 3, 1, NAN, 2], [2, 1, 3, 2, NAN]
    rmse, mae, bias, accuracy = (one(people, evaluator).point() for one in MEASURES)
    assert rmse.value == pytest.approx(math.sqrt(3))
    assert (mae.value, bias.value) == pytest.approx((5 / 3, 1 / 3))
    # 100 - 100 x 1.7320508 / 15
    assert accuracy.value == pytest.approx(88.4530, abs=1e-4)
    assert {one.n for one in (rmse, mae, bias, accuracy)} == {3}


def test_accuracy_gives_the_study_s_cells_back():
    # Study 002: an RMSE of 5.75 in Llama-2's total (figure 7) is its 61.6 % (figure 9), cut.
    accuracy = closeness.accuracy_002([0.0], [5.75], 15).point().value
    assert math.floor(10 * accuracy) / 10 == 61.6
    # The same error of a total of -3 to 3 points.
    assert closeness.accuracy_002([0.0], [1.5], 6).point().value == 75
    with pytest.raises(ValueError, match="the range of a total cannot be 0"):
        closeness.accuracy_002([0.0], [1.5], 0)


@given(scores)
def test_errors_equal_those_of_scikit_learn(pairs):
    people, evaluator = np.array(pairs, dtype=float).T
    expected = {
        closeness.rmse: metrics.root_mean_squared_error,
        closeness.mae: metrics.mean_absolute_error,
    }
    for measure, oracle in expected.items():
        assert measure(people, evaluator).point().value == pytest.approx(oracle(people, evaluator))
    bias = closeness.bias(people, evaluator).point().value
    assert bias == pytest.approx(np.mean(evaluator - people), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("people", "evaluator"), [([], []), ([1, NAN], [NAN, 2])])
def test_without_an_item_that_has_both_there_is_no_error(measure, people, evaluator):
    found = measure(people, evaluator).point()
    assert (found.value, found.n, found.reason) == (None, 0, "no item with both scores")


def test_equal_scores_have_no_error():
    found = [one([2, 3, 2], [2, 3, 2]).point().value for one in MEASURES]
    assert found == [0, 0, 0, 100]


def test_the_interval_of_an_error_is_that_of_its_items():
    # 400 errors of 0 or 1, half each: RMSE^2 has standard error 0.025, so 0.451 to 0.549 squared.
    evaluator = np.arange(400) % 2
    rng = np.random.Generator(np.random.PCG64(1))
    found = bootstrap.estimate(closeness.rmse(np.zeros(400), evaluator), np.arange(400), rng)
    assert found.value == pytest.approx(math.sqrt(0.5))
    assert (found.low**2, found.high**2) == pytest.approx((0.451, 0.549), abs=0.006)
    one = bootstrap.estimate(closeness.rmse(np.zeros(400), evaluator), np.zeros(400), rng)
    assert (one.low, one.reason) == (None, "under 10 clusters")


def test_scaled_means_by_hand():
    # 1, 3, 3 on a scale of 1 to 3: 0, 1, 1.
    found = closeness.mean_scaled([1, 3, NAN, 3], 1, 3).point()
    assert (found.value, found.n) == (pytest.approx(2 / 3), 3)
    assert closeness.mean_scaled([NAN], 1, 3).point().value is None
    with pytest.raises(ValueError, match="from 3 to 3"):
        closeness.mean_scaled([3], 3, 3)


def test_bounds_of_the_error_by_hand():
    # On 1 to 3: an error of 1, and missing scores where people gave 1 (0 or 2 off) and 2 (0 or 1).
    found = closeness.rmse_bounds([2, 1, 2, NAN], [3, NAN, NAN, 1], 1, 3)
    assert found == RateBounds(pytest.approx(math.sqrt(1 / 3)), pytest.approx(math.sqrt(6 / 3)))


def test_bounds_know_the_step_and_scores_above_the_scale():
    # Between 1 and 2 whole steps come as near as 0.4; 4 of 3 is at least 1 off, at most 3.
    assert closeness.rmse_bounds([1.4], [NAN], 1, 3, step=1).lowest == pytest.approx(0.4)
    assert closeness.rmse_bounds([1.4], [NAN], 1, 3).lowest == 0
    assert closeness.rmse_bounds([4], [NAN], 1, 3) == RateBounds(1, 3)


def test_bounds_of_nothing_do_not_exist_and_without_missing_scores_are_the_error():
    assert closeness.rmse_bounds([], [], 1, 3) == RateBounds(None, None)
    assert closeness.rmse_bounds([NAN], [2], 1, 3) == RateBounds(None, None)
    found = closeness.rmse_bounds([1, 2], [3, 2], 1, 3)
    assert found == RateBounds(pytest.approx(math.sqrt(2)), pytest.approx(math.sqrt(2)))


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 3, NAN])), min_size=1, max_size=6)
)
def test_bounds_are_those_of_every_way_to_fill_in(pairs):
    people, evaluator = np.array(pairs, dtype=float).T
    gaps = np.isnan(evaluator)
    errors = []
    for filled in itertools.product([1, 2, 3], repeat=int(gaps.sum())):
        whole = evaluator.copy()
        whole[gaps] = filled
        errors.append(math.sqrt(np.mean((whole - people) ** 2)))
    found = closeness.rmse_bounds(people, evaluator, 1, 3, step=1)
    assert (found.lowest, found.highest) == pytest.approx((min(errors), max(errors)))
