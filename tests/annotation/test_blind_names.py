"""An item that is to be judged blind goes by a name from which nothing can be read."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from annotation.labelling import blind_names, queue
from annotation.models import ApiToken, Draft, Label, Mark, Membership, Project
from annotation.projects import guidelines
from tests.builders import make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
# What would tell the category, or that the answer is one that was changed.
TELLING = re.compile(r"number-errors|Number errors|factual|Factual|Perturbed|Six for eight")


@pytest.fixture
def member() -> Membership:
    member = make_member(make_project(blind_first=True, guidelines_field="category"))
    for number in (1, 2, 3):
        make_item(member.project, f"number-errors-{number}", texts={"claim": "Six for eight."})
    return member


class Desk:
    """What a person does at the label screen, and all that the server answered."""

    def __init__(self, member: Membership) -> None:
        self.member, self.client, self.said = member, Client(), list[str]()
        self.client.force_login(member.account)

    def get(self, name: str, **asked: str) -> str:
        path = reverse(name, args=[self.member.project.slug])
        return self._kept(self.client.get(path, asked, headers=HTMX))

    def post(self, name: str, **sent: str) -> str:
        path = reverse(name, args=[self.member.project.slug])
        return self._kept(self.client.post(path, sent, headers=HTMX))

    def draft(self, **sent: object) -> None:
        path = reverse("label-draft", args=[self.member.project.slug])
        answer = self.client.post(path, json.dumps(sent), content_type="application/json")
        assert answer.json() == {"kept": True}

    def _kept(self, response: object) -> str:
        self.said.append(response.content.decode())  # type: ignore[attr-defined]
        return self.said[-1]


def shown(panel: str) -> dict[str, str]:
    """What the page would send of its item."""
    names = ("key", "item", "revision")
    return {name: re.findall(rf'name="{name}" value="([^"]*)"', panel)[0] for name in names}


def all_that_is_said_before_a_first_look(desk: Desk) -> Iterator[str]:
    project = desk.member.project
    guidelines.publish(project, "Read.", {"number-errors": "Count."}, "", None)
    page = desk.get("label")
    name = shown(page)["item"]
    yield page
    yield desk.get("label-next")
    yield desk.post("label-hold")
    yield desk.post("label-flag", item=name)
    yield desk.get("label-siblings", item=name)
    yield desk.get("label-guidelines", item=name)
    desk.draft(**shown(page), data={"comment": "Odd."})
    yield desk.get("my-items", list="drafts")
    yield desk.get("my-items", list="todo")
    yield desk.post("label-skip", **shown(page))
    yield desk.get("my-items", list="skipped")
    yield desk.post("label-reopen", item=name)


def test_nothing_that_is_sent_before_a_first_look_tells_the_category(member: Membership) -> None:
    for said in all_that_is_said_before_a_first_look(Desk(member)):
        found = TELLING.search(said)
        assert not found, said[max(0, found.start() - 200) : found.end()]


def test_the_name_serves_wherever_the_key_would(member: Membership) -> None:
    desk = Desk(member)
    page = desk.get("label")
    name = shown(page)["item"]
    assert json.loads(desk.post("label-hold")) == {"held": [name]}
    desk.post("label-flag", item=name)
    desk.post("label-skip", **shown(page))
    kinds = Mark.objects.in_force().order_by("kind")
    assert list(kinds.values_list("kind", "item__key")) == [
        ("flag", "number-errors-1"),
        ("skip", "number-errors-1"),
    ]
    again = desk.post("label-reopen", item=name)
    assert shown(again)["item"] == name
    desk.draft(**shown(again), data={"comment": "Odd."})
    assert Draft.objects.get().item.key == "number-errors-1"
    after = desk.post("label-submit", **shown(again), error="no", comment="Odd.")
    assert Label.objects.get().item.key == "number-errors-1"
    assert shown(after)["item"] == "number-errors-1"  # what was changed is shown now


def test_a_name_is_one_persons_and_always_the_same(member: Membership) -> None:
    offer, other = take(member), make_member(member.project)
    assert take(member).name == offer.name == blind_names.blind_name(member, offer.item)
    assert blind_names.blind_name(other, offer.item) != offer.name
    assert blind_names.find_item(other, offer.name) is None
    assert blind_names.find_item(member, offer.name) == offer.item


def test_nobody_finds_the_key_of_a_first_look_by_trying_keys_out(member: Membership) -> None:
    """Keys follow a pattern, and a lead may even have named a few of them."""
    desk = Desk(member)
    asked = shown(desk.get("label"))
    right, wrong = "number-errors-1", "number-errors-2"
    for name in ("label", "label-siblings", "label-guidelines"):
        told = (desk.get(name, item=key).replace(key, "KEY") for key in (right, wrong))
        assert len({re.sub(r'"[\w:.=-]{40,}"', "", one) for one in told}) == 1, name
    for key in (right, wrong):
        assert "not assigned to you" in desk.post("label-flag", item=key)
        assert "not assigned to you" in desk.post("label-reopen", item=key)
        desk.post("label-draft-drop", item=key)
        desk.post("label-skip", **{**asked, "item": key})
        assert "another item" in desk.post("label-submit", **{**asked, "item": key}, error="no")
    assert not Mark.objects.exists()
    assert not Label.objects.exists()
    after = desk.post("label-submit", **asked, error="no")
    assert shown(after)["item"] == right
    assert shown(desk.get("label", item=right))["item"] == right


def test_an_item_that_was_labelled_before_first_looks_still_opens_by_its_key() -> None:
    member = make_member(make_project())
    item = make_item(member.project)
    say(member, take(member))
    Project.objects.update(blind_first=True)
    assert blind_names.find_item(Membership.objects.get(pk=member.pk), item.key) == item


def test_an_item_may_have_a_key_that_looks_like_a_name(member: Membership) -> None:
    member.project.blind_first = False
    item = make_item(member.project, "first-look-1")
    assert blind_names.find_item(member, "first-look-1") == item


def test_the_api_gives_and_takes_the_name(member: Membership) -> None:
    _, token = ApiToken.issue(member.account, "test")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    at = f"/api/v1/projects/{member.project.slug}"
    offer = client.post(f"{at}/queue/next/").json()
    assert not TELLING.search(json.dumps(offer))
    sent = {"key": offer["key"], "item": offer["item"]["key"], "revision": 1}
    sent |= {"answers": {"error": False}}
    made = client.post(f"{at}/labels/", json.dumps(sent), content_type="application/json")
    assert made.status_code == 201
    assert Label.objects.get().stage == "blind"


def test_without_a_first_look_items_go_by_their_keys(member: Membership) -> None:
    Project.objects.update(blind_first=False)
    member.refresh_from_db()
    assert take(member).name == "number-errors-1"
    assert queue.renew_holds(member) == {"number-errors-1"}


def test_after_the_first_look_the_name_is_taken_as_well(member: Membership) -> None:
    offer = take(member)
    queue.store_label(member, offer.submission({"error": False}))
    again = take(member)
    assert (again.item, again.name) == (offer.item, offer.item.key)
    by_name = replace(again.submission({"choice": "valid"}), item_key=offer.name)
    assert queue.store_label(member, by_name).item == offer.item


def test_the_veil_of_an_item_is_not_read_out(member: Membership) -> None:
    desk = Desk(member)
    skipped = shown(desk.get("label"))
    said = desk.post("label-skip", **skipped)
    assert "Skipped. You find it under Skipped." in said
    said = desk.post("label-reopen", item=skipped["item"])
    assert "The item is open again" in said
