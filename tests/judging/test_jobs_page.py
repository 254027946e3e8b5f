"""The page of jobs: everything that takes long, for who may see it, with what can be done."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotation.importing import upload_files
from annotation.models import Event, Job
from judging.evaluators.providers.errors import Rejected
from judging.exporting import jobs
from judging.exporting.jobs import ExportRequest
from judging.jobs import job_list
from judging.models import Run
from judging.runs import lifecycle
from tests.builders import (
    Cast,
    browser_of,
    cast,
    make_item,
    make_member,
    make_project,
    make_resolution,
)
from tests.judging.builders_judging import answer, api_client, fail, make_endpoint, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> Cast:
    people = cast()
    make_resolution(make_item(people.project, "a"))
    return people


def browser(people: Cast, name: str) -> Client:
    return browser_of(people.account(name))


def address(people: Cast, rest: str = "") -> str:
    return f"/projects/{people.project.slug}/jobs/{rest}"


def make_job(people: Cast, kind: str, **values: Any) -> Job:
    told = {"number": Job.objects.filter(kind=kind).count() + 1, **values.pop("result", {})}
    return Job.objects.create(
        project=people.project, kind=kind, member=people.lead, result=told, **values
    )


def make_import(people: Cast, step: str, **values: Any) -> Job:
    told = {"name": "items.csv", "step": step, "deleted": False}
    return make_job(people, "import", result=told | values.pop("result", {}), **values)


def entries(people: Cast, name: str) -> list[job_list.JobListEntry]:
    member = getattr(people, name)
    return job_list.build_entries(list(job_list.list_visible(member)), member)


def test_jobs_and_runs_stand_in_one_list_the_last_first(people: Cast) -> None:
    first = make_import(people, upload_files.STORE)
    run = make_run(people.project)
    last = jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv"))
    now = timezone.now()
    Job.objects.filter(pk=first.pk).update(created_at=now - timedelta(hours=2))
    Run.objects.filter(pk=run.pk).update(created_at=now - timedelta(hours=1))
    Job.objects.filter(pk=last.pk).update(created_at=now)
    assert [one.title for one in entries(people, "lead")] == ["Export", "Run", "Import"]


def test_a_line_says_what_how_far_by_whom_and_how_it_ended(people: Cast) -> None:
    make_import(people, upload_files.STORE, state="running", done=1200, total=5000)
    make_job(people, "freeze-results", state="failed", message="The disk is full.")
    page = browser(people, "lead").get(address(people)).content.decode()
    assert "items.csv" in page
    assert "1,200 of 5,000" in page
    assert "The disk is full." in page
    assert f"by {people.lead.alias}" in page


@pytest.mark.parametrize(
    "counted, shown",
    [
        ({"done": 0, "total": None}, (None, None)),
        ({"done": 3, "total": None}, (3, None)),
        ({"done": 0, "total": 5}, (0, 5)),
        ({"done": 3, "total": 5}, (3, 5)),
    ],
)
def test_how_far_a_job_is_stands_there_once_there_is_something_to_count(
    people: Cast, counted: dict[str, Any], shown: tuple[int | None, int | None]
) -> None:
    make_import(people, upload_files.STORE, **counted)
    (line,) = entries(people, "lead")
    assert (line.done, line.total) == shown


@pytest.mark.parametrize(
    "result, finished, can",
    [({}, False, True), ({}, True, False), ({"number": None}, False, False)],
)
def test_a_job_with_a_number_can_be_cancelled_until_it_ends(
    people: Cast, result: dict[str, Any], finished: bool, can: bool
) -> None:
    ended = {"state": "finished", "finished_at": timezone.now()} if finished else {}
    make_import(people, upload_files.STORE, result=result, **ended)
    (line,) = entries(people, "lead")
    assert (line.can_cancel, line.can_again) == (can, False)


def test_a_researcher_sees_runs_and_exports_of_results_alone(people: Cast) -> None:
    make_import(people, upload_files.STORE)
    make_job(people, "freeze-results")
    make_job(people, "something-new")
    jobs.enqueue(people.project, people.lead, ExportRequest("labels", "csv"))
    jobs.enqueue(people.project, people.lead, ExportRequest("outcomes", "csv"))
    make_run(people.project)
    seen = {one.title: one.of for one in entries(people, "researcher")}
    assert (sorted(seen), seen["Export"]) == (["Export", "Run"], "outcomes, csv")
    assert len(entries(people, "lead")) == 6


def test_a_job_of_another_project_is_neither_seen_nor_steered(people: Cast) -> None:
    export = jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv"))
    Job.objects.filter(pk=export.pk).update(result=export.result | {"number": 7})
    other = make_member(make_project(), role="lead")
    assert job_list.find_job(people.lead, "export", 7)
    assert job_list.find_job(other, "export", 7) is None
    assert list(job_list.list_visible(other)) == []


def test_who_may_cancels_and_the_line_says_who_did(people: Cast) -> None:
    job = jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv"))
    answer = browser(people, "lead").post(address(people, "export/1/cancel/"), follow=True)
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert f"Cancelled by {people.lead.alias}." in answer.content.decode()


def test_who_does_not_see_a_job_cannot_steer_it(people: Cast) -> None:
    job = jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv"))
    answer = browser(people, "researcher").post(address(people, "export/1/cancel/"), follow=True)
    job.refresh_from_db()
    assert job.state == "waiting"
    assert "This job can no longer be changed" in answer.content.decode()


def test_what_failed_is_done_again_from_its_start_and_that_is_on_record(people: Cast) -> None:
    job = jobs.enqueue(people.project, people.lead, ExportRequest("items", "csv"))
    Job.objects.filter(pk=job.pk).update(
        state="failed",
        finished_at=timezone.now(),
        message="No room.",
        done=5,
        result=job.result | {"until": 1.0},
    )
    browser(people, "lead").post(address(people, "export/1/again/"))
    job.refresh_from_db()
    assert (job.state, job.message, job.done, job.finished_at) == ("waiting", "", 0, None)
    assert "until" not in job.result
    assert job.pk in jobs.due_job_ids(timezone.now())
    assert Event.objects.filter(kind=job_list.RERUN_EVENT, subject="export 1").count() == 1


@pytest.mark.parametrize("state", ["waiting", "running", "finished"])
def test_what_did_not_fail_is_not_done_again(people: Cast, state: str) -> None:
    job = make_job(people, "freeze-results", state=state)
    assert not job_list.rerun_job(job, people.lead)
    assert not entries(people, "lead")[0].can_again
    job.refresh_from_db()
    assert job.state == state


def test_an_import_whose_file_is_gone_cannot_be_done_again(people: Cast) -> None:
    there = make_import(people, upload_files.STORE, state="failed")
    gone = make_import(people, upload_files.STORE, state="failed", result={"deleted": True})
    assert not job_list.rerun_job(gone, people.lead)
    assert job_list.rerun_job(there, people.lead)


def test_an_import_that_waits_for_a_person_says_so_and_keeps_no_page_busy(people: Cast) -> None:
    make_import(people, upload_files.READY)
    page = browser(people, "lead").get(address(people)).content.decode()
    assert "waiting for your choice" in page
    assert "every 2s" not in page


def test_a_page_with_something_under_way_asks_for_its_table_alone(people: Cast) -> None:
    make_import(people, upload_files.STORE, state="running")
    client = browser(people, "lead")
    assert "every 2s" in client.get(address(people)).content.decode()
    part = client.get(address(people), headers={"hx-request": "true"}).content.decode()
    assert part.lstrip().startswith('<section class="sheet" id="jobs"')


def test_an_empty_project_says_what_would_be_here(people: Cast) -> None:
    page = browser(people, "lead").get(address(people)).content.decode()
    assert "appear here with their progress" in page


def test_a_kind_that_nobody_named_is_for_leads_and_can_be_cancelled(people: Cast) -> None:
    job = make_job(people, "something-new")
    [entry] = entries(people, "lead")
    assert (entry.title, entry.can_cancel) == ("Something new", True)
    assert job_list.cancel_job(job, people.lead)


def ended(people: Cast, *, failed: bool) -> Run:
    """A run over one item, which is missing: its request failed, or its reply was cut off."""
    endpoint = make_endpoint("http://127.0.0.1:9/v1")
    run = make_run(people.project, endpoint, while_labelling=True)
    lifecycle.plan_calls(run)
    if failed:
        fail(run, Rejected("no"))
    else:
        answer(run, finish="length")
    lifecycle.finish_if_done(run)
    return run


@pytest.mark.parametrize("failed", [True, False])
def test_a_retry_stands_where_something_failed_and_nowhere_else(people: Cast, failed: bool) -> None:
    run = ended(people, failed=failed)
    client, here = browser(people, "lead"), f"/projects/{people.project.slug}/runs/{run.number}/"
    assert [one.can_again for one in entries(people, "lead")] == [failed]
    assert ("Retry run 1" in client.get(address(people)).content.decode()) == failed
    assert ("Retry failed requests" in client.get(here).content.decode()) == failed
    told = api_client(people.lead).get(f"/api/v1{address(people)}").json()["results"]
    assert [one["can_again"] for one in told] == [failed]
    sent = client.post(here + "retry/", follow=True)
    assert sent.status_code == (200 if failed else 422)
    said = "are sent again" if failed else "This run has no failed requests."
    assert said in sent.content.decode()
    run.refresh_from_db()
    assert run.state == ("running" if failed else "finished")


def test_what_another_run_s_retry_mended_is_taken_over_and_not_called_asked_again(
    people: Cast,
) -> None:
    run = ended(people, failed=True)
    other = make_run(people.project, run.endpoint, while_labelling=True)
    lifecycle.plan_calls(other)
    answer(other)
    lifecycle.finish_if_done(other)
    found = {one.number: one.can_again for one in entries(people, "lead")}
    assert found == {run.number: True, other.number: False}
    here = f"/projects/{people.project.slug}/runs/{run.number}/"
    page = browser(people, "lead").post(here + "retry/", follow=True).content.decode()
    assert "Run 1 is updated from another run&#x27;s retry." in page
    assert not any(one.can_again for one in entries(people, "lead"))


@pytest.mark.parametrize("state", ["planning", "cancelled"])
def test_a_run_that_nobody_works_on_any_more_is_not_retried(people: Cast, state: str) -> None:
    run = ended(people, failed=True)
    Run.objects.filter(pk=run.pk).update(state=state)
    assert not entries(people, "lead")[0].can_again


def test_a_page_costs_the_same_queries_however_much_it_lists(
    people: Cast, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(20):
        make_import(people, upload_files.STORE)
        make_run(people.project)
    with django_assert_max_num_queries(9):
        assert len(entries(people, "lead")) == 40


def test_what_a_file_is_called_stands_there_as_text(people: Cast) -> None:
    make_import(people, upload_files.STORE, result={"name": "<script>alert(1)</script>\u202e.csv"})
    page = browser(people, "lead").get(address(people)).content.decode()
    assert "<script>alert(1)" not in page
