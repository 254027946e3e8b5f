import pytest

from stats import groups
from stats.groups import GroupMean

# Study 003, table 1: people's mean (GPT-4's) of each model, scaled to 100.
CORRECT = [(47, 51), (36, 37), (47, 47), (39, 40), (40, 44), (35, 34), (41, 43), (32, 33)]
CORRECT += [(35, 36), (37, 37), (35, 35), (35, 36)]
RELATED = [(73, 80), (76, 76), (80, 79), (80, 76), (72, 76), (65, 68), (74, 75), (66, 68)]
RELATED += [(79, 70), (66, 67), (81, 68), (68, 63)]


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


def test_the_mean_distance_is_study_003_s():
    # Correct 4 + 1 + 0 + 1 + 4 + 1 + 2 + 1 + 1 + 0 + 0 + 1 = 16 over 12, printed 1.3; related 50.
    assert round(groups.mean_distance(CORRECT), 1) == 1.3
    assert round(groups.mean_distance(RELATED), 1) == 4.2
    assert groups.mean_distance([]) is None
