"""Members and invitations through the API: what the pages do, with the same refusals and record."""

import json
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Event, Invitation, Membership
from annotation.projects import invitations
from tests.builders import Cast, browser_of, make_item, make_member, say, take
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(people: Cast) -> Client:
    return api_client(people.lead)


def ask(client: Client, people: Cast, method: str, way: str, **values: Any) -> Any:
    address = f"/api/v1/projects/{people.project.slug}/{way}"
    body = json.dumps(values) if values else ""
    answer: Any = client.generic(method, address, body, content_type="application/json")
    answer.said = answer.json() if answer.content else None
    return answer


def test_members_are_told_by_their_aliases_and_nothing_else(people: Cast, client: Client) -> None:
    make_item(people.project)
    say(people.annotator, take(people.annotator))
    listed = ask(client, people, "GET", "members/").said["results"]
    assert [one["alias"] for one in listed] == sorted(one["alias"] for one in listed)
    [one] = [one for one in listed if one["alias"] == "annotator"]
    assert (one["role"], one["active"], one["has_account"]) == ("annotator", True, True)
    assert (one["labelled"], one["counted"], one["last_label_at"] is None) == (1, 1, False)
    assert "@" not in str(listed)


def test_a_role_is_changed_and_somebody_suspended_on_record(people: Cast, client: Client) -> None:
    way = "members/annotator/"
    assert ask(client, people, "PATCH", way, role="adjudicator").said["role"] == "adjudicator"
    assert ask(client, people, "PATCH", way, active=False).said["active"] is False
    assert api_client(people.annotator).get(
        f"/api/v1/projects/{people.project.slug}/"
    ).status_code in {403, 404}
    assert ask(client, people, "PATCH", way, active=True).said["active"] is True
    events = Event.objects.filter(kind="member", subject="annotator").order_by("pk")
    assert [event.data["new"] for event in events] == [
        {"role": "adjudicator"}, {"active": False}, {"active": True},
    ]  # fmt: skip
    assert {event.member for event in events} == {people.lead}


def test_a_change_of_two_things_is_made_whole_or_not_at_all(people: Cast, client: Client) -> None:
    answer = ask(client, people, "PATCH", "members/lead/", role="annotator", active=True)
    assert (answer.status_code, "no lead" in answer.said["detail"]) == (422, True)
    make_member(people.project, "lead", alias="second")
    answer = ask(client, people, "PATCH", "members/lead/", role="annotator", active=False)
    assert (answer.status_code, "suspend yourself" in answer.said["detail"]) == (422, True)
    people.lead.refresh_from_db()
    assert people.lead.role == "lead"


def test_a_lead_may_give_up_their_own_role_with_all_else_of_the_request(
    people: Cast, client: Client
) -> None:
    make_member(people.project, "lead", alias="second")
    answer = ask(client, people, "PATCH", "members/lead/", role="annotator", active=True)
    assert (answer.status_code, answer.said["role"]) == (200, "annotator")
    people.lead.refresh_from_db()
    people.lead.role = "lead"
    people.lead.save()
    said = {"member": "lead", "action": "change", "role": "annotator", "group": "course"}
    browser_of(people.lead).post(reverse("members", args=[people.project.slug]), said)
    people.lead.refresh_from_db()
    assert (people.lead.role, people.lead.group) == ("annotator", "course")


def test_nobody_is_changed_who_is_not_there(people: Cast, client: Client) -> None:
    for alias in ("nobody", "%00", "a/b"):
        assert ask(client, people, "PATCH", f"members/{alias}/", role="lead").status_code == 404
    make_member(people.project, alias="a/b")
    assert ask(client, people, "PATCH", "members/a/b/", role="lead").said["alias"] == "a/b"


def test_a_project_is_handed_over(people: Cast, client: Client) -> None:
    answer = ask(client, people, "POST", "hand-over/", to="researcher", role="annotator")
    assert answer.status_code == 204
    people.researcher.refresh_from_db()
    people.lead.refresh_from_db()
    assert (people.researcher.role, people.lead.role) == ("lead", "annotator")
    assert ask(client, people, "GET", "members/").status_code == 403


def test_an_invitation_is_made_listed_and_taken_back(people: Cast, client: Client) -> None:
    answer = ask(client, people, "POST", "invitations/", alias="gh", role="annotator")
    assert (answer.status_code, answer.said["sent"]) == (201, None)
    key = answer.said["link"].rstrip("/").rpartition("/")[2]
    assert invitations.find_invitation(key, now=timezone.now())
    [listed] = ask(client, people, "GET", "invitations/").said["results"]
    assert (listed["alias"], listed["made_by"], "link" in listed) == ("gh", "lead", False)
    again = ask(client, people, "POST", "invitations/", alias="gh", role="annotator")
    assert (again.status_code, list(again.said["errors"])) == (422, ["alias"])
    assert ask(client, people, "DELETE", "invitations/gh/").status_code == 204
    assert invitations.find_invitation(key, now=timezone.now()) is None
    assert ask(client, people, "GET", "invitations/").said["results"] == []
    assert ask(client, people, "DELETE", "invitations/other/").status_code == 404
    assert Membership.objects.in_project(people.project).named("gh") is None


def test_an_invitation_goes_out_where_there_is_a_server(
    people: Cast, client: Client, settings: Any
) -> None:
    said = {"alias": "gh", "role": "annotator", "email": "grace@lab.example", "days": 1}
    assert ask(client, people, "POST", "invitations/", **said).said["sent"] is False
    settings.EMAIL_HOST = "localhost"
    answer = ask(client, people, "POST", "invitations/", **said | {"alias": "gh2"})
    assert (answer.said["sent"], "grace" in str(answer.said)) == (True, False)
    [letter] = mail.outbox
    assert answer.said["link"] in letter.body
    for wrong in ({"email": "x"}, {"days": 2}, {"role": "boss"}, {"alias": ""}, {"alias": "\0"}):
        refused = ask(client, people, "POST", "invitations/", **{**said, "alias": "gh3", **wrong})
        assert (refused.status_code, [*refused.said["errors"]]) == (422, [*wrong])
    assert Invitation.objects.count() == 2
