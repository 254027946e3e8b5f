import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.estimates import Estimate
from stats.forecast import days_left


def test_even_days_say_exactly_when():
    # 10 a day without any deviation: 35 more take 3.5 days, which is 4 whole ones.
    assert days_left([10, 10, 10], 35) == Estimate(4, 4, 4, 3)


def test_uneven_days_give_a_range():
    # Mean 10, deviation sqrt(50) = 7.071 of 2 days, t with 1 degree of freedom 12.706: the days
    # may be far slower, so at the slowest it never ends. 7.071 x 12.706 = 89.85 on one day with
    # sqrt(1 + 1/2): 10 + 110.0 >= 100, so the first day may be the last.
    found = days_left([5, 15], 100)
    assert (found.value, found.low, found.high) == (10, 1, None)
    assert found.reason == "at the slowest it would not end"


def test_many_even_enough_days_give_both_ends():
    # 14 days, seven of 8 and seven of 12: mean 10, s = sqrt(56 / 13) = 2.0755,
    # t(13) = 2.1604, t s = 4.4839. After 9 days 90 + 4.4839 sqrt(9 + 81/14) = 107.2 >= 100,
    # after 8 80 + 4.4839 sqrt(8 + 64/14) = 95.9 < 100: low is 9. After 11 days
    # 110 - 4.4839 sqrt(11 + 121/14) = 90.1 < 100, after 12 120 - 4.4839 sqrt(12 + 144/14) = 98.8,
    # after 13 130 - 4.4839 sqrt(13 + 169/14) = 107.5: high is 13.
    found = days_left([8, 12] * 7, 100)
    assert (found.value, found.low, found.high) == (10, 9, 13)


def test_nothing_left_takes_no_day_and_no_data_says_so():
    assert days_left([], 0) == Estimate(0, 0, 0, 0)
    assert days_left([], 5).reason == "no full day yet"
    assert days_left([0, 0], 5).value is None
    assert days_left([5], 5) == Estimate(1, None, None, 1, "one full day")


def test_a_forecast_ends_within_ten_years_or_not_at_all():
    assert days_left([1, 1, 1], 1_000_000).high is None


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20), st.integers(1, 2000))
def test_the_value_lies_within_its_range(counts, left):
    found = days_left(counts, left)
    if found.value is None or found.low is None:
        return
    assert found.low <= found.value
    assert found.high is None or found.value <= found.high


@pytest.mark.parametrize("left", [10, 100, 1000])
def test_more_left_takes_longer(left):
    assert days_left([3, 5, 4], left).value < days_left([3, 5, 4], 2 * left).value
