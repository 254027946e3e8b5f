"""CONTRIBUTING's promise: a format is one entry, and the function that it names."""

import re
from collections.abc import Iterable, Sequence
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from annotation.importing import upload_files
from annotation.models import Item, Job
from formats import readers, writers
from formats.readers import Format
from formats.rows import Limits, Row, Rows
from formats.writers import FigureFormat
from tests.builders import make_account, make_project

pytestmark = pytest.mark.django_db


LINES = "one|How many?\ntwo|Where?\n"
NAMES = ("key", "prompt", "gold", "response")


def read_words(path: Path, limits: Limits) -> Rows:
    """One item a line: its key, a bar and its prompt."""
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        key, _, prompt = line.partition("|")
        yield Row(path.name, number, dict(zip(NAMES, (key, prompt, "Yes.", "No."), strict=True)))


def write_words(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    found = [" ".join(f"{name}={row.get(name)}" for name in columns) for row in rows]
    stream.write("\n".join(found))
    return len(found)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """An added format."""
    monkeypatch.setitem(
        readers.FORMATS, "words", Format(read_words, title="Words", suffixes=(".words",))
    )


@pytest.fixture
def read(words: None, tmp_path: Path) -> None:
    """A project of items that a command read in the added format, which it knew by the suffix."""
    path = tmp_path / "items.words"
    path.write_text(LINES)
    told = {"project": "p", "create": True, "task_type": "rating"}
    call_command("import_items", str(path), **told, stdout=StringIO(), stderr=StringIO())


@pytest.mark.usefixtures("read")
def test_an_entry_is_all_that_a_format_to_read_needs() -> None:
    assert [item.key for item in Item.objects.order_by("position")] == ["one", "two"]


@pytest.mark.usefixtures("words")
def test_the_upload_page_takes_an_added_format() -> None:
    project = make_project("p", task_type="rating")
    admin = Client()
    admin.force_login(make_account("admin", is_superuser=True))
    file = SimpleUploadedFile("items.words", LINES.encode())
    assert admin.post(reverse("imports", args=["p"]), {"file": file}).status_code == 302
    (job,) = Job.objects.filter(project=project)
    assert (job.result["form"], job.result["found"]) == ("words", list(NAMES))
    assert readers.list_titles() == "CSV, TSV, JSON Lines, JSON, Excel (XLSX), Parquet or Words"
    assert ".words" in upload_files.list_suffixes()


@pytest.mark.usefixtures("read")
def test_an_entry_is_all_that_a_format_of_figures_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added = FigureFormat(write_words, "text/plain; charset=utf-8", "txt")
    monkeypatch.setitem(writers.FIGURE_FORMATS, "words", added)
    admin = Client()
    admin.force_login(make_account("admin", is_superuser=True))
    page = admin.get("/projects/p/results/data-set/").content.decode()
    [address] = re.findall(r'href="([^"]*dataset\.words[^"]*)"', page)
    sent = admin.get(unescape(address))
    assert sent["Content-Type"] == "text/plain; charset=utf-8"
    assert sent["Content-Disposition"] == 'attachment; filename="p-dataset.txt"'
    call_command("results", "dataset", project="p", by="", format="words")
    assert capsys.readouterr().out == sent.content.decode()
    assert "n=2 of=label value=None count=2" in sent.content.decode()
