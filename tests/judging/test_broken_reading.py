"""Whoever reads all of a project at one instant and fails half-way ends, and says why."""

import errno
import io
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from annotation.db import snapshot_reads
from annotation.exporting import tables
from annotation.items.snapshots import create as snapshot_freezing
from annotation.jobs import job_queue
from annotation.models import Item, Project
from judging.archive import create
from judging.archive.create import ArchiveOptions
from judging.exporting import jobs
from judging.exporting.rows import ExportRequest
from tests.builders import make_item, make_member, make_project, make_resolution
from tests.config.test_postgresql import end, number_of_this_connection

pytestmark = pytest.mark.django_db(transaction=True)
# A layout that has no place for the second item of three.
UNFIT = "fbi"
# On a machine that is busy with other things; nothing takes as long.
PATIENCE = 120.0


class Full(io.BytesIO):
    """A file on a disk without space."""

    def write(self, *_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def project(settings: Any, tmp_path: Path) -> Project:
    settings.VAR_DIR = tmp_path
    made = make_project()
    for key in ("a", "b", "c"):
        make_resolution(make_item(made, key))
    Item.objects.filter(key="b").update(category="own")
    return made


def export(project: Project, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    wanted = jobs.enqueue(project, make_member(project, "lead"), ExportRequest("items", UNFIT))
    job = job_queue.take_lease(wanted.pk, jobs.KIND)
    assert job
    jobs.write_export(job)


def export_by_command(project: Project, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    call_command("export", "items", project=project.slug, format=UNFIT, output=folder / "items.zip")


def archive(project: Project, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    create.write_archive(project, [], ArchiveOptions(), Full(), lambda name, rows: None)


def snapshot(project: Project, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    full = io.TextIOWrapper(Full(), write_through=True)
    monkeypatch.setattr(snapshot_freezing, "TemporaryFile", lambda *_, **__: full)
    snapshot_freezing.store_contents(snapshot_freezing.enqueue(project, None, "v1"))


def table(project: Project, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with snapshot_reads.consistent_reads():
        rows = tables.item_rows(project)
        for row in rows:
            raise ValueError(row["key"])


def raised_by(work: Callable[[], object]) -> tuple[type[Exception], Any]:
    """The kind of what was raised, and its first word; by a thread with a connection of its own, so
    that one that hangs fails its test."""
    raised: list[tuple[type[Exception], Any]] = []
    numbers: list[int] = []

    def run() -> None:
        if connection.vendor == "postgresql":
            numbers.append(number_of_this_connection())
        try:
            work()
        except Exception as error:
            raised.append((type(error), error.args[0]))
        finally:
            connection.close()

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        for number in numbers:
            end(number)  # or what it has locked would stop all tests behind this one
        pytest.fail("It waits for ever.")
    return raised[0]


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside a transaction"])
@pytest.mark.parametrize("read", [export, export_by_command, archive, snapshot, table])
def test_a_reader_that_fails_half_way_ends_and_says_why(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    read: Callable[..., None],
    inside: bool,
) -> None:
    def work() -> None:
        if inside:
            with transaction.atomic():
                read(project, monkeypatch, tmp_path)
        read(project, monkeypatch, tmp_path)

    [kind, _] = raised_by(work)
    assert kind is (OSError if read in (archive, snapshot) else ValueError)


def test_who_reads_row_by_row_may_ask_the_database_something_meanwhile(project: Project) -> None:
    def work() -> None:
        with snapshot_reads.consistent_reads():
            read = [(row["key"], Item.objects.count()) for row in tables.item_rows(project)]
        raise ValueError(read)

    assert raised_by(work) == (ValueError, [("a", 3), ("b", 3), ("c", 3)])


def test_a_reader_that_failed_leaves_the_transaction_around_it_as_it_was(
    project: Project,
) -> None:
    def work() -> None:
        with transaction.atomic():
            make_item(project, "d")
            try:
                table(project, pytest.MonkeyPatch(), Path())
            except ValueError:
                make_item(project, "e")
        raise ValueError("over")

    raised_by(work)
    assert set(Item.objects.values_list("key", flat=True)) == {*"abcde"}
