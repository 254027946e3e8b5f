import math

import numpy as np
import pytest

from stats import stability
from stats.rates import clustered_wilson, sum_clusters

NAN = math.nan


def known(estimate):
    return (estimate.value, estimate.n, estimate.reason)


def test_the_order_effect_counts_parsed_pairs_by_hand():
    effects = ["first_twice", "first_twice", "second_twice", "half_tie", "", "", "", "", None]
    found = stability.order_effect(effects, np.arange(9))
    assert known(found.first_twice) == (2 / 8, 8, "")
    assert known(found.second_twice) == (1 / 8, 8, "")
    assert known(found.half_tie) == (1 / 8, 8, "")
    wilson = clustered_wilson(sum_clusters([(1, 1)] * 2 + [(1, 0)] * 6))
    assert (found.first_twice.low, found.first_twice.high) == (wilson.low, wilson.high)


@pytest.mark.parametrize("effects", [[], [None, None]])
def test_without_parsed_pairs_there_is_no_order_effect(effects):
    found = stability.order_effect(effects, [1] * len(effects))
    assert known(found.half_tie) == (None, 0, "no items")


def test_pairs_of_one_cluster_leave_no_interval():
    found = stability.order_effect(["first_twice", ""], [7, 7]).first_twice
    assert (found.value, found.low, found.reason) == (0.5, None, "one cluster")


def test_items_that_change_by_hand():
    # Changes; does not; changes in spite of a gap; one repeat alone; none. 2 of 3.
    table = [[1, 0, 1], [1, 1, 1], [0, NAN, 1], [NAN, 1, NAN], [NAN] * 3]
    assert known(stability.changing_rate(table, np.arange(5))) == (2 / 3, 3, "")


def test_any_number_may_name_an_outcome():
    assert stability.changing_rate([[3, 3], [-2, 7], [0, 0], [5, 5]], np.arange(4)).value == 0.25


def test_changes_know_clusters():
    table = [[0, 1], [0, 1], [1, 1], [0, 0], [1, 1], [1, 1]]
    found = stability.changing_rate(table, [5, 5, 2, 2, 9, 9])
    wilson = clustered_wilson(sum_clusters([(2, 2), (2, 0), (2, 0)]))
    assert (found.low, found.high) == (wilson.low, wilson.high)


@pytest.mark.parametrize("table", [[], [[]], [[1.0], [0.0]], [[NAN, 1]]])
def test_without_repeats_nothing_can_change(table):
    assert known(stability.changing_rate(table, range(len(table)))) == (None, 0, "no items")
