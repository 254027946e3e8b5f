"""Exports in the API: asked for, watched, taken, cancelled."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from judging.exporting import jobs
from tests.builders import Cast, cast, make_item
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(settings: Any, tmp_path: Path, in_this_program: None) -> Cast:
    settings.VAR_DIR = tmp_path
    made = cast()
    make_item(made.project, "a"), make_item(made.project, "b", category="spelling")
    return made


def ask(client: Client, people: Cast, **said: Any) -> Any:
    body = {"table": "items", "format": "jsonl", **said}
    return client.post(address(people), body, content_type="application/json")


def address(people: Cast, end: str = "") -> str:
    return f"/api/v1/projects/{people.project.slug}/exports/{end}"


def work(people: Cast) -> None:
    jobs.run_job(people.project.jobs.get(kind=jobs.KIND).pk)


def test_an_export_is_asked_for_watched_and_taken(people: Cast) -> None:
    client = api_client(people.lead)
    asked = ask(client, people, filters={"category": "spelling"}, canary=True)
    assert asked.status_code == 201
    assert (asked.json()["number"], asked.json()["file"]) == (1, False)
    assert client.get(address(people, "1/file/")).status_code == 409
    work(people)
    told = client.get(address(people, "1/")).json()
    assert (told["state"], told["done"], told["file"]) == ("finished", 1, True)
    assert told["expires"] > told["finished_at"]
    taken = client.get(address(people, "1/file/"))
    assert taken.headers["Content-Disposition"].startswith('attachment; filename="')
    [row] = [json.loads(line) for line in taken.getvalue().splitlines()]
    assert (row["key"], row["canary"]) == ("b", told["canary"])
    assert [one["number"] for one in client.get(address(people)).json()["results"]] == [1]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"table": "labels of others"}, "table"),
        ({"format": "exe"}, "format"),
        ({"filters": {"nobody": "x"}}, "filters"),
        ({"filters": {"category": "no such"}}, "filters"),
        ({"table": "labels", "filters": {"category": "number-errors"}}, "filters"),
    ],
)
def test_what_cannot_be_exported_is_said_by_field(
    people: Cast, said: dict[str, Any], field: str
) -> None:
    answer = ask(api_client(people.lead), people, **said)
    assert (answer.status_code, list(answer.json()["errors"])) == (422, [field])


def test_a_researcher_exports_what_evaluators_said_and_sees_nothing_else(people: Cast) -> None:
    assert ask(api_client(people.lead), people).status_code == 201
    client = api_client(people.researcher)
    assert list(ask(client, people).json()["errors"]) == ["table"]
    assert ask(client, people, table="calls").status_code == 201
    assert [one["table"] for one in client.get(address(people)).json()["results"]] == ["calls"]
    assert ask(client, people, table="runs").status_code == 201
    assert client.get(address(people, "1/")).status_code == 404
    assert client.get(address(people, "1/file/")).status_code == 404


def test_an_export_is_cancelled_once(people: Cast) -> None:
    client = api_client(people.lead)
    ask(client, people)
    cancelled = client.post(address(people, "1/cancel/"))
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert client.post(address(people, "1/cancel/")).status_code == 409
