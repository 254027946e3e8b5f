"""Differences as data: one mark a pair of runs, beside nought."""

from charts.differences import Difference, draw_differences

FOUND = [
    Difference("2 · rubric: minus 1 · vanilla", 25, 10, 40, 120),
    Difference("3 · axis: minus 1 · vanilla", -5, None, None, 3),
]


def test_pairs_stand_in_their_order_with_what_they_rest_on() -> None:
    drawn = draw_differences(FOUND)
    assert drawn["layer"][-1]["encoding"]["y"]["sort"] == [one.pair for one in FOUND]
    assert drawn["data"]["values"][0]["n"] == 120


def test_points_are_told_as_points() -> None:
    mark = draw_differences(FOUND)["layer"][-1]["encoding"]
    assert mark["x"]["axis"]["title"] == "Difference in points"
    assert {one.get("format") for one in mark["tooltip"]} == {None, "+.1f", ","}


def test_the_axis_goes_both_ways_from_nought() -> None:
    line, _, marks = draw_differences(FOUND)["layer"]
    assert line["data"]["values"] == [{"at": 0}]
    assert marks["encoding"]["x"]["scale"]["domain"] == [-100, 100]


def test_a_difference_without_an_interval_has_no_rule() -> None:
    _, rules, _ = draw_differences(FOUND)["layer"]
    assert rules["transform"] == [{"filter": "isValid(datum.low)"}]
