"""The filters *Final label* and *Labelled as* where a label has several scores."""

import json
import re
from collections.abc import Mapping

import pytest
from django.core.management import call_command

from annotation import tasktypes
from annotation.labelling import queue
from annotation.models import Item, Membership, Project
from judging.exporting.rows import ExportRequest, count_rows
from tests.annotation.test_api import Caller
from tests.builders import (
    browser_of,
    make_item,
    make_member,
    make_project,
    make_resolution,
    take,
)

pytestmark = pytest.mark.django_db

RATINGS = {"a": (3, 2, 3), "b": (3, 2, 1), "c": (1, 1, 1)}
RATED = ("naturalness", "relatedness", "correctness")
POINTS = {"a": (2, 3, 5, 2, 3), "b": (0, 3, 4, 2, 3), "c": (0, 0, 0, 0, 0)}
SCORED = ("m1", "m2", "m3", "m4", "m5")
TAKEN = {
    "/api/v1/projects/{slug}/items/": ("resolution", "choice"),
    "/api/v1/projects/{slug}/labels/": ("choice",),
    "/api/v1/projects/{slug}/resolutions/": ("value",),
}


def label_all(
    task_type: str, names: tuple[str, ...], said: Mapping[str, tuple[int, ...]]
) -> Project:
    """A project whose items have a label each, which is their final label; and an item without."""
    project = make_project("p", task_type=task_type, overlap=1)
    member = make_member(project)
    for key, numbers in said.items():
        make_item(project, key, category="")
        answers = dict(zip(names, numbers, strict=True))
        queue.store_label(member, take(member).submission(answers))
    make_item(project, "d", category="")
    return project


def offered(page: str, name: str) -> list[str]:
    """The values of a filter on a page."""
    [form] = re.findall(rf'<select name="{name}".*?</select>', page, re.DOTALL)
    return re.findall(r'value="([^"]+)"', form)


def found(lead: Membership, name: str, value: str) -> str:
    """The keys of the items that the page and the API find, which must be the same."""
    page = browser_of(lead).get("/projects/p/items/", {name: value}).content.decode()
    shown = "".join(re.findall(r'href="/projects/p/items/(.)/"', page))
    rows = Caller(lead).get("items", query=f"?{name}={value}").json()["results"]
    assert "".join(row["key"] for row in rows) == shown
    return shown


@pytest.mark.parametrize("name", ["resolution", "choice"])
def test_each_score_of_a_rating_can_be_chosen(name: str) -> None:
    lead = make_member(label_all("rating", RATED, RATINGS), role="lead")
    page = browser_of(lead).get("/projects/p/items/").content.decode()
    values = [value for value in offered(page, name) if value != "none"]
    assert values == [f"{field}:{number}" for field in RATED for number in (1, 2, 3)]
    assert "Correctness: 2 Partly correct" in page
    assert found(lead, name, "correctness:3") == "a"
    assert found(lead, name, "correctness:1") == "bc"
    assert found(lead, name, "naturalness:3") == "ab"
    assert found(lead, name, "naturalness:2") == ""


@pytest.mark.parametrize("name", ["resolution", "choice"])
def test_each_score_of_a_rubric_and_its_total_can_be_chosen(name: str) -> None:
    lead = make_member(label_all("rubric-scoring", SCORED, POINTS), role="lead")
    page = browser_of(lead).get("/projects/p/items/").content.decode()
    values = offered(page, name)
    assert [value for value in values if value.isdigit()] == [str(n) for n in range(16)]
    assert "M1 Class: 2 Right" in page
    assert "Total: 15" in page
    assert found(lead, name, "m1:0") == "bc"
    assert found(lead, name, "m2:3") == "ab"
    assert found(lead, name, "12") == "b"
    assert found(lead, name, "0") == "c"


def test_scores_in_their_order_are_found_from_a_link() -> None:
    lead = make_member(label_all("rating", RATED, RATINGS), role="lead")
    for name in ("resolution", "choice"):
        assert found(lead, name, "3/2/1") == "b"
        assert found(lead, name, "3/3/3") == ""
    assert found(lead, "resolution", "none") == "d"


