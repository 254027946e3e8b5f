"""The results page: its numbers, what they lead to, and that they are the same everywhere."""

import csv
import io
import json
import re

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Project, Resolution
from judging.models import Run
from tests.builders import make_resolution, make_revision
from tests.judging.builders_judging import make_items, make_judged, make_run

pytestmark = pytest.mark.django_db

INDEX = "/projects/fbi/results/"
PAGE = f"{INDEX}by-category/"
WITH_INTERVALS = "?intervals=yes"


def shown(browser: Client, query: str = "", page: str = PAGE) -> str:
    answer = browser.get(page + query)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def items_of(browser: Client, query: str) -> list[str]:
    """The items in the list of outcomes of run 1."""
    outcomes = shown(browser, query, page="/projects/fbi/runs/1/")
    return re.findall(r'<a href="[^"]*/items/(item-\d)/[?"]', outcomes)


def three_of_four(project: Project) -> Run:
    """Four number errors: three detected, one not, and a fifth without a usable reply."""
    items = make_items(project, 5)
    said = ["detected", "detected", "detected", "undetected", "missing"]
    return make_judged(project, zip(items, said, strict=True))


def false_alarm(project: Project) -> Run:
    """Four score-invariant items, of which one is detected."""
    items = make_items(
        project, 4, "score-invariant", category="score-invariant", ability="score-invariant"
    )
    said = ["detected", "undetected", "undetected", "undetected"]
    return make_judged(project, zip(items, said, strict=True))


def rows(page: str) -> dict[str, str]:
    """The table's rows as plain text, by their first cell."""
    body = page[page.index("<tbody") : page.index("</table>")]
    found = {}
    for row in body.split("<tr")[1:]:
        cells = re.split(r"</t[hd]>", row.partition(">")[2])
        plain = [
            " ".join(re.sub(r"<[^>]*>", " ", cell).split()).replace(" ,", ",") for cell in cells
        ]
        found[plain[0]] = " | ".join(cell for cell in plain[1:] if cell)
    return found


def test_no_run_yet_says_what_to_do(browser: Client, project: Project) -> None:
    assert "Start a run" in shown(browser)


def test_a_run_without_figures_says_so(browser: Client, project: Project) -> None:
    make_items(project, 2)
    make_run(project)
    assert "No figures here yet" in shown(browser)


def test_detection_is_the_share_that_was_noticed(browser: Client, project: Project) -> None:
    three_of_four(project)
    assert rows(shown(browser))["Number errors"] == "75.0 % n 4, 1 missing"


def test_intervals_are_shown_when_asked_for(browser: Client, project: Project) -> None:
    three_of_four(project)
    # Wilson for 3 of 4: 30.1 % to 95.4 %
    found = rows(shown(browser, WITH_INTERVALS))
    assert found["Number errors"] == "75.0 % 30.1 % to 95.4 % n 4, 1 missing"


def test_the_switch_shows_what_was_not_noticed(browser: Client, project: Project) -> None:
    three_of_four(project)
    found = rows(shown(browser, f"{WITH_INTERVALS}&measure=undetected"))
    assert found["Number errors"] == "25.0 % 4.6 % to 69.9 % n 4, 1 missing"
    assert found["Factual"] == "25.0 % 4.6 % to 69.9 % n 4, 1 missing"


def test_score_invariant_is_read_the_other_way(browser: Client, project: Project) -> None:
    false_alarm(project)
    by_name = rows(shown(browser))
    assert by_name["Score-invariant reversed: false alarms, low is good"].startswith("25.0")
    by_name = rows(shown(browser, "?measure=undetected"))
    assert by_name["Score-invariant reversed: no false alarm, high is good"].startswith("75.0")


def test_score_invariant_repeats_are_read_the_other_way_too(
    browser: Client, project: Project
) -> None:
    original, *_ = make_items(project, 1, "score-invariant")
    repeat = make_items(project, 1, "score-invariant", duplicate_of=original, category="formatting")
    judged = [(original, "undetected"), (repeat[0], "detected")]
    make_judged(project, judged, with_duplicates=True)
    page = shown(browser)
    assert rows(page)["Formatting score-invariant: false alarms, low is good"].startswith("100.0 %")
    assert page.count('data-heat="4"') == 1  # As bad as it gets, not a perfect detection.


