"""Who is signed out while a page is open is told to sign in, and loses nothing that they typed."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Membership, Project
from tests.builders import Cast, browser_of, make_item

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
PAGE = "http://testserver/projects/{slug}/settings/?from=here"


def visitor() -> Client:
    """Somebody whose session and token are both gone."""
    return Client(enforce_csrf_checks=True)


def came_from(page: str) -> dict[str, str]:
    return {"Referer": page}


def stale(people: Cast) -> Client:
    """Somebody who signed in again elsewhere after their page was made."""
    client = Client(enforce_csrf_checks=True)
    assert people.lead.account
    client.force_login(people.lead.account)
    return client


def send(client: Client, slug: str, way: str = "settings", **headers: str) -> Any:
    words = {"description": "Nine <b>legs</b>", "csrfmiddlewaretoken": "x" * 64}
    words |= {"seen": "0", "old_password": "quite-secret"}
    return client.post(f"/projects/{slug}/{way}/", words, headers=headers)


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("label/submit", "application/x-www-form-urlencoded"),
        ("label/skip", "application/x-www-form-urlencoded"),
        ("label/draft", "application/json"),
        ("label/hold", "application/json"),
        ("comments", "application/x-www-form-urlencoded"),
        ("task/preview", "application/x-www-form-urlencoded"),
    ],
)
def test_a_script_is_told_that_one_must_sign_in(people: Cast, way: str, kind: str) -> None:
    address = f"/projects/{people.project.slug}/{way}/"
    answer = visitor().generic("POST", address, "{}", content_type=kind, headers=HTMX)
    assert answer.status_code == 401
    assert "You are signed out." in answer.content.decode()
    assert "<html" not in answer.content.decode()
    # It goes where every page has a place for it, over nothing that was typed.
    assert (answer["HX-Retarget"], answer["HX-Reswap"]) == ("#refused", "innerMorph")


def test_a_page_of_somebody_else_gets_nothing_of_who_signed_in_since(people: Cast) -> None:
    """As where two people share a browser, and one of them left the label screen open in a tab."""
    make_item(people.project)
    assert people.annotator.account
    client = browser_of(people.lead)
    for account, status in ((people.annotator.account, 401), (people.lead.account, 200)):
        assert account
        opened = HTMX | {"Account": str(account.pk)}
        for path in ("label/", "label/next/", "label/ahead/"):
            answer = client.get(f"/projects/{people.project.slug}/{path}", headers=opened)
            assert answer.status_code == status, (path, account)


def test_a_part_that_a_page_asks_for_again_says_the_same(people: Cast) -> None:
    address = f"/projects/{people.project.slug}/items/"
    assert visitor().get(address, headers=HTMX).status_code == 401
    assert visitor().get(address).status_code == 302


def test_a_form_comes_back_with_what_was_typed_and_the_way_to_its_page(people: Cast) -> None:
    slug = people.project.slug
    answer = send(visitor(), slug, **came_from(PAGE.format(slug=slug)))
    page = answer.content.decode()
    assert answer.status_code == 401
    assert "Nine &lt;b&gt;legs&lt;/b&gt;" in page
    assert f'/accounts/login/?next=/projects/{slug}/settings/%3Ffrom%3Dhere"' in page
    assert not re.search("quite-secret|xxxx|seen", page)


@pytest.mark.parametrize("page", ["", "http://elsewhere.example/projects/a/settings/"])
def test_what_another_site_sends_is_not_shown_under_our_name(people: Cast, page: str) -> None:
    answer = send(visitor(), people.project.slug, **came_from(page))
    assert (answer.status_code, answer.content) == (302, b"")
    assert answer["Location"].startswith("/accounts/login/?next=/projects/")
    assert b"Nine" not in send(stale(people), people.project.slug, **came_from(page)).content


def test_a_button_alone_leads_to_the_way_in(people: Cast) -> None:
    slug = people.project.slug
    answer = visitor().post(
        f"/projects/{slug}/import/1/cancel/",
        headers=came_from(f"http://testserver/projects/{slug}/import/1/"),
    )
    assert answer["Location"] == f"/accounts/login/?next=/projects/{slug}/import/1/"


def test_a_visitor_does_not_learn_what_there_is(people: Cast) -> None:
    make_item(people.project, "one")
    ways = [(people.project.slug, "items/one"), (people.project.slug, "items/two")]
    for headers in ({}, HTMX, came_from("http://testserver/")):
        answers = [send(visitor(), slug, way, **headers) for slug, way in [*ways, ("no", "label")]]
        shown = {
            (one.status_code, re.sub('/projects/[^"]+', "", one.content.decode()))
            for one in answers
        }
        assert len(shown) == 1


def test_who_signed_in_again_elsewhere_is_told_so_and_sees_what_they_typed(people: Cast) -> None:
    slug = people.project.slug
    page = send(stale(people), slug, **came_from(PAGE.format(slug=slug)))
    assert page.status_code == 403
    assert "Nine &lt;b&gt;legs&lt;/b&gt;" in page.content.decode()
    part = send(stale(people), slug, **HTMX)
    assert part.status_code == 403
    assert "<span data-why>You signed in again" in part.content.decode()
    assert "<html" not in part.content.decode()


@pytest.mark.parametrize("status", [403, 404])
def test_who_may_not_do_this_any_more_sees_what_they_typed(people: Cast, status: int) -> None:
    if status == 403:
        Membership.objects.filter(pk=people.lead.pk).update(active=False)
    else:
        Project.objects.update(archived_at=timezone.now())
    slug, client = people.project.slug, browser_of(people.lead)
    page = send(client, slug, **came_from(PAGE.format(slug=slug)))
    assert page.status_code == status
    assert "Nine &lt;b&gt;legs&lt;/b&gt;" in page.content.decode()
    part = send(client, slug, **HTMX)
    assert (part.status_code, part["HX-Retarget"]) == (status, "#refused")
    assert "Your text is still on this page" in part.content.decode()
    assert ("<span data-why>You are suspended" in part.content.decode()) == (status == 403)
    assert "<html" not in part.content.decode()
    # What a page loads again by itself has nothing that was typed.
    assert "HX-Retarget" not in client.get(f"/projects/{slug}/settings/", headers=HTMX)


def test_a_form_that_cannot_be_read_is_not_found_like_any_other(people: Cast) -> None:
    fields = {f"field-{number}": "x" for number in range(1_500)}
    for path in ("/nowhere/", f"/projects/{people.project.slug}/nothing/"):
        for values in (fields, {"text": "x" * 4_100_000}):
            sent = browser_of(people.lead).post(
                path, values, headers=came_from(f"http://testserver{path}")
            )
            assert sent.status_code == 404
    kind, headers = "application/x-www-form-urlencoded; charset=latin-1", came_from(PAGE)
    sent = browser_of(people.lead).post("/nowhere/", b"a=b", kind, headers=headers)
    assert sent.status_code == 404
