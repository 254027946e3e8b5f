"""The plane of detection and false alarms as data."""

from dataclasses import replace

from charts.marks import OUTLINE
from charts.plane import SensitivityPoint, draw_panels, draw_plane

FOUND = [
    SensitivityPoint("1 · vanilla", "All", True, 0.4, 0.3, 0.5, 0.1, None, None),
    SensitivityPoint("2 · rubric", "All", True, 0.6, 0.5, 0.7, 0.2, 0.1, 0.4),
]


def test_a_run_has_a_colour_and_a_shape() -> None:
    *_, marks = draw_plane(FOUND)["layer"]
    assert marks["encoding"]["color"]["scale"]["domain"] == ["1 · vanilla", "2 · rubric"]
    assert marks["encoding"]["shape"]["scale"]["domain"] == ["1 · vanilla", "2 · rubric"]


def test_false_alarms_go_right_and_detection_goes_up() -> None:
    *_, marks = draw_plane(FOUND)["layer"]
    assert (marks["encoding"]["x"]["field"], marks["encoding"]["y"]["field"]) == (
        "false_alarm",
        "detection",
    )


def test_each_interval_is_drawn_only_where_it_is_defined() -> None:
    _, across, up, _ = draw_plane(FOUND)["layer"]
    assert across["transform"] == [{"filter": "isValid(datum.false_alarm_low)"}]
    assert up["transform"] == [{"filter": "isValid(datum.detection_low)"}]


def test_the_line_of_guessing_goes_through_both_ends() -> None:
    line, *_ = draw_plane(FOUND)["layer"]
    assert line["data"]["values"] == [{"at": 0}, {"at": 1}]


def test_a_mark_of_all_items_is_larger_than_that_of_a_group() -> None:
    *_, marks = draw_plane(FOUND)["layer"]
    size = marks["encoding"]["size"]
    assert size["condition"]["test"] == "datum.whole"
    assert size["condition"]["value"] > size["value"]


def test_past_eight_runs_those_of_all_items_have_their_number() -> None:
    many = [replace(FOUND[0], run=f"{number} · vanilla") for number in range(9)]
    many.append(replace(many[0], group="Factual", whole=False))
    assert len(draw_plane(many[:8])["layer"]) == 4
    *_, words = draw_plane(many)["layer"]
    assert words["encoding"]["text"]["field"] == "word"
    assert [row["word"] for row in words["data"]["values"]] == [str(n) for n in range(9)]
    # They are all at one place, and no label is.
    at = {(row["right"], row["down"]) for row in words["data"]["values"]}
    assert len(at) == 9


def test_each_run_has_a_small_plane_under_its_name() -> None:
    part = replace(FOUND[1], group="Factual", whole=False)
    named = replace(FOUND[1], run="2 · rubric · gpt · part of the items")
    drawn = draw_panels([FOUND[0], named, replace(part, run=named.run)])
    titles = [panel["title"]["text"] for panel in drawn["concat"]]
    assert titles == [["1 · vanilla"], ["2 · rubric", "gpt · part of the items"]]
    assert [len(panel["data"]["values"]) for panel in drawn["concat"]] == [1, 2]
    for panel in drawn["concat"]:
        assert not any("data" in layer for layer in panel["layer"][1:])


def test_a_group_has_the_same_colour_in_every_plane_and_no_interval() -> None:
    parts = [
        replace(one, group=group, whole=False) for one in FOUND for group in ("Factual", "Spelling")
    ]
    for panel in draw_panels([*FOUND, *parts[1:]])["concat"]:
        _, across, up, _, groups = panel["layer"]
        for field in ("color", "shape"):
            assert groups["encoding"][field]["scale"]["domain"] == ["Spelling", "Factual"]
        for interval in (across, up):
            assert {"filter": "datum.whole"} in interval["transform"]
            assert interval["mark"]["color"] == OUTLINE


def test_a_panel_is_the_same_alone_and_beside_others() -> None:
    other = [replace(one, run=f"9 · {one.run}") for one in FOUND]
    both = draw_panels([*FOUND, *other])["concat"]
    runs = len({one.run for one in FOUND})
    assert both[:runs] == draw_panels(FOUND)["concat"]
    assert both[runs:] == draw_panels(other)["concat"]
