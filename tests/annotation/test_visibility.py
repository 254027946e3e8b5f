"""Who has looked through a list that says what others said gives informed labels from then on."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.items.snapshots import create
from annotation.labelling import visibility
from annotation.models import Item, Mark, Membership, Slot
from tests.builders import Cast, browser_of, make_item, make_known, make_resolution, say, take

pytestmark = pytest.mark.django_db


def look(person: Any, name: str, people: Cast, query: str = "") -> Any:
    """A person's browser, or a program of theirs, loads a list."""
    client = Client()
    client.force_login(person.account if isinstance(person, Membership) else person)
    answer = client.get(reverse(name, args=[people.project.slug]) + query)
    assert answer.status_code == 200
    return answer


def seen(member: Membership) -> set[str]:
    marks = Mark.objects.of_member(member.pk, Mark.Kind.SEEN)
    return set(marks.values_list("item__key", flat=True))


def resolved(people: Cast, key: str) -> Item:
    item = make_item(people.project, key)
    make_resolution(item)
    return item


@pytest.mark.parametrize("name", ["items", "api-items"])
def test_a_label_of_an_item_whose_resolution_stood_in_a_list_is_an_informed_one(
    people: Cast, name: str
) -> None:
    resolved(people, "a"), make_item(people.project, "b")
    look(people.lead, name, people)
    first, second = say(people.lead, take(people.lead)), say(people.lead, take(people.lead))
    assert (first.item.key, first.informed) == ("a", True)
    assert (second.item.key, second.informed) == ("b", False)


def test_a_list_of_labels_informs_of_items_that_others_labelled(people: Cast) -> None:
    people.project.overlap = 2
    people.project.save()
    for key in "ab":
        make_item(people.project, key)
    say(people.annotator, take(people.annotator))
    say(people.lead, take(people.lead, draw=1.0))
    Slot.objects.filter(item__key="a", state="open").delete()
    look(people.annotator.project.members.get(alias="researcher"), "api-labels", people)
    look(
        people.annotator.project.members.get(alias="lead"), "api-labels", people, "?annotator=lead"
    )
    assert (seen(people.researcher), seen(people.lead)) == ({"a"}, set())
    look(people.lead, "api-labels", people)
    assert seen(people.lead) == {"a"}


def test_only_what_was_on_the_page_is_noted(people: Cast) -> None:
    for key in "abc":
        resolved(people, key)
    look(people.lead, "api-items", people, "?limit=1")
    assert seen(people.lead) == {"a"}
    look(people.lead, "items", people, "?search=c")
    assert seen(people.lead) == {"a", "c"}


def test_one_items_page_of_the_api_is_noted_too(people: Cast) -> None:
    resolved(people, "a")
    client = Client()
    client.force_login(people.lead.account)  # type: ignore[arg-type]
    client.get(reverse("api-item", args=[people.project.slug, "a"]))
    assert seen(people.lead) == {"a"}


def test_the_same_list_again_writes_nothing_and_costs_one_query_more(
    people: Cast, django_assert_num_queries: Callable[..., Any]
) -> None:
    for key in "abcdef":
        resolved(people, key)
    look(people.lead, "api-items", people)
    with django_assert_num_queries(30, exact=False) as again:
        look(people.lead, "api-items", people)
    [asked] = [one["sql"] for one in again if "annotation_mark" in one["sql"]]
    assert asked.startswith("SELECT")


def test_a_site_admin_without_a_place_gives_no_label_and_gets_no_mark(people: Cast) -> None:
    resolved(people, "a")
    look(people.admin, "items", people)
    assert not Mark.objects.exists()


def test_known_answers_inform_of_their_items(people: Cast) -> None:
    make_known(people.project, "k")
    look(people.lead, "answer-key", people)
    assert seen(people.lead) == {"k"}


@pytest.mark.parametrize(
    "query", ["annotator=annotator&choice=valid", "longer_than=0", "wrote=choice"]
)
def test_a_list_narrowed_by_what_somebody_said_informs_of_all_that_is_on_it(
    people: Cast, query: str
) -> None:
    make_item(people.project, "a", slots=2)
    say(people.annotator, take(people.annotator), seconds=5)
    look(people.lead, "api-items", people)
    assert seen(people.lead) == set()
    look(people.lead, "items", people, f"?{query}")
    assert seen(people.lead) == {"a"}


@pytest.mark.parametrize("name", ["items", "api-items"])
@pytest.mark.parametrize(
    ("most", "query", "told"),
    [
        (2, "search=a&choice=invalid", {"a"}),
        (2, "choice=invalid", {"a"}),
        # Of more items, one that is missing is one of many.
        (1, "choice=invalid", set()),
        (2, "search=a", set()),
        (2, "search=b&choice=invalid", set()),
    ],
)
def test_an_item_that_a_list_leaves_out_for_what_was_said_of_it_is_known_too(
    people: Cast, monkeypatch: Any, name: str, most: int, query: str, told: set[str]
) -> None:
    for key in "ab":
        make_item(people.project, key, slots=2)
    assert say(people.annotator, take(people.annotator)).item.key == "a"
    monkeypatch.setattr(visibility, "MOST_LEFT_OUT", most)
    look(people.adjudicator, name, people, f"?{query}")
    assert seen(people.adjudicator) == told


@pytest.mark.parametrize("name", ["items", "api-items"])
def test_an_item_that_a_list_of_final_labels_leaves_out_is_known_too(
    people: Cast, name: str
) -> None:
    make_item(people.project, "b", slots=2)
    say(people.annotator, take(people.annotator))
    resolved(people, "a")
    look(people.adjudicator, name, people, "?resolution=none")
    assert seen(people.adjudicator) == {"a"}


@pytest.mark.parametrize(
    ("name", "wanted"), [("api-labels", "choice"), ("api-resolutions", "value")]
)
def test_a_list_about_one_item_tells_of_it_even_without_rows(
    people: Cast, name: str, wanted: str
) -> None:
    resolved(people, "a")
    resolved(people, "b")
    look(people.adjudicator, name, people, f"?item=a&{wanted}=score-invariant")
    assert seen(people.adjudicator) == {"a"}


@pytest.mark.parametrize("name", ["adjudicator", "researcher"])
def test_fields_of_items_are_for_those_who_may_see_results(people: Cast, name: str) -> None:
    """They may hold the correct answer, or who wrote which of two responses."""
    item = make_item(people.project, "a", fields={"answer": "first"})
    freeze = create.enqueue(people.project, people.lead, "before")
    create.store_contents(freeze)
    Item.objects.filter(pk=item.pk).update(fields={"answer": "second"})
    create.store_contents(create.enqueue(people.project, people.lead, "after"))
    client = browser_of(getattr(people, name))
    project, number = people.project.slug, freeze.number + 1
    told = {
        path: client.get(path)
        for path in (
            f"/projects/{project}/items/a/",
            f"/api/v1/projects/{project}/items/a/",
            f"/projects/{project}/snapshots/{number}/",
            f"/api/v1/projects/{project}/snapshots/{number}/changes/",
        )
    }
    assert {answer.status_code for answer in told.values()} == {200}
    shown = {path for path, answer in told.items() if b"second" in answer.content}
    assert shown == (set(told) if name == "researcher" else set())
    for path in (f"/projects/{project}/items/", f"/api/v1/projects/{project}/items/"):
        found = client.get(path, {"fields": '{"answer": "second"}'})
        assert found.status_code == (200 if name == "researcher" else 403)
        assert client.get(path, {"fields": ""}).status_code == 200
