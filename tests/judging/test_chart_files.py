"""The charts of result pages as files, by page and by command."""

import json
import re
from itertools import cycle
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.http import QueryDict
from django.test import Client

from annotation.models import Project
from charts import files
from judging.models import Outcome, StoredFigure
from judging.results import cache
from judging.results.views import charts
from tests.judging.builders_decided import make_endpoint, make_replied, scores, verdicts
from tests.judging.builders_judging import make_items

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("charts_fit_their_schema")]

CHART = "/projects/fbi/results/overview/chart."


@pytest.fixture
def judged(project: Project) -> Project:
    """Two runs over four error items, of which the second misses all."""
    items = make_items(project, 4)
    for said in ([scores(9, 5), scores(9, 9)] * 2, [scores(9, 9)] * 4):
        make_replied(project, "vanilla", zip(items, said, strict=True))
    return project


def test_a_page_s_chart_is_a_file_in_every_form(judged: Project, browser: Client) -> None:
    for form, begins in {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "json": b"{"}.items():
        sent = browser.get(CHART + form)
        assert sent.status_code == 200
        assert sent.content.startswith(begins)
        assert sent.headers["Content-Type"] == files.TYPES[form]
        assert f"fbi-overview-abilities.{form}" in sent.headers["Content-Disposition"]


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_a_file_is_rendered_once_until_the_chart_changes(
    judged: Project, browser: Client, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    rendered = []
    render = files.render

    def counted(spec: dict[str, Any], form: str) -> bytes:
        rendered.append(form)
        return render(spec, form)

    monkeypatch.setattr(files, "render", counted)
    first = browser.get(CHART + form).content
    assert browser.get(CHART + form).content == first
    # Another address of the same chart.
    assert browser.get(f"{CHART}{form}?run=1&run=2").content == first
    assert rendered == [form]
    Outcome.objects.filter(run__number=2).update(result="detected")
    assert browser.get(CHART + form).content != first
    assert rendered == [form, form]


def test_another_form_is_another_file(judged: Project, browser: Client) -> None:
    assert browser.get(CHART + "svg").content.startswith(b"<svg")
    assert browser.get(CHART + "pdf").content.startswith(b"%PDF")
    assert StoredFigure.objects.filter(table=cache.CHART_FILE).count() == 2


def test_the_file_shows_what_the_address_of_the_page_shows(
    judged: Project, browser: Client
) -> None:
    texts = [
        one.text
        for one in ElementTree.fromstring(
            browser.get(CHART + "svg?run=2&measure=undetected").content
        ).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert "Undetected rate" in texts
    assert any("2 · vanilla" in str(text) for text in texts)
    assert not any("1 · vanilla" in str(text) for text in texts)


def test_the_page_offers_its_chart_as_files(judged: Project, browser: Client) -> None:
    text = browser.get("/projects/fbi/results/overview/?run=2").content.decode()
    assert "/projects/fbi/results/overview/chart.pdf?run=2" in text


@pytest.mark.parametrize(
    "address",
    [
        "overview/chart.gif",
        "nothing/chart.svg",
        "overview/chart.svg?run=9",
        "overview/chart.svg?view=no",
    ],
)
def test_what_is_not_there_is_not_found(judged: Project, browser: Client, address: str) -> None:
    assert browser.get(f"/projects/fbi/results/{address}").status_code == 404


def test_a_chart_of_nothing_says_so(project: Project, browser: Client) -> None:
    sent = browser.get(CHART + "svg")
    assert (sent.status_code, sent.content) == (
        409,
        b"There is nothing to draw for the chosen runs yet.",
    )


def test_the_command_refuses_what_the_view_does_not_know(judged: Project, tmp_path: Path) -> None:
    output = tmp_path / "chart.svg"
    options = ["--project", "fbi", "-o", str(output), "--with"]
    with pytest.raises(CommandError, match=r"has no parameter mesure\. Use measure, wrong, by,"):
        call_command("chart", "overview", *options, "mesure=undetected")
    assert not output.exists()
    call_command("chart", "overview", *options, "measure=undetected", "ability=factual")
    assert output.exists()


def test_a_chart_that_cannot_be_made_is_no_fault_of_the_page(
    judged: Project, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.render, "__defaults__", (0.001,))
    sent = browser.get(CHART + "svg")
    assert (sent.status_code, sent.headers["Content-Type"]) == (503, "text/plain; charset=utf-8")
    assert "could not be drawn within" in sent.content.decode()
    assert charts._CONVERSIONS.acquire(blocking=False)
    charts._CONVERSIONS.release()


def test_who_comes_while_all_places_are_taken_is_told_to_come_again(
    judged: Project, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "WAIT_SECONDS", 0)
    assert charts._CONVERSIONS.acquire()
    assert charts._CONVERSIONS.acquire()
    try:
        sent = browser.get(CHART + "svg")
    finally:
        charts._CONVERSIONS.release()
        charts._CONVERSIONS.release()
    assert (sent.status_code, sent.headers["Retry-After"]) == (503, "2")


def test_the_command_writes_the_same_file(judged: Project, browser: Client, tmp_path: Path) -> None:
    path = tmp_path / "chart.svg"
    call_command(
        "chart", "overview", project="fbi", output=path, run=[2], also=["measure=undetected"]
    )
    sent = browser.get(CHART + "svg?run=2&measure=undetected")
    assert path.read_bytes() == sent.content
    call_command("chart", "overview", project="fbi", output=tmp_path / "x", format="json")
    assert json.loads((tmp_path / "x").read_text())["config"] == files.PRINT_STYLE


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"output": Path("chart.gif")}, "Add --format"),
        ({"output": Path("no/such/place.svg")}, "cannot be written"),
        ({"output": Path("chart.svg"), "run": [9]}, "Some of these runs are not in the project"),
        ({"output": Path("chart.svg"), "view": "no"}, "no such view"),
    ],
)
def test_a_command_that_cannot_draw_says_why(
    judged: Project, options: dict[str, object], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("chart", "overview", project="fbi", **options)


CHARTS = ("compare/pairs", "verdicts/verdicts", "verdicts/order", "explanations/credit-of-words",
          "missing/causes", "by-category/scores", "blind-spots/slices")  # fmt: skip


def test_every_chart_tells_two_evaluators_of_one_strategy_apart(project: Project) -> None:
    items = make_items(project, 20)
    for number, name in enumerate(("gpt", "claude")):
        endpoint = make_endpoint(name)
        said = cycle([scores(9, 9), scores(9, 5)][number:])
        base = make_replied(project, "vanilla", zip(items, said, strict=False), endpoint=endpoint)
        pairs = cycle([verdicts("G"), verdicts("first_twice")])
        pairs = zip(items, pairs, strict=False)
        make_replied(project, "pairwise", pairs, endpoint=endpoint)
        flags = ((item, ('{"flag": true}',)) for item in items)
        made = {"sources": [base], "base": base, "endpoint": endpoint}
        make_replied(project, "explanation-check", flags, **made)
    for place in CHARTS:
        page, view = place.split("/")
        drawing = charts.draw_query(project, page, QueryDict(f"view={view}"))
        assert drawing is not None, place
        drawn = json.dumps(drawing.spec, ensure_ascii=False)
        slug, numbers = ("pairwise", (2, 5)) if page == "verdicts" else ("vanilla", (1, 4))
        for number, name in zip(numbers, ("gpt", "claude"), strict=True):
            assert re.search(f"{number} · {slug}( · |: ){name}", drawn), place
