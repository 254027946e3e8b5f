"""Endpoints in the browser: set up by form, tested by a button, nothing for axe to find."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Membership, Project
from judging.models import Endpoint
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_account, make_member, make_project
from tests.judging.builders_judging import make_endpoint, make_items, make_run
from tests.services.scripted_evaluator import Script, running

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LEFT = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-tokens": "149984",
}


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, role="researcher")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_an_endpoint_is_set_up_and_answers(
    open_page: OpenPage, settings: Any, width: int, scheme: str
) -> None:
    settings.EVALUATOR_HOSTS = ["127.0.0.1"]
    boss = make_account("boss", is_superuser=True)
    with running(Script(headers=LEFT)) as evaluator:
        page = open_page(boss, "/endpoints/new/", **look(width, scheme))
        page.get_by_label("Name", exact=True).fill("judge")
        page.get_by_label("Address").fill("http://10.0.0.7/v1")
        page.get_by_label("Model").fill("o4-mini")
        expect(page.get_by_text("Known family: OpenAI o-series.")).to_be_visible()
        page.get_by_label("Model").fill("judge-1")
        expect(page.get_by_text("Nothing is known of this model")).to_be_visible()
        page.get_by_label("Price per million input tokens").fill("2.50")
        page.get_by_label("Price per million output tokens").fill("10")
        page.get_by_role("button", name="Save endpoint").click()
        expect(page.get_by_role("alert")).to_contain_text("EVALUATOR_HOSTS")
        checked(page)
        page.get_by_label("Address").fill(evaluator.address)
        page.get_by_role("button", name="Save endpoint").click()
        expect(page.get_by_role("status").first).to_contain_text("Endpoint judge saved.")
        page.get_by_role("button", name="Send a test call").click()
        expect(page.get_by_text("The endpoint works.")).to_be_visible()
        expect(page.get_by_role("row", name="tokens")).to_contain_text("149,984")
        checked(page)


def test_a_researcher_follows_the_link_from_the_runs(
    open_page: OpenPage, project: Project, member: Membership
) -> None:
    make_items(project, 1)
    endpoint = make_endpoint("https://evaluator.example/v1", key_variable="OUR_API_KEY")
    make_run(project, endpoint)
    page: Page = open_page(member.account, "/projects/fbi/runs/")
    page.get_by_role("link", name="Endpoints", exact=True).click()
    expect(page.get_by_role("row", name=endpoint.name)).to_contain_text("not set")
    checked(page)
    page.get_by_role("link", name=endpoint.name).click()
    page.get_by_role("button", name="Send a test call").click()
    expect(page.get_by_role("alert")).to_contain_text("OUR_API_KEY is not set")
    checked(page)


def test_what_runs_rest_on_cannot_be_edited(open_page: OpenPage, project: Project) -> None:
    make_items(project, 1)
    endpoint: Endpoint = make_endpoint("https://evaluator.example/v1")
    make_run(project, endpoint)
    boss = make_account("boss", is_superuser=True)
    page = open_page(boss, f"/endpoints/{endpoint.name}/edit/")
    expect(page.get_by_role("region", name="Fixed settings")).to_contain_text(endpoint.model)
    expect(page.get_by_label("Model")).to_have_count(0)
    expect(page.get_by_label("Timeout (seconds)")).to_be_enabled()
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_ratings_of_recorded_replies_are_entered_and_removed(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    Endpoint.objects.create(name="published", provider="recorded", model="gemma-7b-it")
    boss = make_account("boss", is_superuser=True)
    page = open_page(boss, "/endpoints/published/", **look(width, scheme))
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Timeout (seconds)")).to_have_count(0)
    page.get_by_label("Name of rating 1").fill("Elo")
    page.get_by_label("Value of rating 1").fill("high")
    page.get_by_label("Source of rating 1").fill("LMSYS")
    page.get_by_label("Date of rating 1").fill("2024-03-16")
    page.get_by_role("button", name="Save endpoint").click()
    expect(page.get_by_role("alert")).to_contain_text("Enter the value as a number")
    page.get_by_role("alert").get_by_role("link").click()
    expect(page.get_by_label("Name of rating 1")).to_be_focused()
    checked(page)
    page.get_by_label("Value of rating 1").fill("1029")
    page.get_by_role("button", name="Save endpoint").click()
    expect(page.get_by_role("row", name="Elo")).to_contain_text("16 Mar 2024")
    checked(page)
    page.get_by_role("link", name="Edit").click()
    for part in ("Name", "Value", "Source", "Date"):
        page.get_by_label(f"{part} of rating 1").fill("")
    page.get_by_role("button", name="Save endpoint").click()
    expect(page.get_by_role("status").first).to_contain_text("Endpoint published saved.")
    expect(page.get_by_text("Outside ratings")).to_have_count(0)
