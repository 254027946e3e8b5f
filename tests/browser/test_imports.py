"""Somebody imports a file of their own and mends three rows, by what the pages say alone."""

import csv
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.importing import jobs, upload_files
from annotation.models import Item, Job, Membership, Role
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import TEXTS, make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
HEADER = ["Ours", "Error type", "question", "Reference answer", "Changed answer", "weight"]
CELLS = ["entity", TEXTS["prompt"], TEXTS["gold"], TEXTS["perturbed"], "3"]


@pytest.fixture
def lead(settings: Any, tmp_path: Path) -> Membership:
    settings.VAR_DIR = tmp_path
    return make_member(make_project(), role=Role.LEAD, alias="lead")


@pytest.fixture
def worker(in_this_program: None) -> Iterator[None]:
    """A worker in a thread, whose programs run in it, where the test's database is."""
    stopped = threading.Event()

    def look() -> None:
        while not stopped.is_set():
            for pk in jobs.due_job_ids(timezone.now()):
                jobs.run_job(pk)
            time.sleep(0.1)
        connections.close_all()

    thread = threading.Thread(target=look)
    thread.start()
    yield
    stopped.set()
    thread.join()


def table(path: Path, rows: list[list[str]], header: list[str] = HEADER) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def send(page: Page, path: Path) -> None:
    page.set_input_files("[name=file]", path)
    page.click("button:text('Upload file')")
    page.wait_for_selector("#state")


def test_somebody_imports_a_file_with_other_names_and_mends_three_rows(
    open_page: OpenPage, lead: Membership, worker: None, tmp_path: Path
) -> None:
    """Six seconds: a worker imports two files, and the page looks every second."""
    good = [[f"k{number}", *CELLS] for number in range(20)]
    bad = [["k20", "entitty", *CELLS[1:]], ["", *CELLS], ["k22", CELLS[0], "", *CELLS[2:]]]
    page = open_page(lead.account, reverse("project", args=[lead.project.slug]))
    page.click("text=Import items")
    send(page, table(tmp_path / "mine.csv", [*good, *bad]))
    page.wait_for_selector("text=Choose the columns")
    page.select_option("[name=columns-of-key]", "Ours")
    page.click("button:text('Check the file')")
    page.click("button:text('Import 20 items')")
    page.wait_for_selector("#state h2:text-is('Imported')")
    assert page.locator("#state tbody tr").count() == 3
    with page.expect_download() as started:
        page.click("text=Download the rows to correct")
    with Path(started.value.path()).open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert rows == bad
    rows[0][1], rows[1][0], rows[2][2] = "entity", "k21", TEXTS["prompt"]
    page.click("text=upload the corrected file")
    send(page, table(tmp_path / started.value.suggested_filename, rows, header))
    page.click("button:text('Import 3 items')")
    page.wait_for_selector("#state h2:text-is('Imported')")
    page.click("text=See the items")
    page.wait_for_selector("text=k21")
    assert Item.objects.filter(project=lead.project).count() == 23


def test_it_works_without_a_script(
    open_page: OpenPage, lead: Membership, worker: None, tmp_path: Path
) -> None:
    address = reverse("imports", args=[lead.project.slug])
    page = open_page(lead.account, address, java_script_enabled=False)
    send(page, table(tmp_path / "mine.csv", [["a", *CELLS]], ["key", *HEADER[1:]]))
    page.click("text=Import 1 item")
    for _ in range(50):
        if page.locator("text=See the items").count():
            break
        page.wait_for_timeout(200)
        page.reload()
    assert Item.objects.filter(project=lead.project).count() == 1


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_imports(
    open_page: OpenPage, lead: Membership, tmp_path: Path, width: int, scheme: str
) -> None:
    address = reverse("imports", args=[lead.project.slug])
    page = open_page(lead.account, address, **look(width, scheme))
    checked(page)
    rows = [["a", *CELLS], ["b" * 150, *CELLS], ["c", "none", *CELLS[1:]]]
    send(page, table(tmp_path / f"{'a-long-name-' * 9}.csv", rows))
    checked(page)
    page.select_option("[name=columns-of-key]", "Ours")
    page.click("button:text('Check the file')")
    page.wait_for_selector("text=Preview of the import")
    checked(page)
    page.click("text=Optional columns")
    checked(page)
    page.click("button:text('Import 2 items')")
    page.wait_for_selector("text=Waiting for a worker")
    checked(page)
    page.click("button:text('Cancel')")
    page.wait_for_selector("text=Cancelled by lead")
    checked(page)
    page.goto(address)
    checked(page)


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["wide", "narrow"])
def test_who_waits_for_an_import_reads_how_far_it_is(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    member = make_member(make_project())
    job = Job.objects.create(
        project=member.project,
        kind=jobs.JOB_KIND,
        state=Job.State.RUNNING,
        done=3_000,
        total=14_000,
        result={"number": 1, "step": upload_files.STORE},
    )
    viewport = {"width": size[0], "height": size[1]}
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, viewport=viewport)
    waiting = page.locator("#panel .empty")
    expect(waiting).to_contain_text("An import is under way")
    expect(waiting).to_contain_text("3,000 of 14,000 rows are read.")
    checked(page)
    Job.objects.filter(pk=job.pk).update(state=Job.State.FINISHED, finished_at=timezone.now())
    make_item(member.project, "item-01")
    page.click("text=Check again")
    page.wait_for_selector('#panel[data-item="item-01"]')
