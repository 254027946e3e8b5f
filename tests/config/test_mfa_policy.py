"""Where two-step sign-in is a duty, leads and site admins can do nothing before it is set up."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from annotation.models import ApiToken
from annotation.projects import members
from tests.builders import Cast, cast
from tests.config.test_mfa import switched_on

pytestmark = pytest.mark.django_db
INDEX = "/accounts/two-step/"
OWE = ("admin", "lead")
OWE_NOT = ("researcher", "adjudicator", "annotator", "stranger")


@pytest.fixture
def people(settings: Any) -> Iterator[Cast]:
    cache.clear()
    settings.SECOND_STEP_REQUIRED = True
    yield cast()
    cache.clear()


def browser_of(people: Cast, name: str) -> Client:
    client, account = Client(), people.account(name)
    assert account
    client.force_login(account)
    return client


def by_key(people: Cast, name: str) -> Client:
    account = people.account(name)
    assert account
    _, key = ApiToken.issue(account, "laptop")
    return Client(headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("name", OWE)
@pytest.mark.parametrize(
    "path", ["/", "/help/", "/tokens/", "/admin/", "/nothing/", "/sessions/", "/audit/"]
)
def test_who_leads_is_led_to_where_it_is_set_up(people: Cast, name: str, path: str) -> None:
    answer = browser_of(people, name).get(path)
    assert (answer.status_code, answer.headers["Location"]) == (302, INDEX)


@pytest.mark.parametrize("name", OWE)
def test_neither_session_nor_key_opens_the_api(people: Cast, name: str) -> None:
    for client in (browser_of(people, name), by_key(people, name)):
        for path in ("/api/v1/projects/", f"/api/v1/projects/{people.project.slug}/"):
            answer = client.get(path)
            assert answer.status_code == 403
            assert "two-step sign-in" in answer.json()["detail"]
    posted = browser_of(people, name).post(f"/projects/{people.project.slug}/settings/")
    assert posted.headers["Location"] == INDEX


def test_it_says_so_there_and_once_it_is_set_up_all_is_open(people: Cast) -> None:
    assert people.lead.account
    account = people.lead.account
    page = browser_of(people, "lead").get(INDEX).content.decode()
    assert "Set it up to continue" in page
    client, _ = switched_on(account)
    assert client.get("/").status_code == 200
    assert "Set it up to continue" not in client.get(INDEX).content.decode()
    assert by_key(people, "lead").get("/api/v1/projects/").status_code == 200
    assert client.get("/accounts/two-step/codes/").status_code == 200


@pytest.mark.parametrize("name", OWE_NOT)
def test_nobody_else_owes_it(people: Cast, name: str) -> None:
    assert browser_of(people, name).get("/").status_code == 200
    assert by_key(people, name).get("/api/v1/projects/").status_code == 200
    assert "Set it up to continue" not in browser_of(people, name).get(INDEX).content.decode()


def test_who_becomes_a_lead_owes_it_from_then_on_and_may_sign_out(people: Cast) -> None:
    client = browser_of(people, "annotator")
    assert client.get("/").status_code == 200
    members.change_role(people.lead, people.annotator, "lead")
    assert client.get("/").headers["Location"] == INDEX
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/accounts/login/").status_code == 200


def test_without_the_setting_nobody_owes_it(people: Cast, settings: Any) -> None:
    settings.SECOND_STEP_REQUIRED = False
    assert browser_of(people, "admin").get("/").status_code == 200
    assert by_key(people, "lead").get("/api/v1/projects/").status_code == 200
