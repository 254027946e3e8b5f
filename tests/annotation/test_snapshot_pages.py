"""The pages of snapshots."""

import pytest
from django.test import Client

from annotation.items.snapshots import create
from annotation.models import ApiToken, Item, Mark, Snapshot
from tests.builders import Cast, cast, make_item, make_resolution

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    for key in ("a", "b", "c"):
        make_item(people.project, key)
    return people


def freeze(people: Cast, name: str) -> None:
    create.store_contents(create.enqueue(people.project, people.lead, name))


def browser(people: Cast, name: str) -> Client:
    client = Client()
    account = people.account(name)
    assert account
    client.force_login(account)
    return client


def address(people: Cast, rest: str = "") -> str:
    return f"/projects/{people.project.slug}/snapshots/{rest}"


def test_a_lead_asks_for_one_and_a_researcher_reads_it(people: Cast) -> None:
    lead = browser(people, "lead")
    lead.post(address(people), {"name": "v1", "note": "As submitted."})
    page = lead.get(address(people)).content.decode()
    assert "Waiting for a worker" in page
    assert 'aria-busy="true"' in page
    create.store_contents(Snapshot.objects.get())
    page = browser(people, "researcher").get(address(people, "1/")).content.decode()
    assert Snapshot.objects.get().digest in page
    assert "As submitted." in page
    assert "no other snapshot" in page


def test_a_name_that_is_taken_or_missing_is_said_at_its_field(people: Cast) -> None:
    freeze(people, "v1")
    lead = browser(people, "lead")
    for name, said in (("v1", "has this name"), ("", "This field is required")):
        answer = lead.post(address(people), {"name": name})
        assert answer.status_code == 422
        assert said in answer.content.decode()
    assert Snapshot.objects.count() == 1


def test_the_page_tells_what_changed_since_the_one_before(people: Cast) -> None:
    freeze(people, "v1")
    make_resolution(Item.objects.get(key="a"), "invalid")
    make_item(people.project, "d")
    freeze(people, "v2")
    researcher = browser(people, "researcher")
    page = researcher.get(address(people, "2/")).content.decode()
    assert "What changed since v1" in page
    assert 'items/a/">a</a>' in page
    assert "<b><bdi>invalid</bdi></b>" in page
    page = researcher.get(address(people, "2/?what=added")).content.decode()
    assert 'items/d/">d</a>' in page
    assert 'items/a/">a</a>' not in page
    page = researcher.get(address(people, "1/?against=2&what=removed")).content.decode()
    assert 'items/d/">d</a>' in page


def test_who_reads_what_was_held_true_labels_informed(people: Cast) -> None:
    freeze(people, "v1")
    make_resolution(Item.objects.get(key="a"), "invalid")
    freeze(people, "v2")
    browser(people, "lead").get(address(people, "2/"))
    assert Mark.objects.filter(member=people.lead, item__key="a", kind=Mark.Kind.SEEN).exists()


@pytest.mark.parametrize("rest", ["9/", "1/?against=9&what=nothing", "1/?against=x&page=99"])
def test_odd_addresses_lead_somewhere(people: Cast, rest: str) -> None:
    freeze(people, "v1")
    answer = browser(people, "researcher").get(address(people, rest), follow=True)
    assert answer.status_code == 200


def test_one_that_waits_can_be_cancelled_and_one_that_is_made_cannot(people: Cast) -> None:
    freeze(people, "v1")
    lead = browser(people, "lead")
    create.enqueue(people.project, people.lead, "v2")
    lead.post(address(people, "2/cancel/"))
    lead.post(address(people, "1/cancel/"))
    page = lead.get(address(people)).content.decode()
    assert "Cancelled; being removed" in page
    assert "Snapshot 1 is already complete" in page


# --- the API ------------------------------------------------------------------------------------


def program(people: Cast, name: str) -> Client:
    account = people.account(name)
    assert account
    _, key = ApiToken.issue(account, "test")
    return Client(headers={"Authorization": f"Bearer {key}"})


def test_a_program_asks_for_one_and_reads_it_once_it_is_made(people: Cast) -> None:
    lead = program(people, "lead")
    api = f"/api/v1{address(people)}"
    body = {"name": "v1", "note": "As submitted."}
    answer = lead.post(api, body, content_type="application/json")
    assert (answer.status_code, answer.json()["made_at"]) == (202, None)
    create.store_contents(Snapshot.objects.get())
    [listed] = program(people, "researcher").get(api).json()["results"]
    assert listed == lead.get(f"{api}1/").json()
    assert (listed["digest"], listed["items"]) == (Snapshot.objects.get().digest, 3)
    again = lead.post(api, body, content_type="application/json")
    assert (again.status_code, list(again.json()["errors"])) == (422, ["name"])


def test_a_program_reads_what_changed(people: Cast) -> None:
    freeze(people, "v1")
    make_resolution(Item.objects.get(key="a"), "invalid")
    make_item(people.project, "d")
    freeze(people, "v2")
    researcher, api = program(people, "researcher"), f"/api/v1{address(people)}2/changes/"
    [changed] = researcher.get(api, {"since": 1}).json()["results"]
    assert (changed["item"], changed["kind"]) == ("a", "changed")
    assert changed["facts"][0] == {"name": "resolution", "old": None, "new": "invalid"}
    [added] = researcher.get(api, {"since": 1, "what": "added"}).json()["results"]
    assert added == {"item": "d", "kind": "added", "facts": []}
    assert researcher.get(api).json()["results"] == [changed]
    asked = [{"since": 9}, {"since": "x" * 99}, {"since": 1, "what": "nothing"}]
    assert [researcher.get(api, one).status_code for one in asked] == [404, 404, 400]
    assert researcher.get(api.replace("2/changes", "1/changes")).status_code == 422
