"""The items behind figures of agreement: exactly those that each figure counts."""

import json
from itertools import permutations
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import visibility
from annotation.models import Mark, Membership, Project
from annotation.reports import agreement, agreement_items
from tests.annotation.test_agreement import make_label, people_of
from tests.builders import make_item, make_member, make_project

pytestmark = pytest.mark.django_db

# What ann, bob and cleo say of an item each; "" is nothing.
SAID = [
    ("1", "1", "2"),
    ("1", "2", "not-sure"),
    ("2", "", "1"),
    ("", "3", ""),
    ("1", "2", ""),
    ("3", "3", "3"),
    ("", "not-sure", "3"),
]


@pytest.fixture
def project() -> Project:
    """Three people who rate seven items, not all of them."""
    made = make_project("p", task_type="rating", overlap=2)
    people = people_of(made, "ann", "bob", "cleo")
    for place, row in enumerate(SAID):
        item = make_item(made, f"item-{place}", slots=0)
        for person, answer in zip(people, row, strict=True):
            if answer:
                make_label(item, person, {"naturalness": answer})
    return made


def told(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def test_every_figure_leads_to_as_many_items_as_it_rests_on(project: Project) -> None:
    rows = list(agreement.agreement_rows(project))
    asked = {*agreement.MEASURES, agreement.AGAINST_REST} - {*agreement.PASSAGE_MEASURES}
    assert {row["measure"] for row in rows} == asked
    for row in rows:
        found = agreement_items.item_positions(project, told(row, "field", "measure", "people"))
        assert len(found) == row["n_items"], row


@pytest.mark.parametrize(
    ("measure", "people", "places"),
    [
        # Two labels or more; of them two; without what is not sure; of a majority of the others.
        ("percent", "", [1, 2, 3, 5, 6, 7]),
        ("fleiss", "", [3, 5, 7]),
        ("alpha-ordinal", "", [1, 2, 3, 5, 6]),
        ("percent", "ann / cleo", [1, 2, 3, 6]),
        ("cohen-linear", "ann / cleo", [1, 3, 6]),
        ("against-rest", "ann", [3, 5, 6]),
        ("against-known", "ann", []),
    ],
)
def test_a_figure_leads_to_the_items_it_counts(
    project: Project, measure: str, people: str, places: list[int]
) -> None:
    row = {"field": "naturalness", "measure": measure, "people": people}
    assert agreement_items.item_positions(project, row) == places


def test_a_cell_of_two_people_leads_to_its_items(project: Project) -> None:
    rows = list(agreement.confusion_rows(project))
    # Each two share four items.
    assert sum(row["n"] for row in rows) == 3 * 4
    for row in rows:
        assert len(agreement_items.item_positions(project, row)) == row["n"]
    row = {"field": "naturalness", "choice_a": "1", "choice_b": "2"}
    assert agreement_items.item_positions(project, row | {"a": "ann", "b": "bob"}) == [2, 5]
    assert agreement_items.item_positions(project, row | {"a": "bob", "b": "ann"}) == []


def test_several_pairs_meet_either_way_round(project: Project) -> None:
    met = set[tuple[str, str, int]]()
    for place, row in enumerate(SAID, start=1):
        met.update((*pair, place) for pair in set(permutations(filter(None, row), 2)))
    for one, other, _ in met:
        row = {"field": "naturalness", "choice_a": one, "choice_b": other}
        places = sorted(place for x, y, place in met if (x, y) == (one, other))
        assert agreement_items.item_positions(project, row) == places
    # Of pairs that begin with bob, as the table has them: bob and cleo.
    row = {"field": "naturalness", "choice_a": "2", "a": "bob"}
    assert agreement_items.item_positions(project, row) == [1, 2]


@pytest.fixture
def researcher(project: Project) -> Membership:
    return make_member(project, role="researcher", alias="rita")


def listed(member: Membership, row: Any) -> list[str]:
    client = Client()
    assert member.account
    client.force_login(member.account)
    query = {"agreement": row if isinstance(row, str) else json.dumps(row)}
    found = client.get(reverse("api-items", args=["p"]), query).json()
    page = client.get(reverse("items", args=["p"]), query).content.decode()
    keys = [one["key"] for one in found["results"]]
    assert all(f"/items/{key}/" in page for key in keys)
    assert page.count("/projects/p/items/item-") == len(keys)
    return keys


def test_the_list_of_items_holds_them_and_notes_that_they_were_seen(
    project: Project, researcher: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a project with so many items that the list tells nothing of those that it leaves out.
    monkeypatch.setattr(visibility, "MOST_LEFT_OUT", 0)
    row = {"field": "naturalness", "a": "ann", "b": "bob", "choice_a": "1", "choice_b": "2"}
    assert listed(researcher, row) == ["item-1", "item-4"]
    seen = Mark.objects.of_member(researcher.pk, Mark.Kind.SEEN).values_list("item__key", flat=True)
    assert set(seen) == {"item-1", "item-4"}


@pytest.mark.parametrize(
    "row",
    ["x", "[1]", "[" * 1500, "{}", {"field": "nothing"}, {"field": "naturalness", "measure": ["a"]},
     {"field": "naturalness", "a": {"b": 1}}],
)  # fmt: skip
def test_what_is_no_row_leads_to_no_item(researcher: Membership, row: Any) -> None:
    assert listed(researcher, row) == []
