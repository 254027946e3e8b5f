"""Differences in points as data: a row a detector, a mark a figure, beside nought."""

from charts.shifts import Shift, draw_shifts

FOUND = [
    Shift("a: sums", "Recall", 25.0, 10.0, 41.0, 18),
    Shift("a: sums", "Precision", -4.0, None, None, 18),
    Shift("b: sums", "Recall", 0.0, None, None, 18),
]


def test_detectors_stand_in_their_order_and_figures_in_theirs() -> None:
    *_, shown = draw_shifts(FOUND, title="Difference in points")["layer"]
    assert shown["encoding"]["y"]["sort"] == ["a: sums", "b: sums"]
    assert shown["encoding"]["yOffset"]["sort"] == ["Recall", "Precision"]
    assert shown["encoding"]["shape"]["scale"]["domain"] == ["Recall", "Precision"]


def test_the_axis_reaches_as_far_to_either_side_as_the_farthest_end() -> None:
    line, _, shown = draw_shifts(FOUND, title="Difference in points")["layer"]
    assert line["data"]["values"] == [{"at": 0}]
    # The farthest end is at 41 points.
    assert shown["encoding"]["x"]["scale"]["domain"] == [-50, 50]


def test_a_difference_without_an_interval_has_no_rule() -> None:
    _, rules, _ = draw_shifts(FOUND, title="Difference in points")["layer"]
    assert rules["transform"] == [{"filter": "isValid(datum.low)"}]
