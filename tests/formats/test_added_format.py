"""CONTRIBUTING's promise: a format is one entry, and the function that it names."""

import re
from collections.abc import Iterable, Sequence
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.models import Item
from formats import readers, writers
from formats.rows import Limits, Row, Rows
from formats.writers import FigureFormat
from tests.builders import make_account

pytestmark = pytest.mark.django_db


def read_words(path: Path, limits: Limits) -> Rows:
    """One item a line: its key, a bar and its prompt."""
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        key, _, prompt = line.partition("|")
        yield Row(
            path.name, number, {"key": key, "prompt": prompt, "gold": "Yes.", "response": "No."}
        )


def write_words(rows: Iterable[dict[str, Any]], columns: Sequence[str], stream: TextIO) -> int:
    found = [" ".join(f"{name}={row.get(name)}" for name in columns) for row in rows]
    stream.write("\n".join(found))
    return len(found)


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of items that were read in an added format."""
    monkeypatch.setitem(readers.READERS, "words", read_words)
    path = tmp_path / "items.txt"
    path.write_text("one|How many?\ntwo|Where?\n")
    told = {"project": "p", "create": True, "task_type": "rating", "format": "words"}
    call_command("import_items", str(path), **told, stdout=StringIO(), stderr=StringIO())


@pytest.mark.usefixtures("read")
def test_an_entry_is_all_that_a_format_to_read_needs() -> None:
    assert [item.key for item in Item.objects.order_by("position")] == ["one", "two"]


@pytest.mark.usefixtures("read")
def test_an_entry_is_all_that_a_format_of_figures_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = FigureFormat(write_words, "text/plain; charset=utf-8", "txt")
    monkeypatch.setitem(writers.FIGURE_FORMATS, "words", words)
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
