import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import majority
from stats.rates import estimate_rate

NAN = math.nan
rows = st.lists(st.lists(st.sampled_from([1, 2, 3, NAN]), min_size=4, max_size=4), max_size=8)


def test_the_majority_of_three_is_study_003_s_by_hand():
    table = [[1, 1, 3], [3, 3, 3], [3, 1, 2], [2, 3, 2]]
    found = majority.majority_values(table)
    assert found.values.tolist() == [1, 3, 2, 2]
    assert found.decided.tolist() == [1, 1, 0, 1]
    # "There exists a majority vote for 93.5 %": here for 3 of 4.
    assert estimate_rate(found.decided, range(4)).value == 0.75


def test_three_different_values_take_the_middle_one_on_any_scale():
    assert majority.majority_values([[5, 1, 4]]).values.tolist() == [4]


def test_two_four_or_no_labels_by_hand():
    table = [[1, 2, NAN, NAN], [NAN, 2, NAN, 2], [1, 1, 3, 3], [1, 3, 3, 3], [NAN] * 4]
    table += [[NAN, 3, NAN, NAN], [1, NAN, 2, 3]]
    found = majority.majority_values(table)
    assert np.array_equal(found.values, [NAN, 2, NAN, 3, NAN, 3, 2], equal_nan=True)
    assert np.array_equal(found.decided, [0, 1, 0, 1, NAN, 1, 0], equal_nan=True)


@pytest.mark.parametrize("table", [[], np.empty((0, 3))])
def test_no_items_have_no_majority(table):
    assert majority.majority_values(table).values.tolist() == []


@given(rows)
def test_a_majority_is_what_counting_gives(table):
    found = majority.majority_values(table)
    for row, value, decided in zip(table, found.values, found.decided, strict=True):
        given_labels = [one for one in row if not math.isnan(one)]
        most = [one for one, n in Counter(given_labels).items() if 2 * n > len(given_labels)]
        if most:
            assert (value, decided) == (most[0], 1)
        elif sorted(given_labels) == [1, 2, 3]:
            assert (value, decided) == (2, 0)
        else:
            assert math.isnan(value)
            assert decided == 0 or not given_labels


def test_agreement_by_people_s_score_by_hand():
    # On 1s: 1, missing, 3: 1 of 2. On 3s: 3, 3, 2: 2 of 3. Where people have none, nothing.
    people = [1, 1, 1, 3, 3, 3, NAN]
    evaluator = [1, NAN, 3, 3, 3, 2, 1]
    found = majority.agreement_by_score(people, evaluator, np.arange(7))
    assert {score: (one.value, one.n) for score, one in found.items()} == {
        1: (0.5, 2),
        3: (2 / 3, 3),
    }
    assert found[3] == estimate_rate([1, 1, 0], np.arange(3))


def test_agreement_knows_clusters_and_emptiness():
    found = majority.agreement_by_score([1, 1, 2], [1, 2, NAN], [4, 4, 5])
    assert (found[1].value, found[1].low, found[1].reason) == (0.5, None, "one cluster")
    assert (found[2].value, found[2].reason) == (None, "no items")
    assert majority.agreement_by_score([], [], []) == {}
