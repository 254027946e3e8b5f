"""The pages of webhooks, and their API: for leads alone."""

import uuid
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import ApiToken, Event, Membership
from judging.models import Delivery, Webhook
from judging.webhooks import signing, webhooks
from judging.webhooks.topics import build_message
from tests.annotation.test_queue_threads import at_once
from tests.builders import Cast, browser_of, cast, make_member, make_project
from tests.hostile import ALL, MARK, taken_for_markup
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db
ADDRESS = "https://hooks.example.org/blindspot"


@pytest.fixture
def people() -> Cast:
    return cast()


@pytest.fixture
def hook(people: Cast) -> Webhook:
    return webhooks.create_webhook(people.lead, ADDRESS, ["runs"], now=timezone.now())


@pytest.fixture
def lead(people: Cast) -> Client:
    return browser_of(people.lead)


@pytest.fixture
def program(people: Cast) -> Client:
    return api_client(people.lead)


def page(people: Cast, end: str = "") -> str:
    return f"/projects/{people.project.slug}/webhooks/{end}"


def api(people: Cast, end: str = "") -> str:
    return "/api/v1" + page(people, end)


def make_delivery(hook: Webhook, **values: Any) -> Delivery:
    told = {"run": 3, "state": "finished", "message": "", "url": "/projects/p/runs/3/"}
    at = timezone.now()
    source = f"event {uuid.uuid4()}"
    made = build_message(source, "run.finished", at, hook.project, **told)
    webhooks.store_messages(hook, [made], now=at)
    Delivery.objects.filter(source=source).update(**values)
    return Delivery.objects.get(source=source)


def test_a_lead_adds_a_webhook_and_finds_its_secret(people: Cast, lead: Client) -> None:
    empty = lead.get(page(people)).content.decode()
    assert "No webhooks yet" in empty
    said = {"address": f" {ADDRESS} ", "topics": ["resolutions", "jobs"]}
    answer = lead.post(page(people, "new/"), said)
    made = Webhook.objects.get()
    assert answer.headers["Location"] == page(people, f"{made.pk}/")
    assert (made.address, made.topic_list) == (ADDRESS, ["resolutions", "jobs"])
    shown = lead.get(page(people, f"{made.pk}/")).content.decode()
    assert signing.derive_secret(made.nonce) in unescape(shown)
    assert "None yet." in shown
    assert ADDRESS in lead.get(page(people)).content.decode()


def test_a_form_says_what_is_wrong_at_its_field(people: Cast, lead: Client) -> None:
    answer = lead.post(page(people, "new/"), {"address": "http://10.0.0.7/", "topics": ["runs"]})
    assert answer.status_code == 422
    assert "add it to WEBHOOK_HOSTS" in answer.content.decode()
    answer = lead.post(page(people, "new/"), {"address": ADDRESS})
    assert answer.status_code == 422
    assert not Webhook.objects.exists()


def test_a_lead_changes_it_and_switches_it_off_and_on(
    people: Cast, lead: Client, hook: Webhook
) -> None:
    said = {"address": ADDRESS + "/2", "topics": ["jobs"]}
    assert lead.post(page(people, f"{hook.pk}/edit/"), said).status_code == 302
    hook.refresh_from_db()
    assert (hook.address, hook.topics) == (ADDRESS + "/2", "jobs")
    lead.post(page(people, f"{hook.pk}/off/"))
    shown = lead.get(page(people, f"{hook.pk}/")).content.decode()
    assert "Switch on" in shown
    assert "Send a test" not in shown
    lead.post(page(people, f"{hook.pk}/on/"))
    assert Webhook.objects.get().active


def test_a_page_follows_a_test_until_it_was_sent(people: Cast, lead: Client, hook: Webhook) -> None:
    address = page(people, f"{hook.pk}/")
    assert "hx-trigger" not in lead.get(address).content.decode()
    lead.post(page(people, f"{hook.pk}/ping/"))
    part = lead.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" in part
    assert "<html" not in part
    # While it waits for its next try, nothing is to be followed.
    later = timezone.now() + timedelta(minutes=5)
    Delivery.objects.update(tries=2, next_try_at=later, status=500, seconds=0.1)
    part = lead.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "every 2s" not in part
    assert "next try" in part