def test_false_alarms_are_told_apart_by_the_ability_of_the_answer(
    browser: Client, project: Project
) -> None:
    false_alarm(project)
    page = shown(browser)
    assert rows(page)["made from Factual"].startswith("25.0 %")
    [link] = re.findall(r'href="([^"]*source_ability=factual[^"]*result=parsed[^"]*)"', page)
    outcomes = shown(browser, page=link.replace("&amp;", "&").removesuffix("#outcomes"))
    assert len(re.findall(r'<a href="[^"]*/items/item-', outcomes)) == 4


def test_items_meant_to_be_score_invariant_but_labelled_as_errors_have_a_row_of_their_own(
    browser: Client, project: Project
) -> None:
    meant = {"category": "score-invariant", "ability": "score-invariant"}
    items = make_items(project, 3, "score-invariant", **meant)
    items += make_items(project, 2, **meant)
    make_judged(project, zip(items, ["undetected"] * 3 + ["detected"] * 2, strict=True))
    page = shown(browser, "?by=ability", page="/projects/fbi/results/missing/")
    found = {name: row for name, row in rows(page).items() if name.startswith("Score-invariant")}
    assert "n 3 no false alarm" in found["Score-invariant"]
    assert "false alarm" not in found["Score-invariant, labelled as errors"]
    listed = [
        items_of(browser, link.partition("runs/1/")[2].replace("&amp;", "&").partition("#")[0])
        for link in re.findall(r'href="([^"]*result=parsed[^"]*)"', page)
    ]
    assert sorted(listed) == [["item-1", "item-2", "item-3"], ["item-4", "item-5"]]
    matrix = shown(browser, page="/projects/fbi/results/by-category/")
    for link in re.findall(r'href="([^"]*source_ability=factual[^"]*result=parsed[^"]*)"', matrix):
        query = link.partition("runs/1/")[2].replace("&amp;", "&").partition("#")[0]
        assert items_of(browser, query) in listed


def test_a_few_false_alarms_are_not_shaded_and_many_missed_errors_are(
    browser: Client, project: Project
) -> None:
    false_alarm(project)
    assert 'data-heat="1"' in shown(browser)
    items = make_items(project, 2)
    make_judged(project, [(item, "undetected") for item in items])
    assert 'data-heat="4"' in shown(browser, "?run=2")


def test_an_undefined_rate_is_a_dash_with_its_reason(browser: Client, project: Project) -> None:
    [item] = make_items(project, 1)
    make_judged(project, [(item, "missing")])
    assert rows(shown(browser))["Number errors"] == "— nothing parsed n 0, 1 missing"


def test_an_undefined_interval_says_why(browser: Client, project: Project) -> None:
    items = make_items(project, 2, cluster="same")
    make_judged(project, [(item, "detected") for item in items])
    assert rows(shown(browser, WITH_INTERVALS))["Number errors"] == (
        "100.0 % no interval: one cluster n 2"
    )


def test_a_cell_leads_to_exactly_its_items(browser: Client, project: Project) -> None:
    three_of_four(project)
    page = shown(browser)
    [link] = re.findall(r'href="([^"]*category=number-errors&amp;result=parsed[^"]*)"', page)
    outcomes = shown(browser, page=link.replace("&amp;", "&").removesuffix("#outcomes"))
    assert re.findall(r'<a href="[^"]*/items/(item-\d)/[?"]', outcomes) == [
        "item-1", "item-2", "item-3", "item-4",
    ]  # fmt: skip


def test_runs_are_chosen_by_number(browser: Client, project: Project) -> None:
    three_of_four(project)
    false_alarm(project)
    assert "Factual" not in rows(shown(browser, "?run=2"))
    assert rows(shown(browser, "?run=1&run=2"))["Factual"].endswith("| — no items")


@pytest.mark.parametrize("query", ["?run=7", "?run=x", "?run=1&run=7"])
def test_a_run_that_is_not_there_is_not_found(
    browser: Client, project: Project, query: str
) -> None:
    three_of_four(project)
    assert browser.get(PAGE + query).status_code == 404


