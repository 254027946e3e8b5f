"""The trend over doses against closed forms, other libraries, brute force and simulated data."""

from collections import defaultdict
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from stats.bootstrap import ROUGH
from stats.trend import ALL_ALIKE, CONSTANT, HELD_BY_FEW, NO_ITEMS, ONE_DOSE, estimate_trend

Array = NDArray[np.float64]


def ladder(
    rng: np.random.Generator, m: int, rate: float, alike: float
) -> tuple[Array, Array, Array]:
    """Questions with one to four rungs each, and answers that are found whatever the dose."""
    rungs = [dose for _ in range(m) for dose in (1, 2, 4, 8)[: rng.integers(2, 5)]]
    cluster = np.cumsum([dose == 1 for dose in rungs]) - 1
    own = rng.beta(rate * (1 - alike) / alike, (1 - rate) * (1 - alike) / alike, m)
    found = rng.random(len(rungs)) < own[cluster]
    return found.astype(float), np.array(rungs, dtype=float), cluster.astype(float)


def test_the_slope_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(5)
    values, doses, clusters = ladder(rng, 30, 0.6, 0.2)
    found = estimate_trend(values, doses, clusters)
    assert found.value == pytest.approx(scipy_stats.linregress(doses, values).slope)
    assert (found.n, found.clusters, found.doses, found.reason) == (len(values), 30, 4, "")


def test_where_each_question_has_two_doses_it_is_the_paired_t_test() -> None:
    # With doses 0 and 1 the score of a question is half its difference, after the mean of y.
    rng = np.random.default_rng(2)
    low, high = rng.normal(3, 1, 25), rng.normal(3.5, 1, 25)
    clusters = np.arange(25)
    found = estimate_trend([*low, *high], [0] * 25 + [1] * 25, [*clusters, *clusters])
    test = scipy_stats.ttest_rel(high, low)
    ends = test.confidence_interval(0.95)
    assert found.value == pytest.approx(float(np.mean(high - low)))
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))


def test_the_interval_has_the_slopes_that_the_test_does_not_reject() -> None:
    rng = np.random.default_rng(8)
    values, doses, clusters = ladder(rng, 24, 0.7, 0.3)
    found = estimate_trend(values, doses, clusters)
    assert found.low is not None
    assert found.high is not None
    for end in (found.low, found.high):
        assert estimate_trend(values - end * doses, doses, clusters).p == pytest.approx(0.05)
    inside = estimate_trend(values - (found.low + 1e-3) * doses, doses, clusters)
    outside = estimate_trend(values - (found.low - 1e-3) * doses, doses, clusters)
    assert (outside.p or 0) < 0.05 < (inside.p or 0)


def test_p_is_the_t_test_of_the_scores_of_questions() -> None:
    values, doses, clusters = ladder(np.random.default_rng(4), 21, 0.4, 0.3)
    scores: dict[float, float] = defaultdict(float)
    squares: dict[float, float] = defaultdict(float)
    for y, x, cluster in zip(values, doses, clusters, strict=True):
        far = x - doses.mean()
        scores[cluster] += far * (y - values.mean())
        squares[cluster] += far * far
    effective = sum(squares.values()) ** 2 / sum(one**2 for one in squares.values())
    each = list(scores.values())
    t = np.mean(each) / np.std(each, ddof=1) * sqrt(21)
    p = 2 * scipy_stats.t.sf(abs(t), effective - 1)
    assert estimate_trend(values, doses, clusters).p == pytest.approx(p)


def test_missing_values_are_left_out() -> None:
    values, doses, clusters = ladder(np.random.default_rng(6), 20, 0.5, 0.2)
    more = estimate_trend([*values, np.nan, np.nan], [*doses, 8, 64], [*clusters, 0, 99])
    assert more == estimate_trend(values, doses, clusters)


def test_questions_count_not_items() -> None:
    values, doses, clusters = ladder(np.random.default_rng(7), 20, 0.5, 0.2)
    one = estimate_trend(values, doses, clusters)
    many = estimate_trend(np.tile(values, 5), np.tile(doses, 5), np.tile(clusters, 5))
    assert (many.value, many.low, many.high, many.p) == pytest.approx(
        (one.value, one.low, one.high, one.p)
    )


