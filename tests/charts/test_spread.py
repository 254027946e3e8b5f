"""Pooled beside by group as data: three kinds of marks, each told by its shape as well."""

from charts.axes import Axis
from charts.spread import GROUP, MEAN, POOLED, SpreadMark, draw_spread

AXIS = Axis(-1, 1, ".1f", ".3f")
FOUND = [
    SpreadMark("1 · likert", GROUP, "sv", -0.5, None, None, 3),
    SpreadMark("1 · likert", GROUP, "en", -0.25, -0.5, 0, 30),
    SpreadMark("1 · likert", POOLED, "all items", 0.5, 0.25, 0.75, 33),
    SpreadMark("1 · likert", MEAN, "groups", -0.375, None, None, 2),
]


def of_kind(kind: str) -> dict[str, str]:
    return {"filter": f"datum.kind == '{kind}'"}


def test_groups_pooled_and_mean_are_drawn_apart() -> None:
    drawn = draw_spread(FOUND, title="ρ", axis=AXIS)
    assert [one["value"] for one in drawn["data"]["values"]] == [-0.5, -0.25, 0.5, -0.375]
    dots = [layer for layer in drawn["layer"] if layer["mark"]["type"] == "point"]
    assert [layer["transform"] for layer in dots] == [
        [of_kind(GROUP)], [of_kind(POOLED)], [of_kind(MEAN)],
    ]  # fmt: skip
    assert len({layer["mark"]["yOffset"] for layer in dots}) == 3


def test_groups_have_no_interval_in_the_chart_and_pooled_figures_do() -> None:
    layers = draw_spread(FOUND, title="ρ", axis=AXIS)["layer"]
    rules = [layer for layer in layers if layer["mark"]["type"] == "rule"]
    has_interval = {"filter": "isValid(datum.low)"}
    assert [layer["transform"] for layer in rules] == [
        [of_kind(POOLED), has_interval], [of_kind(MEAN), has_interval],
    ]  # fmt: skip


def test_the_axis_is_as_long_as_it_is_told() -> None:
    first = draw_spread(FOUND, title="ρ", axis=AXIS)["layer"][0]
    assert first["encoding"]["x"]["scale"]["domain"] == [-1, 1]
    assert first["encoding"]["shape"]["scale"]["domain"] == [GROUP, POOLED, MEAN]
