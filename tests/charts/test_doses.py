"""Dose and response as data: a line a run over the number of errors."""

from charts.axes import RATES, Axis
from charts.doses import DosePoint, draw_lines

FOUND = [
    DosePoint("1 · vanilla", 8, 0.9, 0.8, 1.0, 20),
    DosePoint("1 · vanilla", 1, 0.3, 0.2, 0.4, 30),
    DosePoint("2 · rubric", 2, 0.5, None, None, 3),
]


def test_doses_stand_in_their_order_and_at_equal_steps() -> None:
    line, *_ = draw_lines(FOUND, title="Detection", axis=RATES)["layer"]
    x = line["encoding"]["x"]
    assert (x["field"], x["type"], x["sort"]) == ("dose", "ordinal", [1, 2, 8])


def test_a_run_has_a_line_marks_of_its_own_and_a_place_beside_the_others() -> None:
    line, _, dots = draw_lines(FOUND, title="Detection", axis=RATES)["layer"]
    runs = ["1 · vanilla", "2 · rubric"]
    assert line["encoding"]["color"]["scale"]["domain"] == runs
    assert dots["encoding"]["shape"]["scale"]["domain"] == runs
    assert line["encoding"]["xOffset"] == dots["encoding"]["xOffset"]
    assert line["encoding"]["xOffset"]["field"] == "run"


def test_an_interval_is_drawn_only_where_it_is_defined() -> None:
    _, intervals, _ = draw_lines(FOUND, title="Detection", axis=RATES)["layer"]
    assert intervals["transform"] == [{"filter": "isValid(datum.low)"}]
    assert (intervals["encoding"]["y"]["field"], intervals["encoding"]["y2"]["field"]) == (
        "low",
        "high",
    )


def test_the_axis_says_what_is_drawn_and_how_far_it_goes() -> None:
    spec = draw_lines(FOUND, title="Penalty", axis=Axis(-0.1, 0.5), series="Items")
    for layer in spec["layer"]:
        assert layer["encoding"]["y"]["scale"]["domain"] == [-0.1, 0.5]
        assert layer["encoding"]["y"]["axis"]["title"] == "Penalty"
    assert spec["layer"][-1]["encoding"]["color"]["title"] == "Items"


def test_marks_alone_speak_so_that_no_empty_layer_lacks_a_name() -> None:
    *silent, dots = draw_lines(FOUND, title="Detection", axis=RATES)["layer"]
    assert [layer["mark"]["aria"] for layer in silent] == [False, False]
    assert "aria" not in dots["mark"]
