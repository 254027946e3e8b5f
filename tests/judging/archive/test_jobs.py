"""Archives that are asked for in the browser, and made by a worker."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from annotation.jobs import job_queue
from annotation.models import Job, Project
from judging.archive import jobs
from judging.jobs import worker
from judging.models import Run
from tests.builders import cast, make_member
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged(project: Project, settings: Any, tmp_path: Path) -> Project:
    settings.VAR_DIR = tmp_path
    items = make_items(project, 2)
    for _ in range(2):
        make_replied(project, "vanilla", zip(items, [scores(9, 5)] * 2, strict=True))
    return project


@pytest.fixture
def lead(judged: Project, client: Client) -> Client:
    member = make_member(judged, role="lead", alias="lena")
    assert member.account
    client.force_login(member.account)
    return client


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run; the program writes a file and ends well."""
    asked = []
    real = jobs._build_command

    def command(job: Job) -> list[str]:
        asked.append(real(job)[3:])
        return ["/bin/sh", "-c", f"printf PK > {jobs.get_path(job)}"]

    monkeypatch.setattr(jobs, "_build_command", command)
    return asked


def test_a_lead_asks_for_an_archive_and_takes_it(lead: Client, frozen: list[list[str]]) -> None:
    assert lead.post("/projects/fbi/archives/", {"run": ["2"], "texts": "on"}).status_code == 302
    job = Job.objects.get(kind=jobs.KIND)
    assert "Waiting for a worker" in lead.get("/projects/fbi/archives/").content.decode()
    assert lead.get("/projects/fbi/archives/1/").status_code == 302
    assert job_queue.due_job_ids(jobs.KIND, timezone.now()) == [job.pk]
    assert jobs.run_job(job.pk)
    path = str(jobs.get_path(job))
    asked = ["-v", "0", "--skip-checks", "--project", "fbi", "--output", path]
    asked += ["--member=lena", "--run", "2", "--with-texts"]
    assert frozen == [asked]
    sent = lead.get("/projects/fbi/archives/1/")
    assert sent.getvalue() == b"PK"
    assert "fbi-results-1.zip" in sent.headers["Content-Disposition"]


def test_without_a_choice_all_shown_runs_go_in(lead: Client, frozen: list[list[str]]) -> None:
    Run.objects.filter(number=1).update(archived_at=timezone.now())
    lead.post("/projects/fbi/archives/")
    assert jobs.run_job(Job.objects.get().pk)
    assert frozen[0][-2:] == ["--run", "2"]


def test_an_archive_is_made_once(lead: Client, frozen: list[list[str]]) -> None:
    lead.post("/projects/fbi/archives/")
    job = Job.objects.get()
    assert jobs.run_job(job.pk)
    assert not jobs.run_job(job.pk)
    assert len(frozen) == 1


def test_what_a_worker_is_at_is_left_to_it_until_it_is_gone(
    lead: Client, frozen: list[list[str]]
) -> None:
    lead.post("/projects/fbi/archives/")
    job = Job.objects.get()
    assert job_queue.take_lease(job.pk, jobs.KIND)
    assert not jobs.run_job(job.pk)
    later = timezone.now() + job_queue.LEASE_TIME + timedelta(seconds=1)
    assert job_queue.due_job_ids(jobs.KIND, later) == [job.pk]


def test_a_stopped_worker_leaves_it_to_the_next(
    lead: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_build_command", lambda job: ["/bin/sleep", "600"])
    lead.post("/projects/fbi/archives/")
    job = Job.objects.get()
    assert not jobs.run_job(job.pk, stopped=lambda: True)
    assert job_queue.due_job_ids(jobs.KIND, timezone.now()) == [job.pk]


def test_a_failure_says_why(lead: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = ["/bin/sh", "-c", "echo 'No space is left.' >&2; exit 1"]
    monkeypatch.setattr(jobs, "_build_command", lambda job: fails)
    lead.post("/projects/fbi/archives/")
    job = Job.objects.get()
    assert not jobs.run_job(job.pk)
    assert job_queue.due_job_ids(jobs.KIND, timezone.now()) == []
    text = lead.get("/projects/fbi/archives/", headers={"HX-Request": "true"}).content.decode()
    assert "Failed: No space is left." in text
    assert "<html" not in text


def test_a_file_that_is_gone_leads_back_to_the_list(lead: Client, frozen: list[list[str]]) -> None:
    lead.post("/projects/fbi/archives/")
    job = Job.objects.get()
    jobs.run_job(job.pk)
    jobs.get_path(job).unlink()
    assert lead.get("/projects/fbi/archives/1/").status_code == 302


def test_archives_of_projects_are_counted_apart_and_only_their_own_are_given(
    lead: Client, frozen: list[list[str]]
) -> None:
    people = cast()
    mine = jobs.enqueue(people.project, people.lead, jobs.ArchiveRequest([]))
    assert mine.result["number"] == 1
    jobs.run_job(mine.pk)
    assert lead.get("/projects/fbi/archives/1/").status_code == 302


def test_every_worker_looks_for_archives() -> None:
    assert "freeze-results job" in {kind.name for kind in worker.list_kinds()}
