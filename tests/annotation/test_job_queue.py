"""Jobs that wait for a worker: whose turn it is, for how long, and how they end."""

import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.jobs import job_queue
from annotation.jobs.job_queue import LEASE_TIME
from annotation.jobs.subprocesses import ProgramResult
from annotation.models import Event, Job, Membership, Project
from tests.builders import make_member, make_project

pytestmark = pytest.mark.django_db

KIND = "test"
NOW = timezone.now()


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead", alias="lea")


@pytest.fixture
def job(project: Project, lead: Membership) -> Job:
    return job_queue.enqueue(project, lead, KIND, by="hand")


def again(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_jobs_of_a_kind_are_numbered_in_their_project(project: Project) -> None:
    other = make_project()
    numbers = [
        job_queue.enqueue(of, None, kind).result["number"]
        for of, kind in ((project, KIND), (project, KIND), (project, "other"), (other, KIND))
    ]
    assert numbers == [1, 2, 1, 1]


def test_projects_take_turns_however_many_jobs_one_of_them_asked_for(project: Project) -> None:
    one, two, three = (job_queue.enqueue(project, None, KIND).pk for _ in range(3))
    other = make_project()
    first, second = (job_queue.enqueue(other, None, KIND).pk for _ in range(2))
    assert job_queue.due_job_ids(KIND, NOW) == [one, first, two, second, three]
    for running in (one, two):
        assert job_queue.take_lease(running, KIND, now=NOW)
    assert job_queue.due_job_ids(KIND, NOW) == [first, second, three]
    # The worker is gone: what it did is due again, and counts no more as running.
    assert job_queue.due_job_ids(KIND, NOW + LEASE_TIME) == [one, first, two, second, three]


def test_a_job_is_somebodys_until_the_lease_is_over(job: Job) -> None:
    assert job_queue.due_job_ids(KIND, NOW) == [job.pk]
    assert job_queue.due_job_ids("other", NOW) == []
    taken = job_queue.take_lease(job.pk, KIND, now=NOW)
    assert taken
    assert (taken.state, taken.result["by"]) == (Job.State.RUNNING, "hand")
    ends = NOW + LEASE_TIME
    assert taken.result["until"] == ends.timestamp()
    before = ends - timedelta(seconds=1)
    assert job_queue.due_job_ids(KIND, before) == []
    assert job_queue.take_lease(job.pk, KIND, now=before) is None
    assert job_queue.due_job_ids(KIND, ends) == [job.pk]
    assert job_queue.take_lease(job.pk, KIND, now=ends)


def test_a_lease_that_a_clock_ahead_has_set_holds_nobody_up(job: Job) -> None:
    an_hour_ahead = NOW + timedelta(hours=1)
    assert job_queue.take_lease(job.pk, KIND, now=an_hour_ahead)
    assert job_queue.due_job_ids(KIND, NOW) == [job.pk]
    taken = job_queue.take_lease(job.pk, KIND, now=NOW)
    assert taken
    assert taken.result["until"] == (NOW + LEASE_TIME).timestamp()


@pytest.mark.postgresql
def test_workers_go_by_the_clock_of_the_database_server(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: NOW + timedelta(hours=1))
    taken = job_queue.take_lease(job.pk, KIND)
    assert taken
    assert abs(taken.result["until"] - (NOW + LEASE_TIME).timestamp()) < 3_000


def test_a_job_is_taken_only_as_it_is_asked_for(job: Job) -> None:
    assert job_queue.take_lease(job.pk, "other", now=NOW) is None
    assert job_queue.take_lease(job.pk, KIND, now=NOW, result__by="nobody") is None
    assert job_queue.take_lease(job.pk, KIND, now=NOW, result__by="hand")


def test_a_job_that_ended_is_nobodys(job: Job, lead: Membership) -> None:
    assert job_queue.cancel_job(job, lead)
    assert not job_queue.cancel_job(job, lead)
    found = again(job)
    assert (found.state, found.message) == (Job.State.CANCELLED, "Cancelled by lea.")
    assert found.finished_at
    assert job_queue.due_job_ids(KIND, NOW) == []
    assert job_queue.take_lease(job.pk, KIND) is None
    (event,) = Event.objects.filter(kind="job cancelled")
    assert (event.subject, event.project, event.member) == ("test 1", job.project, lead)


@pytest.mark.parametrize(
    "code, state, message", [(0, "finished", ""), (1, "failed", "Why."), (None, "waiting", "")]
)
def test_how_a_program_ended_is_noted_unless_the_job_was_cancelled(
    job: Job, lead: Membership, code: int | None, state: str, message: str
) -> None:
    ended = ProgramResult(code, "Why.", "")
    assert job_queue.store_outcome(job, ended, made=3)
    found = again(job)
    assert (found.state, found.message) == (state, message)
    assert (found.finished_at is None) == (state == "waiting")
    assert found.result.get("made") == (3 if state == "finished" else None)
    assert found.result["by"] == "hand"
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING, finished_at=None)
    job_queue.cancel_job(job, lead)
    assert not job_queue.store_outcome(job, ended, made=4)
    assert again(job).state == Job.State.CANCELLED


@pytest.mark.parametrize("is_cancelled, is_stopped", [(True, False), (False, True)])
def test_a_program_is_ended_by_who_cancels_its_job_and_when_the_worker_stops(
    job: Job, lead: Membership, is_cancelled: bool, is_stopped: bool
) -> None:
    if is_cancelled:
        job_queue.cancel_job(job, lead)
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert job_queue.run_leased(job, sleep, lambda: is_stopped).code is None


def test_a_worker_that_stood_still_for_longer_than_its_lease_has_lost_the_job(job: Job) -> None:
    late = job_queue.take_lease(job.pk, KIND, now=NOW)
    other = job_queue.take_lease(job.pk, KIND, now=NOW + LEASE_TIME)
    assert late
    assert other
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert job_queue.run_leased(late, sleep, lambda: False).code is None
    job_queue._extend_lease(late)
    assert not job_queue.store_outcome(late, ProgramResult(1, "Why."))
    assert again(job).result == other.result
    job_queue._extend_lease(other)
    assert job_queue.store_outcome(other, ProgramResult(0, ""))


def test_a_program_of_a_job_runs_to_its_end_and_may_tell_something(job: Job) -> None:
    told: list[str] = []
    program = [sys.executable, "-c", "print('said', flush=True); import time; time.sleep(0.3)"]
    ended = job_queue.run_leased(job, program, lambda: False, told.append)
    assert (ended.code, ended.printed) == (0, "said")
