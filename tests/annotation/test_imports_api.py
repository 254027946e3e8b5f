"""Imports by the API: the same steps as on the pages, with the same answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.importing import jobs
from annotation.models import ApiToken, Item, Project
from tests.builders import TEXTS, Cast, cast

pytestmark = pytest.mark.django_db
PLACE = "/api/v1/projects/fbi/imports/"
ROW = {"row id": "a", "category": "entity", **TEXTS}


@pytest.fixture
def people(settings: Any, tmp_path: Path, in_this_program: None) -> Cast:
    settings.VAR_DIR = tmp_path
    made = cast()
    Project.objects.filter(pk=made.project.pk).update(slug="fbi")
    return made


@pytest.fixture
def program(people: Cast) -> Client:
    assert people.lead.account
    _, key = ApiToken.issue(people.lead.account, "test")
    return Client(headers={"Authorization": f"Bearer {key}"})


def send(program: Client, *rows: dict[str, Any], name: str = "items.jsonl", **said: str) -> Any:
    content = "\n".join(json.dumps(row) for row in rows).encode()
    return program.post(PLACE, {"file": SimpleUploadedFile(name, content), **said})


def put(program: Client, **body: Any) -> Any:
    return program.put(f"{PLACE}1/columns/", body, content_type="application/json")


def test_a_program_sends_a_file_names_its_columns_and_brings_it_in(program: Client) -> None:
    sent = send(program, ROW, ROW | {"row id": "", "category": "x"})
    assert (sent.status_code, sent.json()["step"]) == (201, "choose")
    columns = {name: name for name in ("category", *TEXTS)} | {"key": "row id"}
    checked = put(program, columns=columns).json()
    assert (checked["step"], checked["report"]["new"], checked["report"]["bad"]) == ("ready", 1, 1)
    [problem] = checked["report"]["problems"]
    assert (problem["line"], problem["field"]) == (2, "category")
    assert not Item.objects.exists()
    assert program.post(f"{PLACE}1/start/").json()["step"] == "store"
    assert jobs.run_job(jobs.Job.objects.get().pk)
    done = program.get(f"{PLACE}1/").json()
    assert (done["state"], done["report"]["new"], done["member"]) == ("finished", 1, "lead")
    assert program.get(PLACE).json()["results"] == [done]
    assert json.loads(program.get(f"{PLACE}1/rows/").getvalue())["category"] == "x"
    assert b"category" in program.get(f"{PLACE}1/problems/").getvalue()


def test_what_cannot_be_used_is_told_with_what_could(program: Client, settings: Any) -> None:
    assert "any of .csv" in send(program, ROW, name="items.pdf").json()["detail"]
    assert program.post(PLACE, {}).status_code == 422
    assert program.post(PLACE, {"a": 1}, content_type="application/json").status_code == 422
    send(program, ROW)
    columns = {name: name for name in ("category", *TEXTS)}
    assert "Every item needs key" in put(program, columns=columns).json()["errors"]["columns"][0]
    wrong = put(program, columns=columns | {"key": "id"}).json()
    assert "The file has no id" in wrong["errors"]["columns"][0]
    wrong = put(program, columns=columns | {"colour": "row id"}).json()
    assert "An item has no colour" in wrong["errors"]["columns"][0]
    settings.IMPORT_BYTES = 10
    assert "is larger than" in send(program, ROW).json()["detail"]


def test_what_comes_too_late_is_a_conflict(program: Client) -> None:
    send(program, ROW)
    assert program.post(f"{PLACE}1/start/").status_code == 409
    assert program.get(f"{PLACE}1/rows/").status_code == 409
    assert program.post(f"{PLACE}1/cancel/").json()["state"] == "cancelled"
    assert program.post(f"{PLACE}1/cancel/").status_code == 409
    columns = {name: name for name in ("category", *TEXTS)} | {"key": "row id"}
    assert put(program, columns=columns).status_code == 409
    assert program.get(f"{PLACE}2/").status_code == 404
