"""How a browser shows pages, as its cookies say."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.annotation.test_label_pages import body
from tests.builders import Cast, make_item

pytestmark = pytest.mark.django_db


def signed_in(people: Cast) -> Client:
    client = Client()
    client.force_login(people.annotator.account)
    return client


def test_what_is_chosen_is_on_every_page_of_this_browser(people: Cast) -> None:
    client = signed_in(people)
    sent = {"theme": "dark", "text-size": "large", "spacing": "wide", "item-keys": "shown"}
    assert client.post(reverse("display"), sent).status_code == 302
    page = body(client.get(reverse("home")))
    assert '<html lang="en" data-theme="dark" data-text-size="large">' in page
    assert '<option value="large" selected>' in body(client.get(reverse("display")))
    assert '<html lang="en">' in body(signed_in(people).get(reverse("home")))


def test_a_value_that_is_no_choice_changes_nothing(people: Cast) -> None:
    client = signed_in(people)
    answer = client.post(reverse("display"), {"theme": '"><script>'})
    assert answer.status_code == 422
    assert "theme" not in answer.cookies
    client.cookies["theme"] = '"><script>'
    assert '<html lang="en">' in body(client.get(reverse("home")))


def test_a_key_that_is_hidden_is_neither_shown_nor_said_before_the_label(people: Cast) -> None:
    make_item(people.project, "number-errors/12")
    client, address = signed_in(people), reverse("label", args=[people.project.slug])
    shown = body(client.get(address))
    assert "<code" in shown
    assert "Now number-errors/12" in shown
    client.cookies["item-keys"] = "hidden"
    hidden = body(client.get(address))
    assert "Now the next item" in hidden
    assert '<code title="number-errors/12">' not in hidden
