"""Assigning, known answers and resolutions through the API, as leads do it on the pages."""

import json
from typing import Any

import pytest
from django.test import Client

from annotation.labelling import queue
from annotation.labelling.queue import Waiting
from annotation.models import Event, Mark, Resolution, Slot
from tests.builders import Cast, cast, make_item, make_known, make_resolution, say, take
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    for key in ("a", "b", "c"):
        make_item(people.project, key)
    return people


@pytest.fixture
def client(people: Cast) -> Client:
    return api_client(people.lead)


def ask(client: Client, people: Cast, way: str, method: str = "POST", /, **values: Any) -> Any:
    """The answer, read; with its status as `status` if it is a refusal."""
    address = f"/api/v1/projects/{people.project.slug}/{way}"
    body = json.dumps(values) if values else ""
    answer = client.generic(method, address, body, content_type="application/json")
    return answer.json() if answer.content else answer.status_code


def test_items_are_kept_for_people_and_given_back(people: Cast, client: Client) -> None:
    wanted = {"keys": ["b", "c"], "people": ["adjudicator"]}
    assert ask(client, people, "assignments/", **wanted) == {"reserved": 2, "refused": 0}
    assert ask(client, people, "assignments/", "GET") == [{"annotator": "adjudicator", "places": 2}]
    assert take(people.annotator).item.key == "a"
    assert ask(client, people, "assignments/back/", annotator="adjudicator") == {"places": 2}
    assert ask(client, people, "assignments/", "GET") == []
    kinds = Event.objects.filter(kind__in=("reserve", "take back")).values_list("kind", flat=True)
    assert sorted(kinds) == ["reserve", "take back"]


def test_items_come_first_or_last(people: Cast, client: Client) -> None:
    assert ask(client, people, "priorities/", keys=["c"], priority="urgent") == {"items": 1}
    assert ask(client, people, "priorities/", limit=1, priority="later") == {"items": 1}
    assert take(people.annotator).item.key == "c"


@pytest.mark.parametrize(
    "way, values, field",
    [
        ("assignments/", {"people": ["nobody"]}, "people"),
        ("assignments/", {"people": ["researcher"]}, "people"),
        ("assignments/", {"people": []}, "people"),
        ("assignments/", {"people": ["annotator"], "keys": ["x"]}, "keys"),
        ("assignments/back/", {"annotator": "nobody"}, "annotator"),
        ("priorities/", {"priority": "now"}, "priority"),
        ("priorities/", {"priority": "later", "category": "x"}, "category"),
        ("known/", {"item": "a", "purpose": "work", "answers": {}}, "purpose"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    people: Cast, client: Client, way: str, values: dict[str, Any], field: str
) -> None:
    assert list(ask(client, people, way, **values)["errors"]) == [field]
    assert not Slot.objects.exclude(reserved_for=None).exists()


def test_what_is_right_of_an_item_is_said_read_and_released(people: Cast, client: Client) -> None:
    right = {"item": "a", "purpose": "practice", "answers": {"choice": "valid"}}
    refused = ask(client, people, "known/", "POST", **right)
    assert refused["errors"] == {
        "explanation": ["Explain why this is correct. Annotators read it."]
    }
    wrong = right | {"answers": {"choice": "maybe"}, "explanation": "Six legs."}
    assert list(ask(client, people, "known/", "POST", **wrong)["errors"]) == ["answers"]
    made = ask(client, people, "known/", "POST", **right, explanation="Six legs.")
    assert (made["answers"], made["annotator"]) == ({"choice": "valid"}, "lead")
    assert ask(client, people, "known/", "GET")["results"] == [made]
    assert ask(client, people, "known/release/", item="a") == 204
    assert ask(client, people, "known/", "GET")["results"] == []
    assert "no known answer" in ask(client, people, "known/release/", item="a")["detail"]


def test_all_that_was_held_true_is_read_and_noted_as_seen(people: Cast) -> None:
    client, item = api_client(people.adjudicator), people.project.items.get(key="a")
    make_resolution(item, "invalid", current=False, ended_at=item.created_at)
    make_resolution(item)
    make_known(people.project, "k")
    found = ask(client, people, "resolutions/", "GET")["results"]
    assert [(one["item"], one["value"], one["source"], one["current"]) for one in found] == [
        ("a", "invalid", "imported", False),
        ("a", "valid", "imported", True),
        ("k", "valid", "known", True),
    ]
    now = ask(client, people, "resolutions/?current=true&item=a", "GET")["results"]
    assert now == [found[1]]
    seen = Mark.objects.of_member(people.adjudicator.pk, Mark.Kind.SEEN)
    assert {mark.item.key for mark in seen} == {"a", "k"}
    assert Resolution.objects.count() == 3


def test_an_item_is_skipped(people: Cast) -> None:
    client = api_client(people.annotator)
    offer = ask(client, people, "queue/next/")
    shown = {"key": offer["key"], "item": offer["item"]["key"], "revision": offer["revision"]}
    assert ask(client, people, "queue/skip/", **shown | {"key": "x"})["status"] in {409, 422}
    assert ask(client, people, "queue/skip/", **shown) == 204
    for _ in range(2):
        say(people.annotator, take(people.annotator))
    assert isinstance(queue.next_offer(people.annotator), Waiting)
