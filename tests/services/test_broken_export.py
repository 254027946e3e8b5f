"""An export that finds no room on its disk, made by the program that a worker starts."""

import time
from pathlib import Path
from typing import Any

import pytest

from annotation.jobs import job_queue
from annotation.models import Job
from judging.exporting import jobs
from judging.exporting.rows import ExportRequest
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_items
from tests.services.processes import PATIENCE, database_url

pytestmark = [
    pytest.mark.processes,
    pytest.mark.postgresql,  # of SQLite the database itself would find no room
    pytest.mark.django_db(transaction=True),
]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_that_finds_no_room_ends_and_its_job_says_so(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path, form: str
) -> None:
    """Some seconds: a program starts."""
    project = make_project()
    make_items(project, 1_000)
    settings.VAR_DIR = tmp_path
    monkeypatch.setenv("DATABASE_URL", database_url())
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    monkeypatch.setenv("SECRET_KEY", "x" * 50)
    # A file of more than some 100 kB is one that finds no room.
    narrow, manage = ("/bin/sh", "-c", 'ulimit -f 200; exec "$0" "$@"'), job_queue.manage_command
    monkeypatch.setattr(job_queue, "manage_command", lambda *words: [*narrow, *manage(*words)])
    job = jobs.enqueue(project, make_member(project, "lead"), ExportRequest("items", form))
    ends = time.monotonic() + PATIENCE
    assert not jobs.run_job(job.pk, stopped=lambda: time.monotonic() > ends)
    job.refresh_from_db()
    assert (job.state, job.message) == (
        Job.State.FAILED,
        "CommandError: The file cannot be written: File too large.",
    )
    assert list(jobs.get_path(job).parent.iterdir()) == []
