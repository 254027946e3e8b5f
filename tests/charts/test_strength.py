"""Precision and recall against an outside rating as data."""

from dataclasses import replace

from charts.strength import RatedPoint, draw_strength

FOUND = [
    RatedPoint("Maths", "Precision", "gemma", 1000, 0.6, 0.5, 0.7, 140),
    RatedPoint("Maths", "Recall", "gemma", 1000, 0.5, None, None, 140),
    RatedPoint("Maths", "Precision", "gpt", 1250, 0.9, 0.8, 0.95, 140),
]


def test_ratings_go_right_and_figures_go_up_with_a_colour_and_a_shape_each() -> None:
    rules, points = draw_strength(FOUND, rating="Elo")["layer"]
    assert points["encoding"]["x"]["field"] == rules["encoding"]["x"]["field"] == "rating"
    assert points["encoding"]["x"]["axis"]["title"] == "Elo"
    assert points["encoding"]["y"]["field"] == "value"
    for channel in ("color", "shape"):
        assert points["encoding"][channel]["scale"]["domain"] == ["Precision", "Recall"]


def test_an_interval_is_drawn_where_there_is_one() -> None:
    rules, _ = draw_strength(FOUND, rating="Elo")["layer"]
    assert rules["transform"] == [{"filter": "isValid(datum.low)"}]
    assert (rules["encoding"]["y"]["field"], rules["encoding"]["y2"]["field"]) == ("low", "high")


def test_the_axis_of_ratings_reaches_beyond_the_lowest_and_the_highest() -> None:
    _, points = draw_strength(FOUND, rating="Elo")["layer"]
    low, high = points["encoding"]["x"]["scale"]["domain"]
    assert low < 1000 < 1250 < high
    _, points = draw_strength(FOUND[:1], rating="Elo")["layer"]
    assert points["encoding"]["x"]["scale"]["domain"] == [999, 1001]


def test_each_group_has_a_panel_of_its_own_points_on_the_same_axes() -> None:
    other = replace(FOUND[0], group="Facts", rating=1100, low=None, high=None)
    maths, facts = draw_strength([*FOUND, other], rating="Elo")["concat"]
    assert (maths["title"]["text"], facts["title"]["text"]) == ("Maths", "Facts")
    for panel, points in ((maths, 3), (facts, 1)):
        assert len(panel["data"]["values"]) == points
        for layer in panel["layer"]:
            assert layer["encoding"]["x"]["scale"]["domain"] == [985, 1265]