def test_what_failed_is_sent_again_one_by_one_or_all(
    people: Cast, lead: Client, hook: Webhook
) -> None:
    some = [make_delivery(hook, state="failed", tries=9) for _ in range(3)]
    assert (
        "Send all that failed again (3)" in lead.get(page(people, f"{hook.pk}/")).content.decode()
    )
    lead.post(page(people, f"{hook.pk}/deliveries/{some[0].uid}/again/"))
    assert list(Delivery.objects.waiting()) == [some[0]]
    lead.post(page(people, f"{hook.pk}/again/"))
    assert Delivery.objects.waiting().count() == 3
    assert {one.tries for one in Delivery.objects.all()} == {0}


def test_a_hostile_answer_is_shown_as_text(people: Cast, lead: Client, hook: Webhook) -> None:
    make_delivery(hook, state="failed", status=500, seconds=0.1, answer=ALL, problem=ALL)
    make_delivery(hook, state="failed", answer=ALL, problem=ALL)
    Webhook.objects.update(active=False, off_reason=ALL)
    for address in (page(people), page(people, f"{hook.pk}/")):
        shown = lead.get(address).content.decode()
        assert MARK in shown
        assert taken_for_markup(shown) == []


def test_only_leads_see_webhooks(people: Cast, hook: Webhook) -> None:
    for name in ("researcher", "adjudicator", "annotator"):
        member = getattr(people, name)
        assert browser_of(member).get(page(people, f"{hook.pk}/")).status_code == 403
        assert api_client(member).get(api(people, f"{hook.pk}/")).status_code == 403
    assert browser_of(people.stranger).get(page(people, f"{hook.pk}/")).status_code == 404


def test_a_lead_of_another_project_does_not_find_it(people: Cast, hook: Webhook) -> None:
    other = make_project("other")
    lead = make_member(other, role="lead")
    for end in (f"{hook.pk}/", f"{hook.pk}/deliveries/"):
        assert api_client(lead).get(f"/api/v1/projects/other/webhooks/{end}").status_code == 404
    assert browser_of(lead).get(f"/projects/other/webhooks/{hook.pk}/").status_code == 404
    for step in ("ping", "delete", "secret", "off"):
        address = f"/projects/other/webhooks/{hook.pk}/{step}/"
        assert browser_of(lead).post(address).status_code == 404
    assert Webhook.objects.get().active


def test_pages_say_if_who_added_it_may_no_longer(people: Cast, lead: Client, hook: Webhook) -> None:
    other = make_member(people.project, role="lead")
    Webhook.objects.update(member=other)
    for values, words in (
        ({}, None),
        ({"role": "annotator"}, "who is no lead any more"),
        ({"active": False}, "who is suspended"),
    ):
        Membership.objects.filter(pk=other.pk).update(**values)
        for address in (page(people), page(people, f"{hook.pk}/")):
            text = lead.get(address).content.decode()
            assert words in text if words else "who is" not in text


def test_one_is_deleted_with_its_deliveries(people: Cast, lead: Client, hook: Webhook) -> None:
    make_delivery(hook)
    lead.post(page(people, f"{hook.pk}/delete/"))
    assert not Webhook.objects.exists()
    assert not Delivery.objects.exists()
    assert Event.objects.filter(kind="webhook deleted").count() == 1
    assert lead.get(page(people, f"{hook.pk}/")).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_of_six_who_change_a_webhook_at_once_after_the_same_look_one_does(
    people: Cast, hook: Webhook
) -> None:
    address = api(people, f"{hook.pk}/")
    tag = api_client(people.lead).get(address)["ETag"]

    def change(number: int) -> int:
        answer = api_client(people.lead).patch(
            address,
            {"address": f"{ADDRESS}/{number}"},
            headers={"If-Match": tag},
            content_type="application/json",
        )
        return int(answer.status_code)

    assert sorted(at_once(*(partial(change, number) for number in range(6)))) == [200, *[412] * 5]


