"""How labels of a field become a resolution; every expected value is counted by hand."""

from typing import Any

import pytest

from annotation.tasktypes.outcome_rules import RULE_TITLES, RULES


@pytest.mark.parametrize(
    "rule, values, places, expected",
    [
        ("first", ["invalid", "valid"], 3, "invalid"),
        ("first", [], 3, None),
        # More than half of the places, not of the labels: two of three decide, one of two does not.
        ("majority", ["valid", "valid"], 3, "valid"),
        ("majority", ["valid"], 2, None),
        ("majority", ["valid", "invalid"], 2, None),
        ("majority", ["valid", "invalid", "valid", "invalid"], 4, None),
        # Of several values at once: "a" by 2 of 3, "b" by 1 of 3; only when all have spoken.
        ("majority", [["a", "b"], ["a"], ["c"]], 3, ["a"]),
        ("majority", [["a"], ["a"]], 3, None),
        ("majority", [["a"], ["b"], ["c"]], 3, []),
        ("unanimous", ["valid", "valid", "valid"], 3, "valid"),
        ("unanimous", ["valid", "valid"], 3, None),
        ("unanimous", ["valid", "invalid", "valid"], 3, None),
        ("adjudicated", ["valid", "valid", "valid"], 3, None),
        ("median", [1, 3, 2], 3, 2),
        ("median", [1, 2], 2, 1.5),
        ("median", [1, 3], 3, None),
        # Study 003: the value of two of three; three different ones give the middle one, 2.
        ("three", [3, 3], 3, 3),
        ("three", [1, 3, 2], 3, 2),
        ("three", [1, 1, 3], 3, 1),
        ("three", [1, 3], 3, None),
    ],
)
def test_a_rule_makes_of_labels_what_it_says(
    rule: str, values: list[Any], places: int, expected: Any
) -> None:
    assert RULES[rule](values, places) == expected


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_makes_anything_of_no_label(rule: str) -> None:
    assert RULES[rule]([], 1) is None


def test_every_rule_has_words_for_people() -> None:
    assert set(RULE_TITLES) == set(RULES)
