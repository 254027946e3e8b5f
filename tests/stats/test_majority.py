import pytest

from stats.majority import majority, median, of_three, unanimous


@pytest.mark.parametrize(
    "labels, value",
    [
        (["a"], "a"),
        (["a", "b", "a"], "a"),
        (["a", "b"], None),
        (["a", "a", "b", "b"], None),
        (["a", "a", "b", "c"], None),
        ([], None),
    ],
)
def test_a_majority_is_more_than_half(labels, value):
    assert majority(labels) == value


@pytest.mark.parametrize(
    "labels, value", [(["a", "a"], "a"), (["a"], "a"), (["a", "b", "a"], None), ([], None)]
)
def test_unanimous_is_all_alike(labels, value):
    assert unanimous(labels) == value


@pytest.mark.parametrize(
    "labels, value", [([3, 1, 2], 2), ([5, 1, 1, 4], 2.5), ([4], 4), ([], None)]
)
def test_the_median_is_in_the_middle(labels, value):
    assert median(labels) == value


@pytest.mark.parametrize(
    "labels, value",
    [([1, 3, 3], 3), ([1, 1, 1], 1), ([3, 1, 2], 2), ([1, 1], None), ([1, 1, 1, 1], None)],
)
def test_three_labels_give_the_value_of_two_and_three_different_ones_give_2(labels, value):
    assert of_three(labels) == value