def test_a_program_does_what_a_lead_does(people: Cast, program: Client) -> None:
    json = {"content_type": "application/json"}
    made = program.post(api(people), {"address": ADDRESS, "topics": ["runs"]}, **json)
    assert made.status_code == 201
    number, secret = made.json()["id"], made.json()["secret"]
    assert secret == signing.derive_secret(Webhook.objects.get().nonce)
    listed = program.get(api(people)).json()["results"]
    assert [(one["id"], one["topics"], "secret" in one) for one in listed] == [
        (number, ["runs"], False)
    ]
    new = program.post(api(people, f"{number}/secret/")).json()["secret"]
    assert new == signing.derive_secret(Webhook.objects.get().nonce) != secret
    sent = program.post(api(people, f"{number}/ping/")).json()
    assert (sent["type"], sent["state"], sent["payload"]["type"]) == ("ping", "waiting", "ping")
    again = api(people, f"{number}/deliveries/{sent['id']}/again/")
    assert program.post(again).status_code == 409
    Delivery.objects.update(state="delivered", finished_at=timezone.now(), next_try_at=None)
    assert program.post(again).status_code == 204
    told = program.get(api(people, f"{number}/deliveries/")).json()
    assert [one["id"] for one in told["results"]] == [sent["id"]]
    one = program.get(api(people, f"{number}/"))
    changed = program.patch(
        api(people, f"{number}/"), {"active": False}, headers={"If-Match": one["ETag"]}, **json
    )
    assert (changed.status_code, changed.json()["active"]) == (200, False)
    stale = program.patch(
        api(people, f"{number}/"), {"active": True}, headers={"If-Match": one["ETag"]}, **json
    )
    assert stale.status_code == 412
    assert program.post(api(people, f"{number}/ping/")).status_code == 422
    assert program.delete(api(people, f"{number}/")).status_code == 204
    assert program.get(api(people, f"{number}/")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"address": "http://127.0.0.1/", "topics": ["runs"]}, "address"),
        ({"address": ADDRESS, "topics": []}, "topics"),
        ({"address": ADDRESS, "topics": ["labels"]}, "topics"),
        ({"topics": ["runs"]}, "address"),
        ({"address": ADDRESS, "secret": "mine"}, "body"),
    ],
)
def test_a_body_that_cannot_be_used_says_which_field(
    people: Cast, program: Client, settings: Any, body: Any, field: str
) -> None:
    settings.WEBHOOK_HOSTS = []
    answer = program.post(api(people), body, content_type="application/json")
    assert answer.status_code == 422
    assert list(answer.json()["errors"]) == [field]


def test_a_token_needs_the_scope_to_manage(people: Cast, hook: Webhook) -> None:
    assert people.lead.account
    _, key = ApiToken.issue(people.lead.account, "test", scopes=("read", "run"))
    reader = Client(headers={"Authorization": f"Bearer {key}"})
    assert reader.get(api(people)).status_code == 200
    assert reader.post(api(people, f"{hook.pk}/secret/")).status_code == 403


def test_a_page_warns_of_a_webhook_that_fails_but_not_of_one_refused_message(
    people: Cast, lead: Client, hook: Webhook
) -> None:
    address, now = page(people, f"{hook.pk}/"), timezone.now()
    Webhook.objects.update(failing_since=now - timedelta(minutes=5))
    assert "Nothing accepted since" not in lead.get(address).content.decode()
    Webhook.objects.update(failing_since=now - timedelta(hours=2))
    assert "Nothing accepted since" in lead.get(address).content.decode()
    assert "failing" in lead.get(page(people)).content.decode()
    silent = {"failing_since": now, "failures": 1, "wait_until": now + timedelta(hours=1)}
    Webhook.objects.update(**silent)
    assert "does not answer; the next try is at" in lead.get(address).content.decode()
