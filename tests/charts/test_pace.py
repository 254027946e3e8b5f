import json
from datetime import date, timedelta
from typing import Any

from charts.pace import ChoiceCount, DailyTotal, LabelTime, draw_choices, draw_progress, draw_times

FIRST = date(2026, 3, 2)  # a Monday


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return list(spec["data"]["values"])


def layers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return list(spec["layer"])


def test_choices_stack_by_day_in_the_order_that_is_given() -> None:
    counts = [ChoiceCount(FIRST, "Invalid", 2), ChoiceCount(FIRST, "Valid", 5)]
    spec = draw_choices(counts, order=["Valid", "Invalid"])
    assert values(spec) == [
        {"day": "2026-03-02", "choice": "Invalid", "n": 2, "place": 1},
        {"day": "2026-03-02", "choice": "Valid", "n": 5, "place": 0},
    ]
    [bars] = layers(spec)
    assert bars["encoding"]["color"]["scale"]["domain"] == ["Valid", "Invalid"]
    assert bars["encoding"]["order"]["field"] == "place"


def test_many_days_become_weeks_by_their_monday() -> None:
    days = [FIRST + timedelta(days=n) for n in (0, 6, 7, 60)]
    spec = draw_choices([ChoiceCount(day, "Valid", 1) for day in days], order=["Valid"])
    assert [(value["day"], value["n"]) for value in values(spec)] == [
        ("2026-03-02", 2),
        ("2026-03-09", 1),
        ("2026-04-27", 1),
    ]


def test_an_answer_that_is_not_in_the_order_comes_on_top() -> None:
    spec = draw_choices([ChoiceCount(FIRST, "Old", 1)], order=["Valid"])
    assert values(spec)[0]["place"] == 1


def test_the_way_leads_from_what_is_done_to_all_places() -> None:
    later = [FIRST + timedelta(days=n) for n in (10, 5, 20)]
    spec = draw_progress(
        [DailyTotal(FIRST, 40)], places=100, ends=later[0], earliest=later[1], latest=later[2]
    )
    line, points, wedge, ahead, every = layers(spec)
    assert (line["mark"]["interpolate"], points["mark"]["type"]) == ("step-after", "point")
    # On the earliest day, 5 of 20 days on, the slow edge has come 15 of the 60 that are left.
    assert [value["low"] for value in wedge["data"]["values"]] == [40, 55, 100]
    assert [value["high"] for value in wedge["data"]["values"]] == [40, 100, 100]
    assert ahead["data"]["values"][-1] == {"day": "2026-03-12", "done": 100}
    assert every["data"]["values"] == [{"done": 100}]


def test_without_a_forecast_the_way_shows_what_was_done() -> None:
    marks = [
        layer["mark"]["type"] for layer in layers(draw_progress([DailyTotal(FIRST, 4)], places=10))
    ]
    assert marks == ["line", "point", "rule"]


def test_without_a_latest_day_there_is_no_wedge() -> None:
    spec = draw_progress(
        [DailyTotal(FIRST, 4)], places=10, ends=FIRST + timedelta(days=3), earliest=FIRST
    )
    assert "area" not in [layer["mark"]["type"] for layer in layers(spec)]


def test_times_show_quartiles_and_median_of_each_person_in_order() -> None:
    spec = draw_times([LabelTime("ada", 1, 2, 4, 10), LabelTime("ben", 2, 3, 9, 5)])
    quartiles, median = layers(spec)
    assert (quartiles["encoding"]["x"]["field"], quartiles["encoding"]["x2"]["field"]) == (
        "low",
        "high",
    )
    assert median["encoding"]["x"]["field"] == "median"
    assert median["encoding"]["y"]["sort"] == ["ada", "ben"]


def test_the_charts_name_no_other_host_and_no_look_of_their_own() -> None:
    for spec in (draw_choices([], order=[]), draw_progress([], places=0), draw_times([])):
        assert "//" not in json.dumps(spec)
        assert "config" not in spec
