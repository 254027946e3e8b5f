"""What a worker holds is given back at once when it loses its connection to the database."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from annotation.db import clock, transactions
from annotation.generation import perturber_jobs
from annotation.importing import jobs as imports
from annotation.items.snapshots import create
from annotation.jobs import job_queue
from annotation.labelling import assignment
from annotation.models import Job, Project
from annotation.settings import project_settings
from judging.archive import jobs as archives
from judging.exporting import jobs
from judging.generation import bring_in
from judging.models import StoredFigure
from judging.results import cache
from judging.runs import lifecycle
from judging.runs.engine import ask, lease
from tests.builders import make_project
from tests.config.test_postgresql import cut
from tests.judging.builders_judging import make_endpoint, make_items, make_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

NOBODY = "http://127.0.0.1:1/v1"
# The kinds that are done by a program of its own, and what a job of each asks for.
KINDS: dict[str, tuple[Callable[..., bool], dict[str, Any]]] = {
    jobs.KIND: (jobs.run_job, {}),
    archives.KIND: (archives.run_job, {"runs": [], "texts": False, "replies": False}),
    create.JOB_KIND: (create.run_job, {}),
    imports.JOB_KIND: (imports.run_job, {"step": "store", "expires": 1e12}),
    perturber_jobs.JOB_KIND: (perturber_jobs.run_job, {}),
    bring_in.KIND: (bring_in.run_job, {}),
}


def waits(job: Job) -> bool:
    """Whether a worker may take the job now; asked by a connection that is not the lost one."""
    connection.close()
    return Job.objects.filter(job_queue.free_jobs_filter(timezone.now()), pk=job.pk).exists()


def cut_once() -> Callable[[], bool]:
    """Is asked whether to stop, and has the connection cut the first time."""
    left = [cut]

    def stopped() -> bool:
        while left:
            left.pop()()
        return False

    return stopped


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_given_back_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(
        job_queue, "manage_command", lambda *words: ["/bin/sh", "-c", "exec sleep 600"]
    )
    work, asked = KINDS[kind]
    job = job_queue.enqueue(project, None, kind, **asked)
    with pytest.raises(OperationalError):
        work(job.pk, stopped=cut_once())
    assert waits(job)


def test_a_change_of_settings_is_given_back_at_once_where_it_was(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_line(*_: Any, **__: Any) -> Iterator[assignment.ResizeStep]:
        cut()
        yield assignment.ResizeStep(Project.objects.count(), 1)

    monkeypatch.setattr(assignment, "resize_items", in_line)
    job = Job.objects.create(project=project, kind=project_settings.RESIZE_JOB, result={"after": 7})
    with pytest.raises(OperationalError):
        project_settings.run_job(job.pk)
    assert waits(job)
    assert Job.objects.get().result["after"] == 7


def test_a_job_that_another_worker_has_by_now_is_left_to_it(project: Project) -> None:
    job = job_queue.enqueue(project, None, jobs.KIND)

    def lose() -> None:
        with job_queue.hold_lease(job.pk, jobs.KIND):
            assert job_queue.take_lease(
                job.pk, jobs.KIND, now=timezone.now() + job_queue.LEASE_TIME
            )
            cut()
            Job.objects.count()

    with pytest.raises(OperationalError):
        lose()
    assert not waits(job)


def test_another_error_lets_a_job_rest_until_its_lease_is_over(project: Project) -> None:
    job = job_queue.enqueue(project, None, jobs.KIND)
    with pytest.raises(OperationalError), job_queue.hold_lease(job.pk, jobs.KIND):
        raise OperationalError("disk full")
    assert not waits(job)


def test_a_table_of_figures_is_given_back_at_once(project: Project) -> None:
    wish = cache.CacheKey(project, "undetected", (), ())
    figure = cache.enqueue(wish, timezone.now())

    def make(wish: cache.CacheKey) -> tuple[str, list[dict[str, Any]]]:
        cut()
        return "state", [{"n": Project.objects.count()}]

    with pytest.raises(OperationalError):
        cache.run_job(figure.pk, make)
    connection.close()
    assert cache.list_due(timezone.now()) == [figure.pk]
    assert StoredFigure.objects.get().failure == ""


def test_an_endpoint_and_its_planning_are_given_back_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_items(project, 1)
    run = make_run(project, make_endpoint(NOBODY))

    def plan(*_: Any, **__: Any) -> None:
        cut()
        Project.objects.count()

    monkeypatch.setattr(lifecycle, "plan_calls", plan)
    with pytest.raises(OperationalError):
        ask.run_slice(run.endpoint_id)
    connection.close()
    assert lease.acquire_endpoint(run.endpoint_id, "other", clock.now())
    assert lease.acquire_planning(run.endpoint_id, "other", clock.now())


def test_a_database_that_is_away_for_a_while_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, tries = connection.settings_dict["PORT"], list[float]()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")

    def sleep(seconds: float) -> None:
        tries.append(seconds)
        if len(tries) == 3:
            connection.settings_dict["PORT"] = port

    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=sleep))
    transactions.retry_with_new_connection(lambda: make_project("later"), patience=60)
    assert len(tries) == 3
    assert Project.objects.get().slug == "later"


def test_a_worker_that_is_to_stop_does_not_wait_for_a_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = connection.settings_dict["PORT"]
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    monkeypatch.setattr(transactions, "time", SimpleNamespace(monotonic=lambda: 0.0))
    with pytest.raises(OperationalError):
        transactions.retry_with_new_connection(
            Project.objects.count, patience=60, stopped=lambda: True
        )
    connection.settings_dict["PORT"] = port
