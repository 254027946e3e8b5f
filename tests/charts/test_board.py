import json

from charts.board import ShareInterval, draw_shares

FIRM = ShareInterval("Grammar", 0.9, 0.8, 0.95, 40)
ALONE = ShareInterval("Spelling", 1.0, None, None, 1)


def test_groups_keep_their_order_beside_the_bar() -> None:
    bar, intervals, dots = draw_shares([FIRM, ALONE], title="Valid", bar=0.8)["layer"]
    assert bar["data"]["values"] == [{"bar": 0.8}]
    assert dots["encoding"]["y"]["sort"] == ["Grammar", "Spelling"]
    assert intervals["transform"] == [{"filter": "isValid(datum.low)"}]


def test_the_axis_is_the_whole_range_and_a_tooltip_says_on_how_many_items() -> None:
    _, _, dots = draw_shares([FIRM], title="Valid", bar=0.5)["layer"]
    assert dots["encoding"]["x"]["scale"]["domain"] == [0, 1]
    assert dots["encoding"]["x"]["axis"]["title"] == "Valid"
    assert [one["field"] for one in dots["encoding"]["tooltip"]][-1] == "n"


def test_more_groups_make_a_higher_chart_that_names_no_other_host() -> None:
    few, many = (draw_shares([FIRM] * n, title="", bar=0.5) for n in (3, 6))
    assert many["height"] > few["height"]
    assert "//" not in json.dumps(many)
    assert "config" not in many