@pytest.mark.parametrize(
    ("values", "doses", "value", "reason"),
    [
        ([], [], None, NO_ITEMS),
        ([np.nan, np.nan], [1, 2], None, NO_ITEMS),
        ([0.0, 1.0], [2, 2], None, ONE_DOSE),
        ([0.0, 1.0] * 4, [1, 2] * 4, 1, "under 10 clusters"),
        ([1 / 3] * 30, [1, 2, 4] * 10, 0, CONSTANT),
        # One of twelve questions alone has a second dose.
        ([1.0, 0.0] * 6, [1] * 11 + [4], -1 / 6, HELD_BY_FEW),
    ],
)
def test_where_nothing_can_be_said_there_is_a_reason(
    values: list[float], doses: list[int], value: float | None, reason: str
) -> None:
    found = estimate_trend(values, doses, range(len(values)))
    # By hand: where one item of n differs in x, the slope is its y minus the mean of the others,
    # over 3: (0 - 6 / 11) / 3 = -2 / 11.
    expected = -2 / 11 if reason == HELD_BY_FEW else value
    assert found.value == (None if expected is None else pytest.approx(expected))
    assert (found.low, found.high, found.p, found.reason) == (None, None, None, reason)


def test_where_all_questions_rise_alike_p_is_that_of_flipped_signs() -> None:
    # Twelve questions, found with four errors and not with one: two of 2^12 patterns are as far.
    found = estimate_trend([0, 1] * 12, [1, 4] * 12, np.repeat(np.arange(12), 2))
    assert found.value == pytest.approx(1 / 3)
    assert (found.low, found.high, found.reason) == (None, None, ALL_ALIKE)
    assert found.p == 2.0**-11


def test_an_interval_over_few_questions_is_rough() -> None:
    values, doses, clusters = ladder(np.random.default_rng(9), 15, 0.5, 0.2)
    found = estimate_trend(values, doses, clusters)
    assert found.reason == ROUGH
    assert found.low is not None
    assert found.p is not None


def test_a_level_is_a_share() -> None:
    with pytest.raises(ValueError, match="between 0 and 1, not 95"):
        estimate_trend([0, 1], [1, 2], [1, 2], level=95)


@pytest.mark.parametrize(("m", "rate"), [(20, 0.5), (40, 0.8)])
def test_without_a_trend_one_in_twenty_is_found_and_the_interval_contains_0(
    m: int, rate: float
) -> None:
    rng = np.random.default_rng(11)
    found = [estimate_trend(*ladder(rng, m, rate, 0.3)) for _ in range(500)]
    rejected = np.mean([one.p is not None and one.p < 0.05 for one in found])
    covers = np.mean([one.low is None or one.low <= 0 <= (one.high or 0) for one in found])
    # 0.05 + 2 standard errors of 500 draws.
    assert 0.01 < rejected <= 0.05 + 2 * sqrt(0.05 * 0.95 / 500)
    assert covers >= 0.95 - 2 * sqrt(0.05 * 0.95 / 500)


def test_a_true_trend_is_found_and_its_slope_covered() -> None:
    rng = np.random.default_rng(12)
    found = []
    for _ in range(300):
        doses, clusters = np.tile([1, 2, 4, 8], 30), np.repeat(np.arange(30), 4)
        values = rng.random(120) < 0.2 + 0.08 * doses
        found.append(estimate_trend(values, doses, clusters))
    covers = np.mean([(one.low or 0) <= 0.08 <= (one.high or 0) for one in found])
    # Rates from .28 to .84 vary differently at each dose, so it is somewhat less than 95 %.
    assert covers >= 0.9
    assert np.mean([(one.p or 0) < 0.05 for one in found]) > 0.95


@pytest.mark.parametrize("doses", [(1, 2), (0.1, 0.2, 0.4)])
def test_where_no_question_rises_or_falls_there_is_no_trend(doses: tuple[float, ...]) -> None:
    values = np.repeat([0.0, 1.0] * 6, len(doses))
    found = estimate_trend(values, doses * 12, np.repeat(np.arange(12), len(doses)))
    assert (found.value, found.low, found.p) == (0, None, 1)
    assert found.reason == "no cluster rises or falls"
