import pytest

from stats import groups
from stats.groups import GroupMean


def test_groups_count_alike_and_undefined_ones_are_counted_by_hand():
    # 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14 over 2.
    found = groups.mean_over_groups([1, None, 2, 6])
    assert found == GroupMean(3, pytest.approx(7**0.5), 3, 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], GroupMean(None, None, 0, 0)),
        ([None], GroupMean(None, None, 0, 1)),
        ([0.4], GroupMean(0.4, None, 1, 0)),
        ([0.4, 0.4], GroupMean(0.4, 0.0, 2, 0)),
    ],
)
def test_few_groups_have_no_mean_or_deviation(values, expected):
    assert groups.mean_over_groups(values) == expected
