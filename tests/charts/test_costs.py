"""J against cost as data."""

import re

import pytest

from charts import files
from charts.costs import CostPoint, draw_costs

FOUND = [
    CostPoint("1 · vanilla", 0.5, "0.50", 0.4, 0.3, 0.5),
    CostPoint("12 · rubric", 2, "2.00", 0.1, -0.1, 0.3),
    CostPoint("3 · axis", 0, "free", -0.2, None, None),
]


def test_cost_goes_right_and_j_goes_up_from_its_lowest_end() -> None:
    _, interval, marks, _ = draw_costs(FOUND, title="Cost of 1,000 items")["layer"]
    x, y = marks["encoding"]["x"], marks["encoding"]["y"]
    assert (x["field"], x["scale"]["domain"]) == ("cost", [0, 2.1])
    assert x["axis"]["title"] == "Cost of 1,000 items"
    assert (y["field"], y["scale"]["domain"]) == ("j", [-0.2, 1])
    assert interval["transform"] == [{"filter": "isValid(datum.low)"}]
    assert (interval["encoding"]["y"]["field"], interval["encoding"]["y2"]["field"]) == (
        "low", "high",
    )  # fmt: skip


def test_costs_of_other_magnitudes_have_a_logarithmic_axis_unless_one_is_free() -> None:
    def scale(*costs: float) -> str:
        found = [CostPoint(f"{one} · vanilla", one, "", 0.1, None, None) for one in costs]
        [*_, marks, _] = draw_costs(found, title="Cost")["layer"]
        return str(marks["encoding"]["x"]["scale"].get("type", "linear"))

    assert [scale(1, 20), scale(1, 21), scale(0, 1, 21), scale(3)] == [
        "linear", "log", "linear", "linear",
    ]  # fmt: skip


def test_a_logarithmic_axis_says_so_and_has_round_numbers_throughout() -> None:
    found = [CostPoint(f"{one} · vanilla", one, "", 0.1, None, None) for one in (0.12, 7.0)]
    [*_, marks, _] = draw_costs(found, title="Cost")["layer"]
    axis = marks["encoding"]["x"]["axis"]
    assert axis["title"] == "Cost (logarithmic scale)"
    assert axis["values"] == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5])


def test_each_mark_has_the_number_of_its_run() -> None:
    drawn = draw_costs(FOUND, title="Cost")
    assert drawn["layer"][-1]["encoding"]["text"]["field"] == "word"
    assert [row["word"] for row in drawn["data"]["values"]] == ["1", "12", "3"]


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (9.9, ["0", "2", "4", "6", "8", "10"]),
        (0.00002, ["0", "0.000005", "0.00001", "0.000015", "0.00002"]),
        (900_000, ["0", "200,000", "400,000", "600,000", "800,000"]),
    ],
)
def test_amounts_at_the_axis_have_no_exponent(highest: float, ticks: list[str]) -> None:
    found = [CostPoint("1", highest / 2, "", 0.1, None, None), CostPoint("2", highest, "", 0, 0, 0)]
    svg = files.render(draw_costs(found, title="Cost"), "svg").decode()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert texts[: texts.index("Cost")] == ticks
