import pytest
from django.db import DatabaseError, connection
from django.test import Client


@pytest.mark.django_db
def test_a_process_that_can_serve_says_so_to_everybody(client: Client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert "no-cache" in answer["Cache-Control"]


@pytest.mark.django_db
def test_a_process_whose_database_is_away_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(connection, "cursor", away)
    assert client.get("/healthz").status_code == 503
