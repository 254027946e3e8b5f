"""Strips as data: a share at each step of each group."""

import json

from charts.strips import Step, strips

STEPS = [Step("Factual", -2, 0.25, 1), Step("Factual", 0, 0.75, 3), Step("Reasoning", 1, 1.0, 2)]


def test_every_step_is_drawn_with_its_share_and_n() -> None:
    spec = strips(STEPS, title="Perturbed minus gold")
    assert spec["data"]["values"][0] == {"group": "Factual", "step": -2, "share": 0.25, "n": 1}
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["Factual", "Reasoning"]


def test_a_share_stands_in_numbers_too_so_that_no_shade_must_be_read() -> None:
    _, numbers = strips(STEPS, title="Change")["layer"]
    assert numbers["encoding"]["text"]["field"] == "share"


def test_the_chart_names_no_other_host_and_no_colours_of_the_page() -> None:
    spec = strips(STEPS, title="Change")
    assert "//" not in json.dumps(spec)
    assert "config" not in spec
