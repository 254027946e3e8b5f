"""Exports as encrypted zips, and projects that leave as these alone."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import pyzipper
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from annotation.errors import FieldError
from annotation.importing import program, receive, upload_files
from annotation.models import Event, Job, Membership, Project
from annotation.projects import encrypted_archives
from formats.writers import FILE_FORMATS
from judging.archive import create
from judging.exporting import jobs, passwords
from judging.exporting.rows import ExportRequest
from judging.exporting.tables import EXPORT_TABLES
from tests.builders import TEXTS, Cast, browser_of, cast, make_item, make_member, make_project
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db
ASKED = {"table": "items", "format": "jsonl"}


@pytest.fixture
def people(settings: Any, tmp_path: Path) -> Cast:
    settings.VAR_DIR = tmp_path
    made = cast()
    make_item(made.project, "a")
    return made


def made(member: Membership, **said: Any) -> Job:
    """An encrypted export as a worker leaves it."""
    job = jobs.enqueue(member.project, member, ExportRequest("items", **{"form": "jsonl", **said}))
    jobs.write_export(job)
    expires = (timezone.now() + jobs.RETENTION).timestamp()
    result = {**job.result, "expires": expires, "deleted": False, "bytes": 1}
    job.state, job.result, job.finished_at = Job.State.FINISHED, result, timezone.now()
    job.save()
    return job


def opened(path: Path, password: str) -> dict[str, bytes]:
    with pyzipper.AESZipFile(path) as archive:
        archive.setpassword(password.encode())
        return {name: archive.read(name) for name in archive.namelist()}


def page(project: Project) -> str:
    return f"/projects/{project.slug}/exports/"


def address(project: Project, end: str = "") -> str:
    return f"/api/v1/projects/{project.slug}/exports/{end}"


@pytest.mark.parametrize("form", FILE_FORMATS)
def test_every_format_opens_with_its_password_alone(people: Cast, form: str) -> None:
    job = made(people.lead, form=form, encrypt=True)
    path, password = jobs.get_path(job), passwords.derive(job.result)
    assert path.suffix == ".zip"
    files = opened(path, password)
    assert files
    with zipfile.ZipFile(path) as archive:
        assert all(info.flag_bits & 1 for info in archive.infolist())
    with pytest.raises(RuntimeError, match="password"):
        opened(path, "wrong")
    assert TEXTS["gold"].encode() not in path.read_bytes()
    if form == "jsonl":
        assert json.loads(files["items.jsonl"])["key"] == "a"


def test_who_asked_sees_the_password_and_nobody_else(people: Cast) -> None:
    job = made(people.lead, encrypt=True)
    password, other = passwords.derive(job.result), make_member(people.project, role="lead")
    assert (
        f"<code>{password}</code>"
        in browser_of(people.lead).get(page(people.project)).content.decode()
    )
    shown = browser_of(other).get(page(people.project)).content.decode()
    assert password not in shown
    assert "Only the person who requested this export sees its password." in shown
    told = api_client(people.lead).get(address(people.project, "1/password/"))
    assert told.json() == {"password": password}
    assert "no-store" in told.headers["Cache-Control"]
    assert api_client(other).get(address(people.project, "1/password/")).status_code == 409


def test_a_password_is_kept_nowhere_and_forgotten_with_its_file(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = made(people.lead, encrypt=True)
    password = passwords.derive(job.result)
    jobs._record_event(job)
    kept = [*Job.objects.values_list("result", "message"), *Event.objects.values_list("data")]
    assert password not in str(kept)
    later = timezone.now() + jobs.RETENTION
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert jobs.run_job(job.pk)
    job.refresh_from_db()
    assert passwords.derive(job.result) == ""
    assert passwords.NONCE_KEY not in job.result


def test_passwords_are_long_and_each_is_another(settings: Any) -> None:
    results = [{passwords.NONCE_KEY: passwords.generate_nonce()} for _ in range(3)]
    found = {passwords.derive(result) for result in results} | {passwords.generate()}
    assert len(found) == 4
    # 24 letters of 5 bits are 120 bits.
    assert {len(one.replace("-", "")) for one in found} == {24}
    before = passwords.derive(results[0])
    assert passwords.derive(results[0]) == before
    settings.SECRET_KEY = "another key of fifty characters and some more still"
    assert passwords.derive(results[0]) != before


def test_what_is_not_encrypted_has_no_password(people: Cast) -> None:
    made(people.lead)
    assert api_client(people.lead).get(address(people.project, "1/password/")).status_code == 409
    shown = browser_of(people.lead).get(page(people.project)).content.decode()
    assert "<summary>Password" not in shown


def test_a_command_shows_the_password_once(people: Cast, tmp_path: Path) -> None:
    path, said = tmp_path / "a.zip", io.StringIO()
    words = {"project": people.project.slug, "format": "csv", "output": path}
    call_command("export", "items", **words, encrypt=True, stderr=said)
    password = said.getvalue().split()[-1]
    assert b"spider" in opened(path, password)["items.csv"]
    event = Event.objects.get(kind="export")
    assert event.data["encrypted"] is True
    assert password not in str(event.data)


@pytest.mark.parametrize("table", EXPORT_TABLES)
def test_a_sealed_project_leaves_as_encrypted_files_alone(people: Cast, table: str) -> None:
    encrypted_archives.seal_project(people.project)
    client, body = api_client(people.lead), {"table": table, "format": "csv"}
    answer = client.post(address(people.project), body, content_type="application/json")
    assert (answer.status_code, list(answer.json()["errors"])) == (422, ["encrypt"])
    shown = browser_of(people.lead).post(page(people.project), body)
    assert shown.status_code == 422
    assert (
        "you can only export its texts encrypted. Tick “Encrypt the file”."
        in shown.content.decode()
    )
    encrypted = {**body, "encrypt": True}
    answer = client.post(address(people.project), encrypted, content_type="application/json")
    assert (answer.status_code, answer.json()["encrypt"]) == (201, True)


def test_the_command_is_held_to_it_as_well(people: Cast, tmp_path: Path) -> None:
    encrypted_archives.seal_project(people.project)
    words = {"project": people.project.slug, "format": "csv", "output": tmp_path / "a"}
    with pytest.raises(CommandError, match="Add --encrypt"):
        call_command("export", "items", **words)
    assert not list(tmp_path.iterdir())


def test_what_waited_when_a_project_was_sealed_is_not_written(people: Cast) -> None:
    job = jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv"))
    encrypted_archives.seal_project(Project.objects.get(pk=people.project.pk))
    with pytest.raises(CommandError, match="Tick “Encrypt the file”"):
        call_command("make_export", str(job.pk))
    assert not jobs.get_path(job).exists()


def test_a_project_that_is_sealed_while_its_archive_is_made_gives_no_texts(
    people: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seal(project: Project, revisions: object) -> list[int]:
        encrypted_archives.seal_project(Project.objects.get(pk=project.pk))
        return []

    monkeypatch.setattr(create.stored, "store_missing", seal)
    wanted = create.ArchiveOptions(texts=True)
    with pytest.raises(FieldError, match="encrypted archive"):
        create.write_archive(people.project, [], wanted, io.BytesIO(), lambda *_: None)


def test_an_archive_of_results_of_a_sealed_project_has_no_texts(
    people: Cast, tmp_path: Path
) -> None:
    encrypted_archives.seal_project(people.project)
    words = {"project": people.project.slug, "output": tmp_path / "a.zip", "verbosity": 0}
    for said in ({"with_texts": True}, {"with_replies": True}):
        with pytest.raises(CommandError, match="Leave out texts and replies"):
            call_command("freeze_results", **words, **said)
    call_command("freeze_results", **words)
    there = browser_of(people.lead)
    archives = f"/projects/{people.project.slug}/archives/"
    shown = there.post(archives, {"texts": "on"}, follow=True).content.decode()
    assert "Leave out texts and replies" in shown
    assert not Job.objects.filter(kind="freeze-results").exists()


def test_nor_has_it_long_values_of_imported_fields(people: Cast) -> None:
    said = (
        "The response gives Saturn eight moons, although the question asks for those of Mars alone."
    )
    fields = {"topic": "moons", "note": said, "deep": [{"said": said}], "score": 3}
    make_item(people.project, "b", fields=fields)

    def archived() -> str:
        stream = io.BytesIO()
        wanted = create.ArchiveOptions()
        create.write_archive(people.project, [], wanted, stream, lambda *_: None)
        with zipfile.ZipFile(stream) as archive:
            return b"".join(map(archive.read, archive.namelist())).decode()

    assert "Saturn" in archived()
    # Not the row that is at hand, which was read before.
    encrypted_archives.seal_project(Project.objects.get())
    assert "Saturn" not in archived()
    assert '"topic": "moons"' in archived()


def test_only_a_site_admin_takes_the_seal_off(people: Cast) -> None:
    encrypted_archives.seal_project(people.project)
    change = f"/admin/annotation/project/{people.project.pk}/change/"
    admin = Client()
    admin.force_login(people.admin)
    assert browser_of(people.lead).get(change).status_code == 302
    form = admin.get(change).context["adminform"].form
    fields = {name: form.initial[name] or "" for name in form.fields if name != "sealed"}
    counts = {f"members-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    assert admin.post(change, {**fields, **counts}).status_code == 302
    people.project.refresh_from_db()
    assert not people.project.sealed
    event = Event.objects.filter(kind="settings").first()
    assert event
    assert (event.account, event.old, event.new) == (
        people.admin, {"sealed": True}, {"sealed": False}
    )  # fmt: skip
    made(people.lead)


def locked(path: Path) -> Path:
    """An archive of one row under a password, in the layout that any zip has."""
    with pyzipper.AESZipFile(path, "w", encryption=pyzipper.WZ_AES) as archive:
        archive.setpassword(b"open")
        row = {"key": "z", "category": "spelling", "ability": "long-form", **TEXTS}
        archive.writestr("rows.jsonl", json.dumps(row))
    return path


def imported(project: Project, path: Path, **said: Any) -> None:
    words = {"project": project.slug, **said}
    call_command("import_items", str(path), **words, stdout=io.StringIO(), stderr=io.StringIO())


def test_what_came_encrypted_seals_its_project(people: Cast, tmp_path: Path) -> None:
    path = locked(tmp_path / "a.zip")
    imported(people.project, path, password="open", dry_run=True)
    assert not Project.objects.get().sealed
    imported(people.project, path, password="open")
    assert Project.objects.get().sealed
    assert people.project.items.filter(key="z").exists()
    event = Event.objects.filter(kind="settings").get()
    assert (event.old, event.new) == ({"sealed": False}, {"sealed": True})
    imported(people.project, path, password="open")
    assert Event.objects.filter(kind="settings").count() == 1


def test_what_is_sent_encrypted_in_the_browser_seals_its_project(
    people: Cast, tmp_path: Path
) -> None:
    file = SimpleUploadedFile("a.zip", locked(tmp_path / "a.zip").read_bytes())
    now = timezone.now()
    job = receive.receive_file(people.lead, receive.ItemUpload(file, password="open"), now=now)
    job.refresh_from_db()
    for step in (upload_files.CHECK, upload_files.STORE):
        Job.objects.filter(pk=job.pk).update(result={**job.result, "step": step})
        program.run_import(Job.objects.select_related("project__task_type").get(pk=job.pk))
        assert Project.objects.get().sealed == (step == upload_files.STORE)
    assert Event.objects.filter(kind="settings").get().member == people.lead


def test_an_encrypted_export_comes_back_as_it_was(people: Cast) -> None:
    job = made(people.lead, encrypt=True)
    path, other = jobs.get_path(job), make_project()
    imported(other, path, password=passwords.derive(job.result))
    assert [item.key for item in other.items.all()] == ["a"]