def test_the_total_of_medians_between_whole_points_is_found() -> None:
    project = make_project("p", task_type="rubric-scoring")
    medians = {"m1": 1.5, "m2": 1.5, "m3": 0, "m4": 0, "m5": 0}
    make_resolution(make_item(project, "a", category=""), "3.0", values=medians)
    lead = make_member(project, role="lead")
    assert found(lead, "resolution", "3") == "a"
    assert found(lead, "resolution", "m1:1.5") == "a"
    assert found(lead, "resolution", "m1:1") == ""


def test_where_a_label_is_one_score_its_words_are_offered_without_groups() -> None:
    project = label_all("rubric-one-score", ("score",), {"a": (2,), "b": (3,)})
    lead = make_member(project, role="lead")
    page = browser_of(lead).get("/projects/p/items/").content.decode()
    assert offered(page, "resolution") == ["none", "0", "1", "2", "3"]
    assert "optgroup" not in page.split('id="rows"')[0]
    assert found(lead, "resolution", "2") == "a"
    assert found(lead, "choice", "score:3") == "b"


def test_the_board_leads_to_the_items_with_the_score_that_it_counts() -> None:
    project = label_all("rating", RATED, RATINGS)
    version = project.task_type
    version.definition = {**version.definition, "categories": True}
    version.digest = tasktypes.digest_definition(version.definition)
    version.save()
    Item.objects.update(category="number-errors")
    lead = make_member(project, role="lead")
    page = browser_of(lead).get("/projects/p/board/").content.decode()
    [link] = re.findall(r'href="([^"]*resolution=[^"]*)"', page)
    page = browser_of(lead).get(link.replace("&amp;", "&")).content.decode()
    assert "1 item matches." in page


def test_an_export_is_narrowed_by_a_score() -> None:
    lead = make_member(label_all("rating", RATED, RATINGS), role="lead")
    page = browser_of(lead).get("/projects/p/exports/").content.decode()
    assert "correctness:3" in offered(page, "resolution")
    body = {"table": "items", "format": "jsonl", "filters": {"resolution": "correctness:1"}}
    assert Caller(lead).post("exports", body).status_code == 201
    project = Project.objects.get()
    for value, rows in (("correctness:1", 2), ("correctness:2", 0), ("3/2/3", 1)):
        asked = ExportRequest("items", "jsonl", {"resolution": value})
        assert count_rows(project, asked) == rows
    bad = body | {"filters": {"resolution": "beauty:1"}}
    assert Caller(lead).post("exports", bad).status_code == 422


def test_a_score_that_no_label_has_is_refused_with_what_there_is() -> None:
    lead = make_member(label_all("rating", RATED, RATINGS), role="lead")
    for query in ("resolution=beauty:1", "choice=beauty:1", "resolution=correctness:high"):
        refused = Caller(lead).get("items", query=f"?{query}")
        assert refused.status_code == 400
        assert "correctness:3" in refused.text


def test_the_api_documents_what_these_filters_take(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", format="openapi-json")
    paths = json.loads(capsys.readouterr().out)["paths"]
    for path, names in TAKEN.items():
        told = {one["name"]: one for one in paths[path]["get"]["parameters"]}
        for name in names:
            assert "`correctness:3`" in told[name]["description"]


def test_lists_of_labels_and_of_final_labels_take_scores_too() -> None:
    lead = make_member(label_all("rating", RATED, RATINGS), role="lead")
    for path, name in (("labels", "choice"), ("resolutions", "value")):
        for value, keys in (("correctness:1", ["b", "c"]), ("3/2/3", ["a"])):
            rows = Caller(lead).get(path, query=f"?{name}={value}").json()["results"]
            assert [row["item"] for row in rows] == keys


def test_words_stay_as_they_are() -> None:
    project = make_project("p")
    make_resolution(make_item(project, "a"), "not-sure")
    lead = make_member(project, role="lead")
    page = browser_of(lead).get("/projects/p/items/").content.decode()
    assert offered(page, "resolution")[:3] == ["none", "valid", "invalid"]
    assert Item.objects.resolved_as("not-sure").count() == 1
