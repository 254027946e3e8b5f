import numpy as np
import pytest

from stats import ratings
from tests.stats.builders_ratings import ratings_from_names

NAN = np.nan


def test_values_become_positions_on_the_scale():
    got = ratings.ratings_from_values([[5, NAN], [1, 2]], [5, 2, 1, 3])
    assert got.codes.tolist() == [[3, -1], [0, 1]]
    assert got.values.tolist() == [1, 2, 3, 5]


def test_the_table_is_left_as_it_is():
    table = np.array([[1.0, NAN]])
    ratings.ratings_from_values(table)
    assert np.array_equal(table, [[1.0, NAN]], equal_nan=True)


def test_what_is_off_the_scale_is_refused():
    with pytest.raises(ValueError, match="4 is not on the scale 1, 2, 3"):
        ratings.ratings_from_values([[1, 4]], [1, 2, 3])


def test_clusters_may_have_any_name_and_must_fit():
    got = ratings_from_names([["a"], ["a"], ["a"]], clusters=["y", "x", "y"])
    assert got.clusters.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="3 items need 3 clusters, not 2"):
        ratings_from_names([["a"], ["a"], ["a"]], clusters=["x", "y"])


def test_every_two_labels_of_an_item_are_one_pair():
    got = ratings.rating_pairs(ratings.ratings_from_values([[1, 2, 3], [NAN, 1, 2], [3, NAN, NAN]]))
    rows = zip(got.item, got.a, got.b, got.code_a, got.code_b, strict=True)
    assert sorted(tuple(map(int, row)) for row in rows) == [
        (0, 0, 1, 0, 1),
        (0, 0, 2, 0, 2),
        (0, 1, 2, 1, 2),
        (1, 1, 2, 0, 1),
    ]


def test_counts_are_labels_of_each_class():
    got = ratings_from_names([["a", "a", "b"], [None, "c", None]])
    assert got.counts().tolist() == [[2, 1, 0], [0, 0, 1]]


def test_what_two_share_is_the_items_of_both():
    got = ratings.ratings_from_values(
        [[1, 2, 3], [NAN, 1, 2], [3, NAN, 1]], clusters=[7, 8, 7]
    ).shared(0, 2)
    assert got.codes.tolist() == [[0, 2], [2, 0]]
    assert got.clusters.tolist() == [0, 0]
