"""A connection that the server has closed is noticed before a request needs it."""

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.db.backends.postgresql import base

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
