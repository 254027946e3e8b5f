"""The chart as data: what it draws, in which order, and what it does not name."""

import json

from charts.axes import Axis
from charts.detection import RatePoint, draw_dot_plot

FIRST = RatePoint("1 · vanilla", "Factual", 0.5, 0.4, 0.6, 10)
SECOND = RatePoint("2 · pairwise", "Factual", 0.25, None, None, 4)
LATER = RatePoint("1 · vanilla", "Score-invariant", 0.1, 0.0, 0.2, 20)


def values(spec: dict) -> list[dict]:
    return spec["data"]["values"]


def layers(spec: dict) -> tuple[dict, dict]:
    intervals, dots = spec["layer"]
    return intervals, dots


def test_every_point_is_drawn_with_its_figures() -> None:
    assert values(draw_dot_plot([FIRST, SECOND], title="Detection rate")) == [
        {
            "run": "1 · vanilla",
            "group": "Factual",
            "rate": 0.5,
            "low": 0.4,
            "high": 0.6,
            "n": 10,
            "faint": False,
        },
        {
            "run": "2 · pairwise",
            "group": "Factual",
            "rate": 0.25,
            "low": None,
            "high": None,
            "n": 4,
            "faint": False,
        },
    ]


def test_groups_and_runs_keep_the_order_of_the_points() -> None:
    _, dots = layers(draw_dot_plot([FIRST, SECOND, LATER], title="Detection rate"))
    assert dots["encoding"]["y"]["sort"] == ["Factual", "Score-invariant"]
    assert dots["encoding"]["color"]["scale"]["domain"] == ["1 · vanilla", "2 · pairwise"]


def test_an_undefined_interval_draws_no_rule() -> None:
    intervals, dots = layers(draw_dot_plot([SECOND], title="Detection rate"))
    assert intervals["transform"] == [{"filter": "isValid(datum.low)"}]
    assert "transform" not in dots


def test_without_an_interval_there_is_no_picture_without_a_name() -> None:
    intervals, dots = layers(draw_dot_plot([SECOND], title="Detection rate"))
    assert intervals["mark"]["aria"] is False
    assert "aria" not in dots["mark"]


def test_the_axis_is_the_whole_range_in_percent() -> None:
    _, dots = layers(draw_dot_plot([FIRST], title="Detection rate"))
    x = dots["encoding"]["x"]
    assert x["scale"]["domain"] == [0, 1]
    assert x["axis"]["format"] == "%"
    assert x["axis"]["title"] == "Detection rate"


def test_what_is_no_rate_has_an_axis_of_its_own() -> None:
    spec = draw_dot_plot([FIRST], title="Bias", axis=Axis(-2, 2, ".1f", ".3f"))
    intervals, dots = layers(spec)
    assert [one["encoding"]["x"]["scale"]["domain"] for one in (intervals, dots)] == [[-2, 2]] * 2
    assert dots["encoding"]["x"]["axis"]["format"] == ".1f"
    assert dots["encoding"]["tooltip"][2]["format"] == ".3f"


def test_a_tooltip_says_on_how_many_items_a_rate_rests() -> None:
    _, dots = layers(draw_dot_plot([FIRST], title="Detection rate"))
    fields = [entry["field"] for entry in dots["encoding"]["tooltip"]]
    assert fields == ["run", "group", "rate", "low", "high", "n"]


def test_the_chart_names_no_other_host_and_no_colours_of_the_page() -> None:
    spec = draw_dot_plot([FIRST], title="Detection rate")
    assert "//" not in json.dumps(spec)
    assert "config" not in spec


def test_more_runs_make_a_higher_chart() -> None:
    many = [RatePoint(f"{n}", "Factual", 0.5, 0.4, 0.6, 10) for n in range(6)]
    assert draw_dot_plot(many, title="")["height"] > draw_dot_plot(many[:3], title="")["height"]


def test_no_points_make_an_empty_chart() -> None:
    spec = draw_dot_plot([], title="Detection rate")
    assert spec["layer"]
    assert json.dumps(spec)


def test_figures_that_are_not_ours_are_faint_and_dashed() -> None:
    faint = RatePoint("Table 3", "Factual", 0.5, 0.4, 0.6, 528, faint=True)
    intervals, dots = layers(draw_dot_plot([FIRST, faint], title="Detection rate"))
    assert [value["faint"] for value in values(draw_dot_plot([FIRST, faint], title=""))] == [
        False,
        True,
    ]
    assert dots["encoding"]["opacity"]["condition"]["value"] < 1
    assert intervals["encoding"]["strokeDash"]["condition"]["value"] == [3, 3]


def test_past_eight_runs_each_mark_has_the_first_word_of_its_run() -> None:
    many = [RatePoint(f"{n} · vanilla", "Factual", n / 20, None, None, 10) for n in range(9)]
    assert len(draw_dot_plot(many[:8], title="")["layer"]) == 2
    *_, words = draw_dot_plot(many, title="")["layer"]
    assert words["encoding"]["text"]["field"] == "word"
    # What reaches near the end of the axis has it on the other side.
    assert words["mark"]["align"]["expr"] == "datum.reach > 0.9 ? 'right' : 'left'"


def test_a_single_series_without_a_name_has_no_legend() -> None:
    named, nameless = (
        RatePoint(run, "Factual", 0.5, None, None, 10) for run in ("1 · vanilla", "")
    )
    assert layers(draw_dot_plot([named], title=""))[1]["encoding"]["color"]["legend"]
    assert layers(draw_dot_plot([nameless], title=""))[1]["encoding"]["color"]["legend"] is None


def test_a_limit_is_a_line_across_the_row_of_its_group() -> None:
    spec = draw_dot_plot(
        [FIRST, LATER], title="rho", limits={"Factual": 0.82}, limit_title="A perfect evaluator"
    )
    *_, line = spec["layer"]
    assert line["mark"]["type"] == "tick"
    assert line["data"]["values"] == [{"group": "Factual", "limit": 0.82}]
    assert line["encoding"]["y"]["sort"] == ["Factual", "Score-invariant"]
    assert line["encoding"]["tooltip"][1]["title"] == "A perfect evaluator"
