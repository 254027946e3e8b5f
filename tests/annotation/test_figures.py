"""Figures as people read them."""

import pytest

from annotation.templatetags.figures import DASH, coefficient, duration, number, share


@pytest.mark.parametrize(
    "value, text",
    [
        (None, DASH),
        (0, "0.0 %"),
        (0.0001, "< 0.1 %"),
        (0.5, "50.0 %"),
        (0.996, "99.6 %"),
        (0.9999, "> 99.9 %"),
        (1, "100.0 %"),
    ],
)
def test_a_part_is_never_said_to_be_nothing_or_all(value: float | None, text: str) -> None:
    assert share(value) == text


@pytest.mark.parametrize(
    "value, text",
    [(None, DASH), (1, "1"), (0.9999, "> 0.999"), (-0.25, "−0.250"), (-0.0001, "0.000")],
)
def test_a_coefficient_is_one_only_where_it_is(value: float | None, text: str) -> None:
    assert coefficient(value) == text


def test_counts_and_times_are_rounded_as_people_say_them() -> None:
    assert [number(value) for value in (None, 1234, 2.0, 2.25)] == [DASH, "1,234", "2", "2.2"]
    assert [duration(value) for value in (None, 3.2, 45, 125)] == [
        DASH,
        "3.2 s",
        "45 s",
        "2 min 5 s",
    ]
