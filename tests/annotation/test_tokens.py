"""A key to the API, looked up together with the place its owner has in the project."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation.models import Account, ApiToken, Membership
from tests.builders import Cast, cast, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.databases]


@pytest.fixture
def people() -> Cast:
    return cast()


def with_key(member: Membership) -> tuple[Client, ApiToken]:
    assert member.account
    token, key = ApiToken.issue(member.account, "laptop")
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
    assert status(client, people.project.slug) == 404
    Membership.objects.filter(pk=people.annotator.pk).update(active=True)
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    assert status(client, people.project.slug) == 401
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=None)
    Account.objects.filter(pk=token.account_id).update(is_active=False)
    assert status(client, people.project.slug) == 401


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
