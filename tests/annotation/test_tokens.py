"""A key to the API, looked up together with the place its owner has in the project."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.accounts import models
from annotation.accounts.models import SCOPES
from annotation.models import Account, ApiToken, Event, Membership
from tests.builders import Cast, make_project

pytestmark = pytest.mark.django_db


def with_key(member: Membership, **values: Any) -> tuple[Client, ApiToken]:
    assert member.account
    token, key = ApiToken.issue(member.account, "laptop", **values)
    return Client(headers={"Authorization": f"Bearer {key}"}), token


def status(client: Client, slug: str) -> int:
    return int(client.post(reverse("api-next", args=[slug])).status_code)


def test_key_and_place_cost_one_query_once_the_key_was_used(people: Cast) -> None:
    client, _ = with_key(people.annotator)
    where = reverse("api-project", args=[people.project.slug])
    client.get(where)
    with CaptureQueriesContext(connection) as asked:
        assert client.get(where).status_code == 200
    about_keys = [query for query in asked.captured_queries if "apitoken" in query["sql"]]
    assert len(about_keys) == 1
    assert "annotation_membership" in about_keys[0]["sql"]


def test_a_place_in_one_project_is_none_in_another(people: Cast) -> None:
    client, _ = with_key(people.annotator)
    other = make_project("other")
    assert [status(client, people.project.slug) for _ in range(2)] == [200, 200]
    assert status(client, other.slug) == 404


@pytest.mark.parametrize("used", [False, True])
def test_what_was_ended_meanwhile_opens_nothing(people: Cast, used: bool) -> None:
    client, token = with_key(people.annotator)
    if used:
        assert status(client, people.project.slug) == 200
    Membership.objects.filter(pk=people.annotator.pk).update(active=False)
    assert status(client, people.project.slug) == 403
    Membership.objects.filter(pk=people.annotator.pk).update(active=True)
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    assert status(client, people.project.slug) == 401
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=None)
    Account.objects.filter(pk=token.account_id).update(is_active=False)
    assert status(client, people.project.slug) == 401


@pytest.mark.parametrize(
    "header, answered",
    [
        ("Bearer {key}", 200),
        ("bearer {key}", 200),
        ("Token {key}", 200),
        ("Bearer", 401),
        ("Bearer {key} {key}", 401),
        ("Basic {key}", 401),
        ("", 401),
    ],
)
def test_a_key_is_sent_as_two_words(people: Cast, header: str, answered: int) -> None:
    assert people.annotator.account
    _, key = ApiToken.issue(people.annotator.account, "laptop")
    client = Client(headers={"Authorization": header.format(key=key)} if header else {})
    answer = client.get(reverse("api-projects"))
    assert answer.status_code == answered
    malformed = header.startswith("Bearer") and answered == 401
    assert ("Send the header as" in answer.content.decode()) == malformed


def test_a_key_ends_at_the_time_that_was_said() -> None:
    now = timezone.now()
    second = timedelta(seconds=1)
    assert not ApiToken(expires_at=None).has_expired(now)
    assert not ApiToken(expires_at=now + second).has_expired(now)
    assert ApiToken(expires_at=now).has_expired(now)
    assert ApiToken(expires_at=now - second).has_expired(now)


def test_the_use_of_a_key_is_noted_once_an_hour(people: Cast) -> None:
    client, token = with_key(people.annotator)
    long_ago = timezone.now() - timedelta(hours=2)
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=long_ago)
    status(client, people.project.slug)
    noted = ApiToken.objects.get(pk=token.pk).last_used_at
    assert noted is not None
    assert noted > long_ago
    status(client, people.project.slug)
    assert ApiToken.objects.get(pk=token.pk).last_used_at == noted


@pytest.mark.parametrize("used", [False, True])
def test_a_key_opens_what_it_is_for_and_nothing_else(people: Cast, used: bool) -> None:
    client, token = with_key(people.lead, scopes=["read"])
    if used:
        ApiToken.objects.update(last_used_at=timezone.now())
    read, write = (
        reverse(name, args=[people.project.slug]) for name in ("api-project", "api-next")
    )
    assert client.get(read).status_code == 200
    refused = client.post(write)
    assert refused.status_code == 403
    assert "label" in refused.json()["detail"]
    ApiToken.objects.filter(pk=token.pk).update(scopes="label")
    assert (client.get(read).status_code, client.post(write).status_code) == (403, 200)


@pytest.mark.parametrize("used", [False, True])
def test_a_key_opens_nothing_once_it_has_expired(people: Cast, used: bool) -> None:
    soon = timezone.now() + timedelta(minutes=5)
    client, token = with_key(people.annotator, expires_at=soon)
    if used:
        ApiToken.objects.update(last_used_at=timezone.now())
    assert status(client, people.project.slug) == 200
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    answer = client.post(reverse("api-next", args=[people.project.slug]))
    assert (answer.status_code, "expired" in answer.json()["detail"]) == (401, True)


def test_a_token_of_another_project_lends_none_of_its_scopes(people: Cast) -> None:
    with_key(people.annotator)
    client, _ = with_key(people.annotator, scopes=["read"])
    assert status(client, people.project.slug) == 403
    ApiToken.objects.update(last_used_at=timezone.now())
    assert status(client, people.project.slug) == 403


def test_a_token_is_made_on_its_page_with_scopes_and_an_end(people: Cast) -> None:
    client = Client()
    assert people.annotator.account
    client.force_login(people.annotator.account)
    assert client.post("/tokens/", {"name": "x", "days": "90"}).status_code == 422
    made = client.post("/tokens/", {"name": "x", "scopes": ["read", "label"], "days": "90"})
    token = ApiToken.objects.get()
    assert token.scopes == "read label"
    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - timezone.now() < timedelta(days=91)
    assert token.prefix in made.content.decode()
    event = Event.objects.get(kind="token")
    assert event.new["scopes"] == "read label"
    client.post("/tokens/", {"name": "y", "scopes": ["read"], "days": "0"})
    assert ApiToken.objects.get(name="y").expires_at is None


def test_only_so_many_tokens_can_be_used_at_a_time(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "MAX_TOKENS", 2)
    assert people.annotator.account
    account, client, said = people.annotator.account, Client(), {"scopes": ["read"], "days": "7"}
    client.force_login(account)
    ended = [ApiToken.issue(account, "expired", expires_at=timezone.now())[0]]
    ended += [ApiToken.issue(account, name)[0] for name in ("kept", "old")]
    refused = client.post("/tokens/", {"name": "third", **said})
    assert refused.status_code == 422
    assert "You have 2 tokens that can be used. Revoke one" in refused.content.decode()
    ended[2].revoke(timezone.now(), account)
    assert client.post("/tokens/", {"name": "third", **said}).status_code == 200
    assert set(account.tokens.values_list("name", flat=True)) == {"expired", "kept", "old", "third"}


def test_a_token_from_before_there_were_scopes_may_do_what_it_could(people: Cast) -> None:
    client, _ = with_key(people.annotator, scopes=["read"])
    text = "UPDATE annotation_apitoken SET scopes = DEFAULT"
    if connection.vendor == "sqlite":
        text = "UPDATE annotation_apitoken SET scopes = 'read label run manage'"
    with connection.cursor() as cursor:
        cursor.execute(text)
    assert ApiToken.objects.get().scopes.split() == list(SCOPES)
    assert status(client, people.project.slug) == 200
