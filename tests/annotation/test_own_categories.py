"""What a project with categories of its own shows, takes and counts."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation import importing, tasktypes
from annotation.exporting import tables
from annotation.generation import perturbers
from annotation.importing.items import store_items
from annotation.items import taxonomy
from annotation.models import Item, Membership, Role, TaxonomyVersion
from annotation.projects import creation
from annotation.reports import category_board, grouping
from formats.rows import Row
from tests.annotation.own_categories import TEXT, with_own_categories
from tests.annotation.test_api import Caller
from tests.builders import browser_of, make_item, make_member, make_project, make_resolution

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(with_own_categories(make_project("reviews")), Role.LEAD)


def row(number: int, category: str, **values: Any) -> Row:
    texts = {"prompt": "A review?", "gold": "It is short.", "perturbed": f"It is {number}."}
    return Row("rows.jsonl", number, {"key": f"r{number}", "category": category, **texts, **values})


def bring_in(lead: Membership, *rows: Row) -> importing.ItemImportReport:
    task = tasktypes.load_task_type(lead.project)
    known = taxonomy.load_taxonomy(lead.project)
    return store_items(lead.project, importing.parse_items(rows, task, known))


def test_rows_are_held_against_the_categories_of_the_project(lead: Membership) -> None:
    report = bring_in(
        lead,
        row(1, "rude"),
        row(2, "flattery"),
        row(3, "number-errors"),
        row(4, "made-up-citation"),
    )
    assert [bad.reason for bad in report.bad] == ["“number-errors” is no category of the project."]
    kept = Item.objects.order_by("position").values_list("category", "ability", "source_ability")
    assert list(kept) == [
        ("rude", "tone", "tone"),
        ("flattery", "tone", "tone"),
        ("made-up-citation", "evidence", "evidence"),
    ]


def test_a_category_is_known_however_it_is_written(lead: Membership) -> None:
    words = ("Rude", "RUDE REMARK", "made up citation", "Made_Up-Citation", " flattery ")
    report = bring_in(lead, *(row(number, word) for number, word in enumerate(words)))
    assert report.bad == []
    kept = Item.objects.order_by("position").values_list("category", flat=True)
    assert list(kept) == ["rude", "rude", "made-up-citation", "made-up-citation", "flattery"]


def test_pages_and_exports_say_the_names_and_the_order_of_the_project(lead: Membership) -> None:
    bring_in(lead, row(1, "made-up-citation"), row(2, "flattery"), row(3, "rude"))
    client: Client = browser_of(lead)
    pages = {
        name: client.get(reverse(name, args=[lead.project.slug])).content.decode()
        for name in ("project", "items", "assign", "board", "agreement", "my-items", "label")
    }
    for name in ("project", "items", "assign", "board", "agreement"):
        assert "Made-up citation" in pages[name], name
    assert "Tone of voice" in pages["items"]
    assert "cites a paper that does not exist" in pages["label"]
    for name, page in pages.items():
        for word in ("Number errors", "Long form", "Factual", "Score-invariant items"):
            assert word not in page, (name, word)
    counts = [each["category"] for each in tables.category_rows(lead.project)]
    assert counts == ["rude", "flattery", "made-up-citation"]


def test_programs_filter_by_the_categories_of_the_project(lead: Membership) -> None:
    bring_in(lead, row(1, "rude"), row(2, "flattery"))
    caller = Caller(lead)
    found = caller.get("items", query="?category=flattery").json()["results"]
    assert [item["key"] for item in found] == ["r2"]
    assert caller.get("items", query="?category=number-errors").status_code == 400
    assert caller.get("items", query="?category=made-up-citation").json()["results"] == []


def test_the_board_expects_no_penalty_where_the_category_says_so(lead: Membership) -> None:
    for number, (category, value) in enumerate(
        [("rude", "valid"), ("flattery", "score-invariant"), ("flattery", "valid")]
    ):
        item = make_item(lead.project, f"i{number}", category=category, ability="tone")
        make_resolution(item, value=value)
    [by, *_] = grouping.list_groupings(lead.project)
    titles = [by.title_of(group) for group in ("rude", "score-invariant", "of-old", "")]
    assert titles == ["Rude remark", "Score-invariant", "of-old", "(none)"]
    rows = {row.name: row for row in category_board.measure_board(lead.project, by=by)}
    assert (rows["rude"].share.value, rows["flattery"].share.value) == (1.0, 0.5)


def test_perturbers_find_nothing_to_do_where_their_category_is_missing(lead: Membership) -> None:
    make_item(lead.project, category="rude", ability="tone", purpose="gold")
    assert set(perturbers.count_golds(lead.project).values()) == {0}


def test_a_version_is_stored_once_and_parsed_once() -> None:
    one, other = (with_own_categories(make_project(slug)) for slug in ("a", "b"))
    assert one.taxonomy_id == other.taxonomy_id
    changed = taxonomy.read_toml(TEXT.replace("Rude remark", "Unkind remark"))
    version = creation.store_taxonomy(changed)
    assert (version.slug, version.number) == ("reviews", 2)
    assert TaxonomyVersion.objects.filter(slug="reviews").count() == 2
    assert taxonomy.load_taxonomy(one) is taxonomy.load_taxonomy(other)
