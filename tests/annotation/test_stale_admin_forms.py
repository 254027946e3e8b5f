"""Pages of the administration that stayed open while others changed the same things."""

from html.parser import HTMLParser

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.builders import Cast, browser_of

pytestmark = pytest.mark.django_db


class Inputs(HTMLParser):
    """The values that the inputs and choices of a page would send."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "select":
            self.choice = str(said.get("name"))
        if tag == "option" and "selected" in said:
            self.sent[self.choice] = said.get("value") or ""
        is_off = said.get("type") in ("checkbox", "submit") and "checked" not in said
        if tag == "input" and said.get("name") and not is_off:
            self.sent[str(said["name"])] = said.get("value") or ("on" if "checked" in said else "")


@pytest.fixture
def client(people: Cast) -> Client:
    return browser_of(people.admin)


def opened(client: Client, row: Model) -> tuple[str, dict[str, str]]:
    """The page of a row, and what it would send."""
    place = reverse(f"admin:annotation_{row._meta.model_name}_change", args=[row.pk])
    return place, Inputs(client.get(place).content.decode()).sent


def save(client: Client, place: str, sent: dict[str, str]) -> None:
    answer = client.post(place, sent)
    assert answer.status_code == 302, answer.context["adminform"].form.errors


def test_a_stale_page_of_a_project_neither_opens_nor_unseals_it(
    people: Cast, client: Client
) -> None:
    project = people.project
    place, sent = opened(client, project)
    project.sealed, project.archived_at, project.hold_minutes = True, timezone.now(), 7
    project.save()
    save(client, place, sent | {"name": "Spiders"})
    project.refresh_from_db()
    assert (project.name, project.sealed, project.hold_minutes) == ("Spiders", True, 7)
    assert project.archived_at


def test_a_stale_page_of_an_account_does_not_open_it_again(people: Cast, client: Client) -> None:
    account = people.stranger
    account.is_superuser, account.email = True, "ada@lab.example"
    account.save()
    place, sent = opened(client, account)
    account.is_active, account.is_superuser, account.email = False, False, ""
    account.save()
    save(client, place, sent | {"first_name": "Ada"})
    account.refresh_from_db()
    assert (account.first_name, account.email) == ("Ada", "")
    assert not account.is_active
    assert not account.is_superuser


def test_what_was_changed_on_a_stale_page_is_saved(people: Cast, client: Client) -> None:
    place, sent = opened(client, people.stranger)
    people.stranger.email = "ada@lab.example"
    people.stranger.save()
    del sent["is_active"]
    save(client, place, sent | {"email": "eve@lab.example"})
    people.stranger.refresh_from_db()
    assert people.stranger.email == "eve@lab.example"
    assert not people.stranger.is_active
