"""`manage.py` as a process, whose output somebody may stop reading."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from manage import explain_database

ROOT = Path(__file__).resolve().parents[1]


# One writes more than a pipe holds, one less than Python's buffer.
@pytest.mark.parametrize("words", [["spectacular"], ["version"]])
def test_output_that_nobody_reads_to_its_end_ends_the_command_quietly(words: list[str]) -> None:
    """Six seconds for the description of the API, which a program of its own makes."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    complaints = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(), complaints) == (141, "")


def test_a_command_on_a_database_without_tables_says_to_migrate_first(tmp_path: Path) -> None:
    """Some seconds for a program of its own."""
    done = subprocess.run(
        [sys.executable, "manage.py", "results", "undetected", "--project", "x"],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path / 'empty.sqlite3'}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "The database lacks tables or columns. Run `python manage.py migrate` first.\n",
    )


def test_without_its_database_a_command_says_what_to_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise OperationalError("connection refused\n\tIs the server running?")

    monkeypatch.setattr(connection, "ensure_connection", fail)
    said = "The database cannot be used: connection refused. Check DATABASE_URL."
    assert explain_database() == said


def test_a_python_without_the_packages_is_told_where_they_are() -> None:
    words = [sys.executable, "-S", "manage.py", "check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Django is not installed for this Python.")
    assert ".venv/bin/python manage.py" in done.stderr
