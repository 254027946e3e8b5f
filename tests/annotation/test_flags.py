"""Flags of items: which rules are asked of which rows, what is kept, and who is told why."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import importing, tasktypes
from annotation.exporting import tables
from annotation.importing import ItemImportReport
from annotation.importing.exported_rows import MAX_FLAGS, DerivedRow
from annotation.models import Item, Project, Slot
from formats.rows import Row
from tests.builders import Cast, make_item, make_project

pytestmark = pytest.mark.django_db

GOLD = "About 45000 kinds of spiders are known. They have eight legs."
WRONG = GOLD.replace("legs", "knees")  # no number differs


def row(key: str, perturbed: str, **values: Any) -> dict[str, Any]:
    said = {"key": key, "category": "number-errors", "prompt": "What are spiders?", "gold": GOLD}
    return {**said, "perturbed": perturbed, **values}


def store(project: Project, *rows: Row) -> ItemImportReport:
    return importing.store_items(
        project, importing.parse_items(rows, tasktypes.load_task_type(project))
    )


def made(project: Project, *rows: dict[str, Any]) -> ItemImportReport:
    return store(project, *(DerivedRow("made", n, one) for n, one in enumerate(rows, start=1)))


def flags() -> dict[str, list[str]]:
    return dict(Item.objects.values_list("key", "flags"))


def test_all_rules_are_asked_only_of_what_was_made_here() -> None:
    project = make_project()
    made(project, row("odd", WRONG), row("fine", GOLD.replace("eight", "nine")))
    store(project, Row("file", 1, row("from-file", WRONG)))
    assert flags() == {"odd": ["claim"], "fine": [], "from-file": []}


def test_the_same_answer_twice_is_flagged_the_second_time() -> None:
    project = make_project()
    nine, ten = GOLD.replace("eight", "nine"), GOLD.replace("eight", "ten")
    made(project, row("a", nine), row("b", nine + "\n"), row("c", ten))
    made(project, row("d", ten), row("e", ten, cluster="another question"))
    assert flags() == {"a": [], "b": ["duplicate"], "c": [], "d": ["duplicate"], "e": []}
    assert made(project, row("a", nine), row("d", ten)).unchanged == 2


def test_duplicates_cost_one_query_however_many_rows_and_none_in_a_file() -> None:
    project = make_project()

    def asked(*rows: Row) -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            store(project, *rows)
        return sum("perturbed" in one["sql"] and "SELECT" in one["sql"] for one in found)

    given = [row(f"k{n}", GOLD.replace("eight", str(n))) for n in range(30)]
    assert asked(*(Row("file", n, one) for n, one in enumerate(given))) == 0
    again = [{**one, "key": f"m{n}"} for n, one in enumerate(given)]
    assert asked(*(DerivedRow("made", n, one) for n, one in enumerate(again))) == 1


def exported(project: Project) -> list[dict[str, Any]]:
    return list(tables.item_rows(project))


def test_an_export_brings_its_flags_back() -> None:
    project, other = make_project("one"), make_project("two")
    make_item(project, "a", flags=["claim", "of-yesterday"])
    rows = [Row("items", 1, one) for one in exported(project)]
    assert store(other, *rows).new == 1
    assert Item.objects.get(project=other).flags == ["claim", "of-yesterday"]


@pytest.mark.parametrize(
    "bad", [["<b>"], ["x" * 41], [1], [["a"]], {"a": 1}, ["a"] * (MAX_FLAGS + 1)]
)
def test_flags_that_are_none_are_refused(bad: Any) -> None:
    project, other = make_project("one"), make_project("two")
    make_item(project, "a")
    [said] = exported(project)
    report = store(other, Row("items", 1, {**said, "flags": bad}))
    assert [one.field for one in report.bad] == ["flags"]


@pytest.fixture
def flagged(people: Cast) -> Item:
    made(people.project, row("odd", WRONG), row("twin", WRONG), row("off", WRONG))
    Item.objects.filter(key="off").update(flags=["of-yesterday"])
    return Item.objects.get(key="odd")


def test_a_lead_is_told_why_and_an_annotator_nothing(
    client: Client, people: Cast, flagged: Item
) -> None:
    slug = people.project.slug
    for name in ("item", "case"):
        client.force_login(people.lead.account)
        said = client.get(reverse(name, args=[slug, flagged.key])).text
        assert "Does not match the category" in said
        assert "No number differs." in said
    twin = client.get(reverse("item", args=[slug, "twin"])).text
    assert "Another item with the same source question has the same answer." in twin
    off = client.get(reverse("item", args=[slug, "off"])).text
    assert "of-yesterday" in off
    assert "The current rules do not find a reason" in off
    client.force_login(people.annotator.account)
    Slot.objects.exclude(item=flagged).delete()
    page = client.get(reverse("label", args=[slug])).text
    assert "knees" in page
    assert "No number differs." not in page
    assert "Does not match the category" not in page


def test_the_list_is_narrowed_to_any_flag(client: Client, people: Cast, flagged: Item) -> None:
    client.force_login(people.lead.account)
    said = client.get(reverse("items", args=[people.project.slug]), {"flag": "duplicate"}).text
    assert ">twin<" in said
    assert ">odd<" not in said
