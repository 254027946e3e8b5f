"""Figures as people read them."""

import pytest

from annotation.templatetags.figures import (
    DASH,
    coefficient,
    duration,
    estimate,
    heat,
    hundredths,
    number,
    share,
)
from stats.estimates import Estimate


@pytest.mark.parametrize(
    "value, text",
    [
        (None, DASH),
        (0, "0.0 %"),
        (0.0001, "< 0.1 %"),
        (0.00049, "< 0.1 %"),
        (0.0005, "0.1 %"),
        (0.5, "50.0 %"),
        (0.996, "99.6 %"),
        (0.9994, "99.9 %"),
        (0.9995, "> 99.9 %"),
        (0.9999, "> 99.9 %"),
        (1, "100.0 %"),
    ],
)
def test_a_part_is_never_said_to_be_nothing_or_all(value: float | None, text: str) -> None:
    assert share(value) == text


@pytest.mark.parametrize(
    "value, text",
    [
        (None, DASH),
        (1, "1"),
        (0.9994, "0.999"),
        (0.9995, "> 0.999"),
        (-0.25, "−0.250"),
        (-0.0001, "0.000"),
    ],
)
def test_a_coefficient_is_one_only_where_it_is(value: float | None, text: str) -> None:
    assert coefficient(value) == text


def test_counts_and_times_are_rounded_as_people_say_them() -> None:
    counts = (None, 1234, 2.0, 2.25, 99.9, 100.0, 100.4)
    assert [*map(number, counts)] == [DASH, "1,234", "2", "2.2", "99.9", "100", "100"]
    times = (None, 3.2, 9.94, 9.95, 45, 59.4, 59.6, 125)
    assert [*map(duration, times)] == [
        DASH, "3.2 s", "9.9 s", "10 s", "45 s", "59 s", "1 min 0 s", "2 min 5 s",
    ]  # fmt: skip


def test_a_share_has_a_place_on_a_line_of_a_hundred() -> None:
    assert [hundredths(one) for one in (None, 0, 0.004, 0.006, 0.5, 1)] == [0, 0, 0, 1, 50, 100]


@pytest.mark.parametrize(
    "value, bad, shade",
    [
        (None, "low", ""),
        (0, "low", "4"),
        (0.3, "low", "3"),
        (0.9, "low", "0"),
        (1, "low", "0"),
        (0, "high", "0"),
        (0.3, "high", "1"),
        (1, "high", "4"),
        (1.5, "high", "4"),
        (1.5, "low", "0"),
    ],
)
def test_a_share_is_shaded_by_how_bad_it_is(value: float | None, bad: str, shade: str) -> None:
    assert heat(value, bad) == shade


def test_a_share_is_shaded_only_where_one_end_is_bad() -> None:
    found = Estimate(0.3, 0.2, 0.4, 50)
    assert (estimate(found)["shade"], estimate(found, "low")["shade"]) == ("", "3")
    assert (estimate(found)["with_n"], estimate(found, with_n=False)["with_n"]) == (True, False)
