"""What no page of ours sends: it is refused in words, never by an error of the server."""

import json

import pytest
from django.test import Client

from annotation.models import ApiToken, Draft, Mark
from tests.builders import Cast, cast, make_guidelines, make_item, take

pytestmark = pytest.mark.django_db

DIGITS = "9" * 5_000
"""More digits than Python makes a number of."""


@pytest.fixture
def people() -> Cast:
    people = cast()
    make_item(people.project, "x")
    return people


def browser(people: Cast, name: str) -> Client:
    client = Client()
    account = people.account(name)
    assert account
    client.force_login(account)
    return client


@pytest.mark.parametrize("revision", ["1e999", "-1e999", "NaN", DIGITS, "[]", '"²"'])
def test_a_draft_of_a_revision_that_is_no_number_is_refused(people: Cast, revision: str) -> None:
    offer = take(people.annotator)
    body = f'{{"key": "{offer.key}", "item": "x", "revision": {revision}, "data": {{}}}}'
    address = f"/projects/{people.project.slug}/label/draft/"
    answer = browser(people, "annotator").post(address, body, content_type="application/json")
    assert answer.status_code == 422
    assert not Draft.objects.exists()


def test_guidelines_of_an_endless_number_are_not_acknowledged(people: Cast) -> None:
    make_guidelines(people.project)
    address = f"/projects/{people.project.slug}/label/guidelines/"
    browser(people, "annotator").post(address, {"number": DIGITS})
    people.annotator.refresh_from_db()
    assert people.annotator.guidelines_seen == 0


def test_a_label_of_a_revision_of_endless_digits_is_refused(people: Cast) -> None:
    offer = take(people.annotator)
    sent = {"key": offer.key, "item": "x", "revision": DIGITS, "choice": "valid"}
    address = f"/projects/{people.project.slug}/label/submit/"
    assert browser(people, "annotator").post(address, sent).status_code == 422


def test_a_flag_on_a_key_that_no_column_takes_is_refused(people: Cast) -> None:
    address = f"/projects/{people.project.slug}/label/flag/"
    headers = {"HX-Request": "true"}
    client = browser(people, "annotator")
    assert client.post(address, {"item": "a\0b"}, headers=headers).status_code == 422


def test_the_note_of_a_flag_is_stored_without_what_no_column_takes(people: Cast) -> None:
    take(people.annotator)
    address = f"/projects/{people.project.slug}/label/flag/"
    said = {"item": "x", "note": "a\0b"}
    assert browser(people, "annotator").post(address, said).status_code == 302
    assert Mark.objects.get().note == "ab"


@pytest.mark.parametrize("key", ["\ud800", "a\0b", ["x"], {"x": 1}])
def test_a_case_is_asked_for_by_a_text_that_can_be_stored(people: Cast, key: object) -> None:
    account = people.adjudicator.account
    assert account
    _, token = ApiToken.issue(account, "test")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    address = f"/api/v1/projects/{people.project.slug}/adjudications/next/"
    body = json.dumps({"item": key})
    assert client.post(address, body, content_type="application/json").status_code == 422


def test_a_task_type_of_brackets_alone_is_refused(people: Cast) -> None:
    address = f"/projects/{people.project.slug}/task/"
    answer = browser(people, "lead").post(address, {"source": "a = " + "[" * 5_000})
    assert answer.status_code == 422


@pytest.mark.parametrize("name", ["fields", "answers", "agreement"])
@pytest.mark.parametrize("said", [r"a\u0000b", r"\ud800"])
def test_items_are_not_looked_for_by_what_no_column_takes(
    people: Cast, name: str, said: str
) -> None:
    row = f'{{"category": "{said}", "note{said}": "x", "field": "choice", "people": "{said}"}}'
    address = f"/projects/{people.project.slug}/items/"
    answer = browser(people, "lead").get(address, {name: row})
    assert answer.status_code == 200
    assert not answer.context["page"].object_list


def test_items_are_not_looked_for_by_text_in_a_field_of_digits(people: Cast) -> None:
    address = f"/api/v1/projects/{people.project.slug}/items/?wrote={DIGITS[:40]}"
    assert browser(people, "lead").get(address).status_code == 400


@pytest.mark.parametrize(
    ("method", "step"), [("patch", ""), ("delete", ""), ("post", "archive/"), ("post", "test/")]
)
def test_no_endpoint_has_a_name_that_no_column_takes(people: Cast, method: str, step: str) -> None:
    address = f"/api/v1/endpoints/a%00b/{step}"
    answer = browser(people, "admin").generic(method.upper(), address, "{}", "application/json")
    assert answer.status_code == 404


def test_people_agree_on_nothing_in_a_category_that_no_column_takes(people: Cast) -> None:
    address = f"/api/v1/projects/{people.project.slug}/agreement/?category=a%00b"
    assert browser(people, "lead").get(address).status_code == 200


@pytest.mark.parametrize("filters", [{"\ud800": "x"}, {"fields": '{"a": "\\u0000"}'}])
def test_a_refusal_gives_back_what_was_sent_as_far_as_it_can_be_sent(
    people: Cast, filters: dict[str, str]
) -> None:
    body = json.dumps({"table": "\ud800", "format": "csv", "filters": filters})
    address = f"/api/v1/projects/{people.project.slug}/exports/"
    answer = browser(people, "lead").post(address, body, content_type="application/json")
    assert answer.status_code == 422
    assert r"\ud800" in answer.json()["errors"]["table"][0]
