"""Counted circles as data: ties are told by number, panels keep their order, axes can be shared."""

import math
from typing import Any

import pytest

from charts.counted import MOST_NUMBERS, PairCount, draw_circles
from charts.marks import COLOURS

FOUND = [
    PairCount("2 · likert", 1, 3, 4, "correctness", "correctness"),
    PairCount("2 · likert", 2, 1, 1, "correctness", "correctness"),
    PairCount("1 · rouge-l", 2, 0.5, 2, "correctness", "run 1"),
]


def marks(panel: dict[str, Any]) -> list[str]:
    return [layer["mark"]["type"] for layer in panel["layer"]]


def axis(panel: dict[str, Any], channel: str) -> tuple[Any, Any]:
    drawn = panel["layer"][-1]["encoding"][channel]
    return drawn["scale"]["domain"], drawn["axis"].get("values")


def test_a_circle_stands_for_its_items_and_is_as_large_in_every_panel() -> None:
    likert, rouge = draw_circles(FOUND)["concat"]
    assert marks(likert) == ["line", "circle", "text"]
    sizes = [panel["layer"][-2]["encoding"]["size"] for panel in (likert, rouge)]
    assert [(size["field"], size["scale"]["domain"]) for size in sizes] == [("n", [0, 4])] * 2


def test_panels_keep_their_order() -> None:
    assert [panel["title"]["text"] for panel in draw_circles(FOUND)["concat"]] == [
        ["2 · likert"], ["1 · rouge-l"],
    ]  # fmt: skip


def test_panels_that_look_alike_have_their_own_counts_and_titles() -> None:
    again = PairCount("3 · likert: x", 3, 3, 2, "correctness", "correctness")
    first, _, last = draw_circles([*FOUND, again])["concat"]
    assert [one["n"] for one in first["data"]["values"]] == [4, 1]
    assert [one["n"] for one in last["data"]["values"]] == [2]
    assert last["title"]["text"] == ["3 · likert", "x"]
    for panel in (first, last):
        line, *circles = panel["layer"]
        assert len(line["data"]["values"]) == 2
        assert not any("data" in layer for layer in circles)


def test_axes_of_one_name_run_over_the_same_numbers() -> None:
    likert, rouge = draw_circles(FOUND)["concat"]
    # Of the metric 1 to 3, given by either side; of the measure the one number that it gave.
    assert axis(likert, "x") == axis(likert, "y") == axis(rouge, "x") == ([1, 3], [1, 2, 3])
    assert axis(rouge, "y") == ([0.5, 0.5], None)


def test_a_measure_with_a_scale_of_its_own_has_no_line_of_equal_numbers() -> None:
    assert "line" not in marks(draw_circles(FOUND)["concat"][1])


def test_a_panel_with_many_circles_has_no_numbers() -> None:
    many = [PairCount("1 · rouge-l", 1, n / 100, 1) for n in range(MOST_NUMBERS + 1)]
    [panel] = draw_circles(many)["concat"]
    assert "text" not in marks(panel)


def test_nothing_makes_an_empty_chart() -> None:
    assert draw_circles([])["concat"] == []


def test_circles_are_as_large_as_the_next_ones_leave_room() -> None:
    few, many = (
        draw_circles([PairCount("1", 0, 0, 5), PairCount("1", last, last, 1)])["concat"][0]["layer"]
        for last in (2, 7)
    )
    largest = [layers[-2]["encoding"]["size"]["scale"]["range"][1] for layers in (few, many)]
    # 50 wide, and nine tenths of (200 - 2 x 26) / 7.
    assert largest == pytest.approx([math.pi * 25**2, math.pi * (0.45 * 148 / 7) ** 2])


def test_circles_have_the_first_colour_of_all_charts() -> None:
    [layer] = [
        layer
        for layer in draw_circles(FOUND)["concat"][1]["layer"]
        if layer["mark"]["type"] == "circle"
    ]
    assert layer["mark"]["color"] == COLOURS[0]
    assert layer["mark"]["stroke"] == COLOURS[0]
