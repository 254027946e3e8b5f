"""Colours and shapes that can be told apart on both sheets."""

import pytest

from charts import marks

SHEETS = {"light": "#ffffff", "dark": "#1c2024"}


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sheet", SHEETS)
@pytest.mark.parametrize("colour", marks.COLOURS)
def test_a_mark_stands_out_from_the_sheet(colour: str, sheet: str) -> None:
    assert contrast(colour, SHEETS[sheet]) >= 3


def test_twenty_runs_differ_in_colour_or_shape() -> None:
    names = [str(number) for number in range(20)]
    colours = marks.colour("run", names, "Run").to_dict()["scale"]["range"]
    shapes = marks.shape("run", names, "Run").to_dict()["scale"]["range"]
    assert len(set(zip(colours, shapes, strict=True))) == 20
