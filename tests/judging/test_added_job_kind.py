"""CONTRIBUTING's promise: a kind of job is one entry, and a function that does it."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from annotation.jobs import job_queue
from annotation.models import Job, Project
from judging.jobs import job_list, worker
from judging.jobs.job_list import JobKind
from tests.builders import make_member
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db

KIND = "count-words"


def count_words(job_id: int, *, stopped: Callable[[], bool]) -> bool:
    with job_queue.hold_lease(job_id, KIND, stopped) as job:
        if job is None:
            return False
        done = {"state": Job.State.FINISHED, "finished_at": timezone.now()}
        job_queue.store_values(job, **done, message=f"{len(job.result['text'].split())} words.")
        return True


def test_an_entry_is_all_that_a_kind_of_job_needs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = JobKind("Count of words", count_words, page="project", of=lambda job: "a text")
    monkeypatch.setitem(job_list.JOB_KINDS, KIND, entry)
    lead = make_member(project, role="lead")
    jobs = [job_queue.enqueue(project, lead, KIND, text="one two three") for _ in range(2)]
    client = Client()
    client.force_login(lead.account)
    client.post(f"/projects/{project.slug}/jobs/{KIND}/2/cancel/")

    [work] = [one for one in worker.list_kinds() if one.name == f"{KIND} job"]
    assert [*work.due(timezone.now())] == [jobs[0].pk]
    work.work(jobs[0].pk)
    assert [*work.due(timezone.now())] == []

    listed = api_client(lead).get(f"/api/v1/projects/{project.slug}/jobs/").json()["results"]
    assert {(one["number"], one["title"], one["state"], one["message"]) for one in listed} == {
        (1, "Count of words", "finished", "3 words."),
        (2, "Count of words", "cancelled", f"Cancelled by {lead.alias}."),
    }
    page = client.get(f"/projects/{project.slug}/jobs/").content.decode()
    assert page.count("Count of words") == 2
    assert "3 words." in page
    client.post(f"/projects/{project.slug}/jobs/{KIND}/2/again/")
    assert [*work.due(timezone.now())] == [jobs[1].pk]
