"""Stacked bars as data: where each part begins and ends, and how parts are told apart."""

import json
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from charts import files, marks
from charts.stacked import BarPart, draw_stacked_bars
from tests.charts.test_marks import contrast, luminance

KINDS = ["Low", "Middle", "Top"]
PARTS = [
    BarPart("Factual", "Top", 1),
    BarPart("Factual", "Low", 3),
    BarPart("Reasoning", "Middle", 2),
]


def values(spec: dict) -> list[dict]:
    return spec["data"]["values"]


def test_parts_follow_each_other_in_the_order_of_the_kinds() -> None:
    found = values(draw_stacked_bars(PARTS, kinds=KINDS, title="Share"))
    factual = [(one["kind"], one["from"], one["to"]) for one in found if one["group"] == "Factual"]
    assert factual == [("Low", 0, 0.75), ("Top", 0.75, 1)]


def test_a_part_says_how_many_of_how_many_it_is() -> None:
    found = {
        one["kind"]: one for one in values(draw_stacked_bars(PARTS, kinds=KINDS, title="Share"))
    }
    assert (found["Top"]["n"], found["Top"]["of"], found["Top"]["share"]) == (1, 4, 0.25)


def test_a_count_is_written_to_its_last_item_on_the_bar_and_in_the_tooltip() -> None:
    parts = [
        BarPart("Many", "Low", 1884),
        BarPart("Many", "Top", 3),
        BarPart("Thirds", "Low", 4 / 3),
    ]
    root = ElementTree.fromstring(
        files.render(draw_stacked_bars(parts, kinds=KINDS, title="Share"), "svg")
    )
    texts = {one.text for one in root.iter() if one.get("aria-roledescription") == "text mark"}
    assert {"1,884", "1.333"} <= texts
    told = " ".join(one.get("aria-label", "") for one in root.iter())
    assert "n: 1,884; of: 1,887" in told


def test_a_group_without_items_has_no_bar() -> None:
    nothing = [BarPart("Nothing", kind, 0) for kind in KINDS]
    assert values(draw_stacked_bars(nothing, kinds=KINDS, title="Share")) == []


def test_groups_keep_their_order_and_the_chart_names_no_other_host() -> None:
    spec = draw_stacked_bars(PARTS, kinds=KINDS, title="Share")
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["Factual", "Reasoning"]
    assert "//" not in json.dumps(spec)


def test_a_number_is_hidden_where_its_part_is_narrower() -> None:
    _, numbers = draw_stacked_bars(PARTS, kinds=KINDS, title="Share")["layer"]
    assert "datum.share * width >= " in numbers["encoding"]["opacity"]["condition"]["test"]
    assert numbers["encoding"]["opacity"]["value"] == 0


@pytest.mark.parametrize("number", range(2, 6))
def test_kinds_grow_lighter_so_that_grey_tells_them_apart(number: int) -> None:
    kinds = [str(place) for place in range(number)]
    scale = marks.colour_in_order("kind", kinds, "").to_dict()["scale"]["range"]
    light = [luminance(colour) for colour in scale]
    assert all(after - before > 0.08 for before, after in pairwise(light))


@pytest.mark.parametrize(
    ("ground", "ink"), [*zip(marks.ORDERED_COLOURS, marks.TEXT_COLOURS, strict=True)]
)
def test_a_number_can_be_read_on_its_part(ground: str, ink: str) -> None:
    assert contrast(ground, ink) >= 4.1


@pytest.mark.parametrize("sheet", ["#ffffff", "#1c2024"])
def test_the_outline_of_a_part_stands_out_from_the_sheet(sheet: str) -> None:
    assert contrast(marks.OUTLINE, sheet) >= 3
