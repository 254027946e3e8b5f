"""Strips as data: a share at each step of each group."""

import json

from charts.strips import StepShare, draw_strips

STEPS = [
    StepShare("Factual", -2, 0.25, 1),
    StepShare("Factual", 0, 0.75, 3),
    StepShare("Reasoning", 1, 1.0, 2),
]


def test_every_step_is_drawn_with_its_share_and_n() -> None:
    spec = draw_strips(STEPS, steps=[-2, -1, 0, 1], title="Perturbed minus gold")
    assert spec["data"]["values"][0] == {"group": "Factual", "step": -2, "share": 0.25, "n": 1}
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["Factual", "Reasoning"]


def test_a_share_stands_in_numbers_too_so_that_no_shade_must_be_read() -> None:
    _, numbers = draw_strips(STEPS, steps=[-2, -1, 0, 1], title="Change")["layer"]
    assert numbers["encoding"]["text"]["field"] == "share"


def test_steps_that_no_score_made_have_their_place() -> None:
    shades, _ = draw_strips(STEPS, steps=[-2, -1, 0, 1], title="Change")["layer"]
    assert shades["encoding"]["x"]["scale"]["domain"] == [-2, -1, 0, 1]


def test_a_number_is_hidden_where_its_step_is_narrower() -> None:
    _, numbers = draw_strips(STEPS, steps=[-2, -1, 0, 1], title="Change")["layer"]
    assert numbers["encoding"]["opacity"]["condition"]["test"].startswith("width / 4 >= ")
    assert numbers["encoding"]["opacity"]["value"] == 0


def test_the_chart_names_no_other_host_and_no_colours_of_the_page() -> None:
    spec = draw_strips(STEPS, steps=[-2, -1, 0, 1], title="Change")
    assert "//" not in json.dumps(spec)
    assert "config" not in spec
