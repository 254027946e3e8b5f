"""The page of jobs in a browser: nothing for axe, refreshed by itself, steered by a press."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from annotation.importing import upload_files
from annotation.models import Job, Membership
from judging.evaluators.providers.errors import Rejected
from judging.exporting import jobs
from judging.exporting.jobs import ExportRequest
from judging.runs import lifecycle
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project
from tests.judging.builders_judging import answer, fail, make_endpoint, make_items, make_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project(), role="lead")


def make_import(lead: Membership, **values: object) -> Job:
    told = {"number": 1, "name": "items.csv", "step": upload_files.STORE, "deleted": False}
    return Job.objects.create(
        project=lead.project, kind="import", member=lead, result=told, **values
    )


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_page_of_jobs_full_and_empty(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    address = reverse("jobs", args=[lead.project.slug])
    page = open_page(lead.account, address, **look(width, scheme))
    checked(page)
    make_import(lead, state="running", done=40, total=90)
    jobs.enqueue(lead.project, lead, ExportRequest("items", "csv"))
    failed = jobs.enqueue(lead.project, lead, ExportRequest("labels", "csv"))
    ended = {"state": "failed", "finished_at": timezone.now(), "message": "The disk is full."}
    Job.objects.filter(pk=failed.pk).update(**ended)
    page.reload()
    expect(page.get_by_role("button", name="Retry export 2")).to_be_visible()
    checked(page)


def test_it_follows_what_is_under_way_and_ends_it_by_a_press(
    open_page: OpenPage, lead: Membership
) -> None:
    job = make_import(lead, state="running", done=40, total=90)
    page = open_page(lead.account, reverse("jobs", args=[lead.project.slug]))
    expect(page.get_by_text("40 of 90")).to_be_visible()
    Job.objects.filter(pk=job.pk).update(done=60)
    expect(page.get_by_text("60 of 90")).to_be_visible()
    page.get_by_role("button", name="Cancel import 1").click()
    expect(page.get_by_text(f"Cancelled by {lead.alias}.")).to_be_visible()


@pytest.mark.parametrize("width, height", [(1280, 720), (390, 844)])
def test_a_retry_of_a_run_stands_only_where_a_request_failed(
    open_page: OpenPage, lead: Membership, width: int, height: int
) -> None:
    make_items(lead.project, 1)
    cut, failed = (make_run(lead.project, make_endpoint("http://127.0.0.1:9/v1")) for _ in range(2))
    for run in (cut, failed):
        lifecycle.plan_calls(run)
    answer(cut, finish="length")
    fail(failed, Rejected("The provider answered 400: no"))
    for run in (cut, failed):
        lifecycle.finish_if_done(run)
    page = open_page(
        lead.account,
        reverse("jobs", args=[lead.project.slug]),
        viewport={"width": width, "height": height},
    )
    expect(page.get_by_role("row", name="Run 1")).to_contain_text("1 of 1")
    expect(page.get_by_role("button", name="Retry run 1")).to_have_count(0)
    checked(page)
    page.get_by_role("button", name="Retry run 2").click()
    expect(page.get_by_text("Failed requests of run 2 are sent again.")).to_be_visible()
    expect(page.locator("#progress [role=status]")).to_have_text("running")


def test_the_title_of_a_tab_that_nobody_looks_at_says_that_a_job_is_ready(
    open_page: OpenPage, lead: Membership
) -> None:
    job = make_import(lead, state="running", done=40, total=90)
    page = open_page(lead.account, reverse("jobs", args=[lead.project.slug]))
    expect(page.get_by_text("40 of 90")).to_be_visible()
    title = page.title()
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    Job.objects.filter(pk=job.pk).update(done=60)
    expect(page.get_by_text("60 of 90")).to_be_visible()
    assert page.title() == title
    Job.objects.filter(pk=job.pk).update(state="finished", finished_at=timezone.now())
    expect(page).to_have_title(f"✓ {title}")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).to_have_title(title)
