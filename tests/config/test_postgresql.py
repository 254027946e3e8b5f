"""A connection that the server has closed is noticed before a request needs it."""

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.db.backends.postgresql import base
from django.test import Client
from django.urls import reverse

from annotation.models import ApiToken
from tests.builders import cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]


def number_of_this_connection() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [number] = cursor.fetchone()
    return int(number)


def end(number: int) -> None:
    settings = connection.get_connection_params()
    wanted = {name: settings[name] for name in ("dbname", "host", "port", "user", "password")
              if settings.get(name)}  # fmt: skip
    with psycopg.connect(**wanted, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 2000)", [number])


def cut() -> None:
    """Have the server close this connection, as it does when it starts anew."""
    end(number_of_this_connection())


def test_a_request_after_the_server_closed_the_connection_gets_a_new_one() -> None:
    before = number_of_this_connection()
    end(before)
    close_old_connections()  # as at the start of a request
    assert number_of_this_connection() != before


def test_only_a_connection_with_something_to_read_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(base.DatabaseWrapper, "is_usable", lambda self: asked.append(self))
    number = number_of_this_connection()
    assert connection.is_usable()
    assert not asked
    end(number)
    assert not connection.is_usable()
    assert asked
    connection.close()


def test_the_first_call_of_the_api_after_the_server_closed_the_connection_is_answered() -> None:
    people = cast()
    assert people.lead.account
    _, key = ApiToken.issue(people.lead.account, "test")
    program = Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)
    project = reverse("api-project", args=[people.project.slug])
    assert program.get(project).status_code == 200
    cut()
    close_old_connections()  # as at the start of a request
    assert program.get(project).status_code == 200


def test_while_the_server_is_away_pages_and_the_api_say_so_and_when_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = cast()
    person = Client(raise_request_exception=False)
    assert people.lead.account
    person.force_login(people.lead.account)
    connection.close()
    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "PORT", "1")
        page, told = person.get("/"), person.get("/api/v1/projects/")
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert "The database is not available" in page.content.decode()
    assert (told.status_code, told["Retry-After"]) == (503, "5")
    assert told["Content-Type"] == "application/problem+json"
    assert told.json()["detail"].startswith("The database is not available at the moment.")
    assert person.get("/").status_code == 200
