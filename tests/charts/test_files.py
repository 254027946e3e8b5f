"""Charts as files: what is written opens, holds the marks, and comes out the same again."""

import json
import re
import struct
from typing import Any
from xml.etree import ElementTree

import altair
import pytest

from charts import files
from charts.detection import RatePoint, draw_dot_plot

SVG = "{http://www.w3.org/2000/svg}"


def spec() -> dict[str, Any]:
    """Two runs in two groups, of which one has no interval: 4 dots and 3 rules."""
    runs, groups = ("1 · vanilla · judge", "2 · pairwise · Æon <b>"), ("Factual", "Reasoning")
    points = [
        RatePoint(run, group, 0.25 * place + 0.5 * row, 0.1, 0.9 if place + row else None, 20)
        for row, run in enumerate(runs)
        for place, group in enumerate(groups)
    ]
    points[0] = RatePoint(runs[0], groups[0], 0.0, None, None, 3)
    return draw_dot_plot(points, title="Detection rate")


def test_an_svg_is_xml_and_holds_the_marks_and_the_names() -> None:
    root = ElementTree.fromstring(files.render(spec(), "svg"))
    marks = [one.get("aria-roledescription") for one in root.iter()]
    assert root.tag == f"{SVG}svg"
    assert marks.count("point") == 4
    # A rule between low and high where there is an interval.
    [rules] = [one for one in root.iter(f"{SVG}g") if "layer_0_marks" in one.get("class", "")]
    assert len(rules) == 3
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"Detection rate", "Factual", "Reasoning", "2 · pairwise · Æon <b>"} <= {*texts}


def test_a_name_on_two_lines_stands_in_the_middle_of_its_row() -> None:
    points = [RatePoint("1", name, 0.5, None, None, 9) for name in ("Factual: run 1", "Reasoning")]
    root = ElementTree.fromstring(files.render(draw_dot_plot(points, title="Rate"), "svg"))
    [two, one] = [down(dot) for dot in root.iter() if dot.get("aria-roledescription") == "point"]
    texts = {"".join(text.itertext()): down(text) for text in root.iter(f"{SVG}text")}
    # Capitals are some 8 high, and the second line is 13 below the first.
    assert texts["Factualrun 1"] + (13 - 8) / 2 == pytest.approx(two, abs=1.5)
    assert texts["Reasoning"] - 8 / 2 == pytest.approx(one, abs=1.5)


def down(element: ElementTree.Element) -> float:
    """How far down its group an element is."""
    return float(element.attrib["transform"].rstrip(")").rpartition(",")[2])


@pytest.mark.parametrize("name", ["a\x01b", "a\u2028b", "a\uffffb"])
def test_a_name_with_a_character_that_no_svg_may_have_is_drawn_without_it(name: str) -> None:
    point = RatePoint(name, "group", 0.5, 0.4, 0.6, 10, False)
    chart = files.render(draw_dot_plot([point], title="Rate", series="Run"), "svg")
    assert "a\ufffdb" in "".join(ElementTree.fromstring(chart).itertext())


def test_a_pdf_has_one_page_and_its_cross_references_point_at_objects() -> None:
    pdf = files.render(spec(), "pdf")
    assert pdf.startswith(b"%PDF-1.")
    assert pdf.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
    start = int(re.findall(rb"startxref\s+([0-9]+)", pdf)[-1])
    places = re.findall(rb"([0-9]{10}) 00000 n", pdf[start:])
    assert places
    assert all(re.match(rb"[0-9]+ 0 obj", pdf[int(place) :]) for place in places)


def test_a_png_is_three_dots_a_point_wide() -> None:
    png = files.render(spec(), "png")
    svg = ElementTree.fromstring(files.render(spec(), "svg"))
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert width == pytest.approx(3 * float(svg.attrib["width"]), abs=3)
    assert height == pytest.approx(3 * float(svg.attrib["height"]), abs=3)


@pytest.mark.parametrize("form", files.TYPES)
def test_the_same_chart_is_the_same_bytes(form: str) -> None:
    assert files.render(spec(), form) == files.render(spec(), form)


def test_the_specification_is_that_of_the_page_with_a_width_and_colours_of_paper() -> None:
    told = json.loads(files.render(spec(), "json"))
    assert told.pop("$schema") == files.SCHEMA
    assert told.pop("config")["background"] == "white"
    assert told == spec() | {"width": files.WIDTH}


def test_the_schema_is_that_of_the_library_that_makes_the_charts() -> None:
    major = re.search(r"/v[0-9]+", altair.SCHEMA_URL)
    assert major
    assert major[0] in files.SCHEMA
    assert f"/v{files.VEGA_LITE.split('.')[0]}" == major[0]


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/rows.json", "file:///etc/hostname"])
def test_nothing_is_fetched(address: str) -> None:
    outside = {"data": {"url": address}, "mark": "point"}
    with pytest.raises(files.ConversionFailed, match="never loaded"):
        files.render(outside, "svg")


def test_a_row_may_speak_of_addresses() -> None:
    rows = [{"url": "http://127.0.0.1:9/"}]
    chart = {"data": {"values": rows}, "mark": "point", "encoding": {"y": {"field": "url"}}}
    assert b"<svg" in files.render(chart, "svg")


def test_a_chart_that_cannot_be_drawn_says_so() -> None:
    with pytest.raises(files.ConversionFailed, match="could not be drawn"):
        files.render({"data": {"values": []}, "mark": "no such mark"}, "svg")


def test_a_chart_that_takes_too_long_is_ended() -> None:
    with pytest.raises(files.ConversionFailed, match=r"could not be drawn within 0\.001 s"):
        files.render(spec(), "svg", seconds=0.001)


def test_there_is_no_fourth_form() -> None:
    with pytest.raises(ValueError, match="svg, pdf, png, json"):
        files.render(spec(), "gif")


def test_several_charts_of_one_process_are_as_each_alone() -> None:
    """Some seconds: four processes start, each of which loads the drawing library."""
    other = spec() | {"mark": "point"}
    assert files.render_all([spec(), other, spec()], "svg") == [
        files.render(each, "svg") for each in (spec(), other, spec())
    ]
    assert files.render_all([], "svg") == []


def test_one_chart_of_several_that_cannot_be_drawn_says_so() -> None:
    bad = {"data": {"values": []}, "mark": "no such mark"}
    with pytest.raises(files.ConversionFailed, match="could not be drawn"):
        files.render_all([spec(), bad], "svg")
