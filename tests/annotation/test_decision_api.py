"""Verification, decisions, comments and the baseline through the API."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.labelling import cases, human_baseline
from annotation.models import ApiToken, Item, Mark, Membership, Resolution
from tests.builders import Cast, make_item, make_member, make_resolution, say, take

pytestmark = pytest.mark.django_db


def ask(member: Membership, path: str, body: Any = None, status: int = 200) -> Any:
    """A POST with a body, a GET without one; the answer, read."""
    assert member.account
    _, key = ApiToken.issue(member.account, "test")
    client = Client(headers={"Authorization": f"Bearer {key}"})
    address = f"/api/v1/projects/{member.project.slug}/{path}"
    if body is None:
        response = client.get(address)
    else:
        response = client.post(address, body, content_type="application/json")
    assert response.status_code == status, response.content
    return response.json() if response.content else None


def shown(offer: dict[str, Any], **values: Any) -> dict[str, Any]:
    names = {"key": offer["key"], "item": offer["item"]["key"], "revision": offer["revision"]}
    return {**names, **values}


def test_a_label_is_confirmed(people: Cast) -> None:
    people.project.verify = True
    people.project.save()
    item = make_item(people.project)
    say(people.annotator, take(people.annotator), comment="Six for eight.")
    found = ask(people.adjudicator, "verify/next/", {})
    assert (found["first"]["annotator"], found["first"]["comment"]) == (
        "annotator",
        "Six for eight.",
    )
    sent = shown(found["offer"], of=found["first"]["submission"])
    problem = ask(people.adjudicator, "verify/labels/", sent | {"of": "x", "confirm": True}, 409)
    assert "The label has changed" in problem["detail"]
    made = ask(people.adjudicator, "verify/labels/", sent | {"confirm": True}, 201)
    assert made["choice"] == "valid"
    assert Resolution.objects.current().get(item=item).rule == "verified"
    assert ask(people.adjudicator, "verify/next/", {})["waiting"]["held_by_others"] == 0
    assert ask(people.lead, "verify/")["verified"] == 1


def test_a_label_is_contested(people: Cast) -> None:
    people.project.verify = True
    people.project.save()
    make_item(people.project)
    say(people.annotator, take(people.annotator))
    found = ask(people.adjudicator, "verify/next/", {})
    sent = shown(found["offer"], of=found["first"]["submission"], answers={"choice": "invalid"})
    problem = ask(people.adjudicator, "verify/labels/", sent, 422)
    assert "Write in the comment" in problem["detail"]
    ask(people.adjudicator, "verify/labels/", sent | {"comment": "No."}, 201)
    rate = ask(people.lead, "verify/")
    assert (rate["contested"], rate["share"]["value"]) == (1, 1.0)
    Item.objects.update(deleted_at=timezone.now())
    assert ask(people.lead, "verify/")["contested"] == 0


def test_a_case_is_taken_and_decided(people: Cast) -> None:
    item = make_item(people.project, "a/b", slots=2)
    for choice in ("valid", "invalid"):
        say(member := make_member(people.project), take(member), choice)
    [row] = ask(people.adjudicator, "adjudications/")
    assert row == {"item": "a/b", "reason": "disputed", "missing": 0, "labelled": False}
    case = ask(people.adjudicator, "adjudications/next/", {})
    assert [one["said"]["choice"] for one in case["said"]] == ["valid", "invalid"]
    sent = shown(case["offer"], answers={"choice": "invalid"}, comment="Look again.")
    problem = ask(people.adjudicator, "adjudications/labels/", sent, 422)
    assert "Choose why, then decide" in problem["detail"]
    ask(people.adjudicator, "adjudications/labels/", sent | {"why": "slip"}, 201)
    resolution = Resolution.objects.current().get(item=item)
    assert (resolution.value, resolution.reason) == ("invalid", "slip")
    assert "waiting" in ask(people.adjudicator, "adjudications/next/", {})
    problem = ask(people.lead, "adjudications/next/", {"item": "a/b"}, 409)
    assert "adjudicator has decided" in problem["detail"]
    ask(people.lead, "adjudications/requests/", {"item": "a/b"}, 201)
    assert ask(people.lead, "adjudications/next/", {"item": "a/b"})["offer"]


def test_comments_are_read_written_and_taken_back(people: Cast) -> None:
    make_item(people.project, "a/b")
    problem = ask(people.annotator, "comments/?item=a/b", status=409)
    assert "after you have labelled the item" in problem["detail"]
    say(people.annotator, take(people.annotator))
    made = ask(people.annotator, "comments/", {"item": "a/b", "text": "@lead, look."}, 201)
    assert (made["number"], made["text"]) == (1, "@lead, look.")
    assert ask(people.annotator, "comments/?item=a/b")["results"] == [made]
    [mention] = ask(people.lead, "mentions/")
    assert (mention["item"], mention["text"], mention["new"]) == ("a/b", "@lead, look.", True)
    withdrawal = {"item": "a/b", "number": 1}
    ask(people.researcher, "comments/withdraw/", withdrawal, 422)
    ask(people.annotator, "comments/withdraw/", withdrawal, 204)
    assert ask(people.annotator, "comments/?item=a/b")["results"] == []
    ask(people.annotator, "comments/", {"item": "a/b", "text": " "}, 422)
    ask(people.annotator, "comments/?item=x", status=404)


def test_without_an_item_the_comments_are_those_of_all_items_that_one_may_read_about(
    people: Cast,
) -> None:
    for key in ("a", "b", "c"):
        make_item(people.project, key)
    for number, key in enumerate(("a", "b", "a")):
        ask(people.lead, "comments/", {"item": key, "text": f"Of {key}, {number}."}, 201)
    ask(people.lead, "comments/", {"item": "c", "text": "Never mind."}, 201)
    ask(people.lead, "comments/withdraw/", {"item": "c", "number": 1}, 204)
    found = ask(people.researcher, "comments/")["results"]
    assert [(one["item"], one["number"]) for one in found] == [("a", 2), ("b", 1), ("a", 1)]
    assert ask(people.annotator, "comments/")["results"] == []
    say(people.annotator, take(people.annotator))
    seen = ask(people.annotator, "comments/")["results"]
    assert [one["item"] for one in seen] == ["a", "a"]
    marks = Mark.objects.of_member(people.annotator.pk, Mark.Kind.SEEN)
    assert [mark.item.key for mark in marks] == ["a"]


def test_whoever_lists_final_labels_has_seen_their_items(people: Cast) -> None:
    for key in ("a", "b"):
        make_resolution(make_item(people.project, key))
    make_item(people.project, "c")
    found = ask(people.lead, "resolutions/")["results"]
    assert sorted(one["item"] for one in found) == ["a", "b"]
    seen = Mark.objects.of_member(people.lead.pk, Mark.Kind.SEEN)
    assert sorted(seen.values_list("item__key", flat=True)) == ["a", "b"]


def test_the_baseline_is_read(people: Cast) -> None:
    make_resolution(make_item(people.project, slots=0))
    now = timezone.now()
    human_baseline.draw_sample(people.lead, size=1, raters=1, by=["category"], seed=1, now=now)
    say(people.annotator, take(people.annotator))
    found = ask(people.lead, "baseline/")
    assert (found["items"], found["filled"]) == (1, 1)
    assert found["people"][0]["annotator"] == "annotator"
    assert found["people"][0]["share"]["value"] == 1.0


def test_a_decision_that_was_asked_for_waits_in_the_list(people: Cast) -> None:
    item = make_item(people.project, slots=3)
    cases.request_decision(people.lead, item, now=timezone.now())
    [row] = ask(people.lead, "adjudications/")
    assert (row["reason"], row["missing"]) == ("requested", 3)