def test_what_is_left_out_is_said_in_words(browser: Client, project: Project) -> None:
    three_of_four(project)
    assert "No outcome of these runs is left out of all figures." in shown(browser)
    first = project.items.get(key="item-1")
    make_revision(first, {"prompt": "?", "gold": "a", "perturbed": "b"})
    Resolution.objects.filter(item=first).update(current=False)
    make_resolution(first)
    page = shown(browser)
    assert "1 outcome</a> left out, because the item's texts or final label changed" in page
    assert rows(page)["Number errors"].endswith("n 3, 1 missing")
    assert items_of(browser, "?counted=no") == ["item-1"]
    assert items_of(browser, "?counted=yes&result=parsed") == ["item-2", "item-3", "item-4"]


def test_page_api_file_and_command_say_the_same(
    browser: Client, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    three_of_four(project)
    call_command("results", "undetected", project="fbi", format="json")
    printed = json.loads(capsys.readouterr().out)
    row = next(row for row in printed["rows"] if row["category"] == "number-errors")
    assert browser.get("/api/v1/projects/fbi/results/undetected/").json() == printed
    assert browser.get(f"{INDEX}undetected.json").json() == printed
    cell = rows(shown(browser, "?measure=undetected"))["Number errors"]
    assert cell.startswith(f"{row['rate']:.1%}".replace("%", " %"))
    assert cell.endswith(f"n {row['parsed']}, {row['missing']} missing")


def test_the_csv_file_is_the_commands(
    browser: Client, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    three_of_four(project)
    call_command("results", "undetected", project="fbi", format="csv", by="ability")
    printed = capsys.readouterr().out
    sent = browser.get(f"{INDEX}undetected.csv?by=ability")
    assert sent.content.decode().splitlines() == printed.splitlines()
    assert "fbi-undetected.csv" in sent.headers["Content-Disposition"]
    assert next(csv.DictReader(io.StringIO(printed)))["rate"] == "0.25"


@pytest.mark.parametrize("name", ["nothing.csv", "undetected.xml", "undetected.csv?by=size"])
def test_a_file_that_is_not_there_is_not_found(
    browser: Client, project: Project, name: str
) -> None:
    assert browser.get(INDEX + name).status_code == 404


def test_the_chart_has_the_figures_of_the_abilities(browser: Client, project: Project) -> None:
    three_of_four(project)
    page = browser.get(f"{INDEX}overview/").content.decode()
    found = re.search(r'<script id="figures-chart" type="application/json">(.*?)</script>', page)
    assert found
    [point] = json.loads(found[1])["data"]["values"]
    assert (point["group"], point["rate"], point["n"]) == ("Factual", 0.75, 4)


def test_a_rate_is_never_rounded_to_all_or_none(browser: Client, project: Project) -> None:
    items = make_items(project, 2001)
    said = ["undetected"] + ["detected"] * 2000
    make_judged(project, zip(items, said, strict=True))
    assert rows(shown(browser))["Number errors"].startswith("&gt; 99.9 %")


def test_the_legend_of_the_overview_has_the_order_of_its_table(
    browser: Client, project: Project
) -> None:
    """The first run has no item of the first ability, so that its mark is not the first."""
    facts, form = (
        make_items(project, 1, category=category, ability=ability)
        for category, ability in (("entity", "factual"), ("coherence", "long-form"))
    )
    first = make_judged(project, [(facts[0], "detected")])
    second = make_judged(project, [(form[0], "detected"), (facts[0], "detected")])
    page = browser.get(f"{INDEX}overview/?run={first.number}&run={second.number}").content.decode()
    found = re.search(
        r'<script id="figures-chart[^"]*" type="application/json">(.*?)</script>', page
    )
    assert found
    dots = json.loads(found[1])["layer"][1]["encoding"]
    legend = dots["color"]["scale"]["domain"]
    lines = re.findall(r'<th scope="row">.*?/runs/(\d)/', page, re.DOTALL)
    assert [name.split(" ")[0] for name in legend] == [f"{number}" for number in lines]
