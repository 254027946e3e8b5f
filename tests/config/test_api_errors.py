"""What goes wrong in the API is told in one form (RFC 9457), and its document says so."""

from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from annotation.models import ApiToken
from tests.builders import Cast

pytestmark = pytest.mark.django_db

FORM = "application/problem+json"


def program(people: Cast) -> Client:
    assert people.lead.account
    _, key = ApiToken.issue(people.lead.account, "test")
    return Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*", "nonsense"])
def test_what_has_one_form_is_answered_in_it_whatever_is_asked_for(
    people: Cast, accept: str
) -> None:
    answer = program(people).get("/api/v1/projects/", headers={"Accept": accept})
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/nowhere/", "", 404),
        ("GET", "/api/v1/projects/none/", "", 404),
        ("PUT", "/api/v1/projects/", "{}", 405),
        ("POST", "/api/v1/projects/{slug}/labels/", "{", 400),
        ("POST", "/api/v1/projects/{slug}/undo/", "", 409),
        ("POST", "/api/v1/projects/{slug}/labels/", "{}", 422),
        ("POST", "/api/v1/projects/{slug}/labels/", f'"{"x" * 4_000_001}"', 413),
    ],
)
def test_every_failure_has_the_one_form(
    people: Cast, method: str, path: str, body: str, status: int
) -> None:
    address = path.replace("{slug}", people.project.slug)
    answer = program(people).generic(method, address, body, content_type="application/json")
    assert (answer.status_code, answer["Content-Type"]) == (status, FORM)
    told = answer.json()
    assert (told["type"], told["status"]) == ("about:blank", status)
    assert told["title"]
    assert told["detail"]


def test_what_is_wrong_with_a_field_is_said_by_its_name(people: Cast) -> None:
    project = f"/api/v1/projects/{people.project.slug}"
    sent = program(people).post(f"{project}/labels/", {}, content_type="application/json").json()
    assert sent["errors"]["answers"] == ["This field is required."]
    asked = program(people).get(f"{project}/runs/?state=odd").json()
    assert list(asked["errors"]) == ["state"]


def test_who_says_no_key_is_told_how_and_a_page_stays_a_page(people: Cast) -> None:
    answer = Client().get("/api/v1/projects/")
    assert (answer.status_code, answer["Content-Type"]) == (401, FORM)
    assert answer["WWW-Authenticate"] == "Bearer"
    assert Client().get("/nowhere/")["Content-Type"].startswith("text/html")


def test_an_error_of_the_server_tells_programs_nothing_of_its_inside(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("annotation.projects.access.member_for", broken)
    answer = program(people).get(f"/api/v1/projects/{people.project.slug}/")
    assert (answer.status_code, answer["Content-Type"]) == (500, FORM)
    assert "secret" not in answer.content.decode()


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize(
    ("path", "form"),
    [("/api/v1/projects/{}/", FORM), ("/projects/{}/", "text/html; charset=utf-8")],
)
def test_a_database_that_is_away_is_no_error_of_the_server_and_says_when_to_come_back(
    people: Cast,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    path: str,
    form: str,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise error("password=hunter2 at db.internal")

    client = program(people)
    assert people.lead.account
    client.force_login(people.lead.account)
    monkeypatch.setattr("annotation.projects.access.member_for", away)
    answer = client.get(path.format(people.project.slug))
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer["Content-Type"] == form
    assert "The database is not available" in answer.content.decode()
    assert "hunter2" not in answer.content.decode()


def test_the_document_describes_every_failure_in_that_form() -> None:
    document = SchemaGenerator().get_schema(public=True)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            failures = {k: v for k, v in operation["responses"].items() if int(k) >= 400}
            assert {"401", "503"} <= set(failures), (path, method)
            assert all(list(one["content"]) == [FORM] for one in failures.values()), (path, method)


@pytest.mark.parametrize("broken, status", [(OperationalError, 503), (ValueError, 500)])
def test_a_script_gets_the_reason_for_the_place_that_pages_have_for_it(
    client: Client, monkeypatch: pytest.MonkeyPatch, broken: type[Exception], status: int
) -> None:
    def fail(*_: object) -> None:
        raise broken

    client.raise_request_exception = False
    monkeypatch.setattr("annotation.accounts.sessions.SessionStore.load", fail)
    client.cookies["sessionid"] = "a" * 32
    answer = client.get("/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Retarget"]) == (status, "#refused")
    assert "Your text is still here." in answer.content.decode()
    assert "<html" not in answer.content.decode()
