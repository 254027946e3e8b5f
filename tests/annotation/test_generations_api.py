"""The API where perturbers are asked for items."""

from typing import Any

import pytest
from django.test import Client

from annotation.generation import perturber_jobs
from annotation.models import Item, Job
from tests.annotation.test_perturbing import FACTS, STORY, bring, row
from tests.builders import Cast, cast

pytestmark = pytest.mark.django_db
BODY = {"perturbers": ["numbers", "spelling"], "doses": [1, 2], "seed": "s"}


@pytest.fixture
def people(client: Client) -> Cast:
    made = cast()
    bring(
        made.project,
        row("facts", "number-errors", FACTS, "What is a spider?"),
        row("story", "spelling", STORY, "Tell a story."),
    )
    client.force_login(made.lead.account)
    return made


def ask(client: Client, people: Cast, body: dict[str, Any], **headers: str) -> Any:
    address = f"/api/v1/projects/{people.project.slug}/generations/"
    return client.post(address, body, content_type="application/json", headers=headers)


def test_items_are_asked_for_made_and_told(
    client: Client, people: Cast, in_this_program: None
) -> None:
    asked = ask(client, people, BODY)
    assert asked.status_code == 202
    assert (asked.json()["state"], asked.json()["made"], asked.json()["by"]) == (
        "waiting", None, "perturbers",
    )  # fmt: skip
    assert perturber_jobs.run_job(Job.objects.get().pk)
    address = f"/api/v1/projects/{people.project.slug}/generations/"
    said = client.get(f"{address}1/").json()
    assert (said["state"], said["done"], said["total"], said["doses"]) == ("finished", 2, 2, [1, 2])
    assert said["made"]["made"] == {"numbers": 2, "spelling": 2}
    assert said["made"]["new"] == Item.objects.filter(origin="perturber").count() == 4
    assert [one["number"] for one in client.get(address).json()["results"]] == [1]
    assert client.get(f"{address}2/").status_code == 404


def test_the_seed_is_the_one_that_was_sent_or_a_new_one(client: Client, people: Cast) -> None:
    unseeded = {name: value for name, value in BODY.items() if name != "seed"}
    seeds = [ask(client, people, body).json()["seed"] for body in (BODY, unseeded, unseeded)]
    assert seeds[0] == "s"
    assert len({*seeds, ""}) == 4


def test_the_same_key_twice_is_one_job(client: Client, people: Cast) -> None:
    headers = {"Idempotency-Key": "once"}
    first = ask(client, people, BODY, **headers)
    assert ask(client, people, BODY, **headers).json() == first.json()
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"perturbers": []}, "perturbers"),
        ({"perturbers": ["nothing"]}, "perturbers"),
        ({"each": 0}, "each"),
        ({"doses": [33]}, "doses"),
        ({"limit": 0}, "limit"),
        ({"seed": "a.b"}, "seed"),
        ({"share": 101}, "share"),
        ({"aside": ["odd"]}, "aside"),
        ({"dose": [1]}, "body"),
    ],
)
def test_what_cannot_be_made_is_said_by_field(
    client: Client, people: Cast, changed: Any, field: str
) -> None:
    sent = ask(client, people, BODY | changed)
    assert sent.status_code == 422
    assert [*sent.json()["errors"]] == [field]
    assert not Job.objects.exists()
