"""Exports of items as a snapshot holds them: by the page, the API and the command."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.items.snapshots import create
from annotation.models import Event, Item, Job
from judging.exporting import jobs as exporting_jobs
from judging.exporting import rows
from judging.exporting.rows import ExportRequest
from tests.builders import (
    Cast,
    browser_of,
    cast,
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_revision,
)
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db
ASKED = {"table": "items", "format": "jsonl"}


@pytest.fixture
def people(settings: Any, tmp_path: Path) -> Cast:
    """Items a and b were frozen as v1; then a was changed, b deleted, and c came."""
    settings.VAR_DIR = tmp_path
    made = cast()
    make_item(made.project, "a"), make_item(made.project, "b")
    create.store_contents(create.enqueue(made.project, made.lead, "v1"))
    make_revision(Item.objects.get(key="a"), {"prompt": "?", "gold": "new", "perturbed": "y"})
    make_resolution(Item.objects.get(key="a"))
    Item.objects.filter(key="b").update(deleted_at=timezone.now())
    make_item(made.project, "c")
    return made


@pytest.fixture
def lead(people: Cast) -> Client:
    return browser_of(people.lead)


def page(people: Cast) -> str:
    return f"/projects/{people.project.slug}/exports/"


def address(people: Cast) -> str:
    return f"/api/v1/projects/{people.project.slug}/exports/"


def written() -> list[dict[str, Any]]:
    job = Job.objects.get(kind=exporting_jobs.KIND)
    assert exporting_jobs.write_export(job) == job.project.jobs.get(pk=job.pk).total
    return [json.loads(line) for line in exporting_jobs.get_path(job).read_text().splitlines()]


def keys(rows: list[dict[str, Any]]) -> list[tuple[str, int, str | None]]:
    return [(row["key"], row["revision"], row["resolution"]) for row in rows]


def command(people: Cast, path: Path, **said: str) -> None:
    wanted = {"project": people.project.slug, "format": "jsonl", "output": path, **said}
    call_command("export", "items", **wanted, stderr=io.StringIO())


def test_the_page_gives_items_as_they_were_when_frozen(lead: Client, people: Cast) -> None:
    shown = lead.get(page(people)).content.decode()
    assert '<option value="v1">v1</option>' in shown
    assert lead.post(page(people), {**ASKED, "snapshot": "v1"}).status_code == 302
    assert keys(written()) == [("a", 1, None), ("b", 1, None)]
    assert "as of v1" in lead.get(page(people)).content.decode()


def test_control_items_of_a_snapshot_are_left_out_unless_asked_for(people: Cast) -> None:
    Item.objects.filter(key="a").update(purpose="probe")
    create.store_contents(create.enqueue(people.project, people.lead, "v2"))
    for asked, found in ({}, {"c"}), ({"with_control": True}, {"a", "c"}):
        wish = ExportRequest("items", "jsonl", snapshot="v2", **asked)
        assert {row["key"] for row in rows.read_rows(people.project, wish).rows} == found


def test_the_page_gives_them_as_they_are_unless_told_otherwise(lead: Client, people: Cast) -> None:
    assert lead.post(page(people), {**ASKED, "snapshot": ""}).status_code == 302
    assert keys(written()) == [("a", 2, "valid"), ("c", 1, None)]
    assert "as of" not in lead.get(page(people)).content.decode()


def test_the_api_gives_items_as_they_were_each_with_the_canary(people: Cast) -> None:
    body = {**ASKED, "snapshot": "v1", "canary": True}
    client = api_client(people.lead)
    told = client.post(address(people), body, content_type="application/json").json()
    assert told["snapshot"] == "v1"
    assert [row["canary"] for row in written()] == [told["canary"]] * 2


def test_the_command_writes_the_same_bytes_whatever_is_changed(
    people: Cast, tmp_path: Path
) -> None:
    command(people, tmp_path / "first", snapshot="v1")
    Item.objects.update(category="spelling", deleted_at=timezone.now())
    command(people, tmp_path / "second", snapshot="v1")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert keys([json.loads(line) for line in (tmp_path / "first").open()])[0] == ("a", 1, None)
    snapshots = {event.data["snapshot"] for event in Event.objects.filter(kind="export")}
    assert snapshots == {"v1"}


def test_the_command_says_which_snapshot_there_is_not(people: Cast, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no finished snapshot 'v2'"):
        command(people, tmp_path / "file", snapshot="v2")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"snapshot": "v2"}, "Choose another one"),
        ({"snapshot": "half"}, "Choose another one"),
        ({"snapshot": "v1", "table": "labels"}, "Choose now"),
        ({"snapshot": "v1", "filters": {"category": "spelling"}}, "Remove the filters"),
    ],
)
def test_what_no_snapshot_gives_is_refused_with_a_remedy(
    people: Cast, said: dict[str, Any], why: str
) -> None:
    create.enqueue(people.project, people.lead, "half")
    client = api_client(people.lead)
    answer = client.post(address(people), {**ASKED, **said}, content_type="application/json")
    assert answer.status_code == 422
    [[told]] = answer.json()["errors"].values()
    assert why in told
    assert not Job.objects.filter(kind=exporting_jobs.KIND).exists()


def test_the_page_says_at_its_field_what_a_snapshot_cannot_be(lead: Client, people: Cast) -> None:
    answer = lead.post(page(people), {**ASKED, "snapshot": "v1", "category": "spelling"})
    assert answer.status_code == 422
    assert "Remove the filters, or choose now." in answer.content.decode()
    told = lead.post(page(people), {**ASKED, "snapshot": "v1", "table": "labels"})
    assert "contains only the table of items" in told.content.decode()


def test_a_snapshot_of_another_project_is_none_here(people: Cast) -> None:
    other = make_member(make_project(), role="lead")
    client = api_client(other)
    body = {**ASKED, "snapshot": "v1"}
    there = f"/api/v1/projects/{other.project.slug}/exports/"
    assert client.post(there, body, content_type="application/json").status_code == 422


def test_who_has_no_items_is_asked_for_no_snapshot(people: Cast) -> None:
    client = Client()
    assert people.researcher.account
    client.force_login(people.researcher.account)
    assert 'name="snapshot"' not in client.get(page(people)).content.decode()
    body = {"table": "calls", "format": "csv", "snapshot": "v1"}
    assert client.post(page(people), body).status_code == 302
    assert Job.objects.get(kind=exporting_jobs.KIND).result["snapshot"] == ""
