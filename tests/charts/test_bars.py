"""Bars as data: from nought, with room for their numbers however narrow the page is."""

import re
from xml.etree import ElementTree

from charts import files
from charts.bars import Bar, draw_bars

FOUND = [Bar("Sums", 0.75, "75.0 %", 3), Bar("Essays", 0.25, "25.0 %", 1)]


def test_the_number_of_the_longest_bar_has_its_place_beside_it() -> None:
    root = ElementTree.fromstring(files.render(draw_bars(FOUND, title="Share"), "svg"))
    [longest] = [one.get("d", "") for one in root.iter() if "75.0 %" in one.get("aria-label", "")
                 and one.get("aria-roledescription") == "bar"]  # fmt: skip
    width = float(re.findall(r"h([\d.]+)", longest)[0])
    assert files.WIDTH - width > 50


def test_bars_keep_their_order_and_say_how_many_they_count() -> None:
    spec = draw_bars(FOUND, title="Tokens", counted="Calls")
    drawn, _ = spec["layer"]
    assert drawn["encoding"]["y"]["sort"] == ["Sums", "Essays"]
    assert drawn["encoding"]["tooltip"][-1] == {
        "field": "n", "title": "Calls", "type": "quantitative", "format": ",.3~f"
    }  # fmt: skip
