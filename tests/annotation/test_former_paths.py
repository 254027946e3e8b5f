"""Addresses of pages that had another word once."""

import pytest
from django.test import Client
from django.urls import resolve

from annotation.former_paths import PATHS
from annotation.models import Label
from tests.annotation.test_label_pages import browser_of, shown
from tests.builders import make_item, make_member, make_project, take

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("old", PATHS)
def test_a_bookmark_leads_to_the_page_of_today(old: str) -> None:
    answer = Client().get(f"/projects/p/{old}", {"item": "a b"})
    address, _, query = answer.headers["Location"].partition("?")
    assert (answer.status_code, query) == (301, "item=a+b")
    assert resolve(address)


@pytest.mark.parametrize(
    "old, new",
    [
        ("vet/next/", "label/next/"),
        ("practice/people/", "qualification/people/"),
        ("making/number-errors/", "generation/number-errors/"),
        ("vet/a%3Fb", "label/a%3Fb"),
    ],
)
def test_what_follows_stays(old: str, new: str) -> None:
    assert Client().get(f"/projects/p/{old}").headers["Location"] == f"/projects/p/{new}"


def test_the_list_of_my_items_stays_the_same() -> None:
    assert Client().get("/projects/p/vet/piles/?pile=held&page=2").headers["Location"] == (
        "/projects/p/my-items/?list=reserved&page=2"
    )


def test_the_query_of_another_page_is_left_alone() -> None:
    answer = Client().get("/projects/p/known/?item=pile=held")
    assert answer.headers["Location"] == "/projects/p/answer-key/?item=pile=held"


def test_a_label_sent_by_a_page_that_was_open_before_is_stored() -> None:
    member = make_member(make_project("fbi"))
    make_item(member.project)
    client = browser_of(member)
    sent = shown(take(member), choice="valid")
    answer = client.post("/projects/fbi/vet/label/", sent, follow=True)
    assert answer.redirect_chain[0] == ("/projects/fbi/label/submit/", 308)
    assert Label.objects.get().choice == "valid"
