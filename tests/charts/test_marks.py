"""Colours and shapes that can be told apart on both sheets, and what is said of marks."""

import altair as alt
import pytest
from altair.utils.schemapi import SchemaValidationError

from charts import marks

SHEETS = {"light": "#ffffff", "dark": "#1c2024"}


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sheet", SHEETS)
@pytest.mark.parametrize("colour", marks.COLOURS)
def test_a_mark_stands_out_from_the_sheet(colour: str, sheet: str) -> None:
    assert contrast(colour, SHEETS[sheet]) >= 3


def test_twenty_runs_differ_in_colour_or_shape() -> None:
    names = [str(number) for number in range(20)]
    colours = marks.colour_by("run", names, "Run").to_dict()["scale"]["range"]
    shapes = marks.shape_by("run", names, "Run").to_dict()["scale"]["range"]
    assert len(set(zip(colours, shapes, strict=True))) == 20


def test_intervals_are_silent_and_drawn_where_there_are_any() -> None:
    drawn = marks.intervals({}, low="rest_low", strokeWidth=2).to_dict()
    assert drawn["mark"] == {"type": "rule", "aria": False, "strokeWidth": 2}
    assert drawn["transform"] == [{"filter": "isValid(datum.rest_low)"}]


def test_names_of_rows_leave_room_for_marks_and_keep_their_order() -> None:
    rows = marks.row_axis("group", ["b", "a"]).to_dict()
    assert rows["sort"] == ["b", "a"]
    assert "containerSize" in rows["axis"]["labelLimit"]["expr"]


def test_a_legend_keeps_to_the_page() -> None:
    across = marks.colour_in_order("kind", ["a", "b", "c", "d"], "").to_dict()["legend"]
    down = marks.colour_by("run", ["1 · vanilla"], "Run").to_dict()["legend"]
    assert "< 500 ? 1 : 3" in across["columns"]["expr"]
    assert all("containerSize" in legend["labelLimit"]["expr"] for legend in (across, down))


def test_what_tests_draw_is_checked_against_the_schema() -> None:
    with pytest.raises(SchemaValidationError):
        marks.draw([marks.layer(alt.MarkDef("point", size="large"))], [], 100)


def test_rows_are_neither_copied_nor_converted_for_each_part_of_a_chart() -> None:
    row = {"name": "one", "low": 0.1, "high": 0.3}
    shared = {"y": marks.row_axis("name", ["one"])}
    bar, point = (marks.layer(alt.MarkDef(mark), **shared) for mark in ("bar", "point"))
    spec = marks.draw([bar, marks.intervals(shared), point], [row], 100)
    assert spec["data"]["values"][0] is row
    assert [layer["encoding"]["y"]["sort"] for layer in spec["layer"]] == 3 * [["one"]]
    assert all("data" not in layer for layer in spec["layer"])
