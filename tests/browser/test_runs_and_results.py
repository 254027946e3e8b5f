"""Runs and results in the browser: nothing for axe to find, charts drawn, progress followed."""

from decimal import Decimal

import pytest
from django.urls import reverse
from playwright.sync_api import Locator, Page, expect

from annotation.models import Membership, Project
from judging.evaluators.providers.errors import Rejected
from judging.models import Run
from judging.runs import lifecycle
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project
from tests.judging.builders_judging import (
    answer,
    fail,
    make_endpoint,
    make_items,
    make_judged,
    make_run,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, role="researcher")


def address(name: str, *args: object) -> str:
    return reverse(name, args=["fbi", *args])


def judged(project: Project) -> Run:
    """A run with missed errors, false alarms and missing items."""
    items = make_items(project, 4)
    items += make_items(
        project, 3, "score-invariant", category="score-invariant", ability="score-invariant"
    )
    said = ["detected", "undetected", "undetected", "missing", "detected", "undetected", "missing"]
    return make_judged(project, zip(items, said, strict=True))


def planned(project: Project) -> Run:
    make_items(project, 4)
    run = make_run(project, make_endpoint("http://127.0.0.1:9/v1"))
    lifecycle.plan_calls(run)
    return run


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_results_and_their_chart(
    open_page: OpenPage, project: Project, member: Membership, width: int, scheme: str
) -> None:
    judged(project)
    judged(project)
    path = f"{address('results-page', 'overview')}?run=1&run=2"
    page = open_page(member.account, path, **look(width, scheme))
    # Two runs, two groups: four dots, each with an interval.
    expect(
        page.locator("[data-chart] .mark-symbol path[aria-roledescription=point]")
    ).to_have_count(4)
    checked(page)
    page.click("text=Undetected")
    page.wait_for_selector("[data-chart] svg")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_pages_of_a_run(
    open_page: OpenPage, project: Project, member: Membership, width: int, scheme: str
) -> None:
    run = planned(project)
    answer(run, number=2)
    fail(run, Rejected("The provider answered 400: no"), number=1)
    page = open_page(member.account, address("run", 1), **look(width, scheme))
    for path in (
        address("run", 1),
        address("run-item", 1, "item-1"),
        address("run-cancel", 1),
        address("runs"),
        address("run-new"),
    ):
        page.goto(path)
        checked(page)
    page.locator("summary", has_text="Pairs").click()
    page.locator("[name=strategy][value=pairwise]").check()
    page.locator("[name=endpoint][value=baseline]").check()
    page.get_by_role("button", name="Estimate").click()
    page.wait_for_selector(".notice[data-kind=error]")
    checked(page)


def test_a_note_that_is_not_saved_outlives_the_end_of_its_run(
    open_page: OpenPage, project: Project, member: Membership
) -> None:
    """The page of a run loads itself anew once the run has ended."""
    run = planned(project)
    page = open_page(member.account, address("run", 1))
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.locator("summary", has_text="name, tags, note").click()
    page.locator("#id_note").fill("The first with the new prompt.")
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    with page.expect_response(lambda response: "hx-refresh" in response.headers):
        pass
    page.wait_for_timeout(300)
    expect(page.locator("#id_note")).to_have_value("The first with the new prompt.")
    assert asked == []
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#description")).to_contain_text("The first with the new prompt.")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_a_run_that_cannot_start_is_offered_again_once_it_can(
    open_page: OpenPage, project: Project, member: Membership, width: int, scheme: str
) -> None:
    make_items(project, 3)
    make_endpoint("http://127.0.0.1:9/v1", name="unpriced")
    page = open_page(
        member.account,
        address("run-new") + "?strategy=vanilla&endpoint=unpriced",
        **look(width, scheme),
    )
    cap, start = (
        page.get_by_label("Cost cap per run"),
        page.get_by_role("button", name="Start the run"),
    )
    cap.fill("0.01")
    page.get_by_role("button", name="Estimate").click()
    expect(page.get_by_text("unpriced has no price, so a cap")).to_be_visible()
    expect(start).to_have_count(0)
    checked(page)
    cap.fill("")
    expect(page.locator(".start-stale")).to_be_visible()
    page.get_by_role("button", name="Estimate again").click()
    expect(start).to_be_enabled()


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_an_estimate_is_stale_once_the_form_changes_and_holds_again_once_it_is_as_it_was(
    open_page: OpenPage, project: Project, member: Membership, width: int, scheme: str
) -> None:
    make_items(project, 3)
    make_endpoint("http://127.0.0.1:9/v1", name="judge", price_in=1, price_out=1)
    page = open_page(
        member.account,
        address("run-new") + "?strategy=vanilla&endpoint=judge",
        **look(width, scheme),
    )
    limit, stale = page.get_by_label("Maximum number of items"), page.locator(".start-stale")
    start = page.get_by_role("button", name="Start the run")
    page.get_by_role("button", name="Estimate").click()
    expect(start).to_have_attribute("data-kind", "primary")
    expect(stale).to_be_hidden()
    limit.fill("2")
    expect(stale).to_have_text("The form was changed after this estimate. Estimate again.")
    expect(start).to_be_disabled()
    checked(page)
    limit.fill("")
    expect(start).to_be_enabled()
    page.locator("#id_note").fill("A note changes no request.")
    expect(start).to_be_enabled()
    # Enter estimates and starts nothing.
    limit.fill("1")
    limit.press("Enter")
    expect(page.locator(".start-total")).to_contain_text("2 requests to send")
    expect(start).to_be_enabled()
    assert not Run.objects.exists()
    page.locator("summary", has_text="Baselines").click()
    page.locator("[value=rouge-l]").check()
    expect(page.get_by_text("Tick the endpoint “baseline” for it too")).to_be_visible()
    page.locator("[value=baseline]").check()
    page.locator("[value=judge]").uncheck()
    expect(page.get_by_text("only the baseline is ticked here")).to_be_visible()
    checked(page)


def test_progress_is_followed_until_the_run_ends(
    open_page: OpenPage, project: Project, member: Membership
) -> None:
    run = planned(project)
    page = open_page(member.account, address("run", 1))
    expect(decided(page)).to_have_text("0 of 4")
    answer(run, number=3)
    expect(decided(page)).to_have_text("3 of 4")
    expect(page.locator("#outcomes td .chip", has_text="pending")).to_have_count(4)
    answer(run)
    lifecycle.finish_if_done(run)
    # The page loads itself once more, so that its list is complete too.
    expect(page.locator("#outcomes td .chip", has_text="pending")).to_have_count(0)
    expect(page.locator("#progress [role=status]")).to_have_text("finished")


@pytest.mark.parametrize("width, height", [(1280, 720), (390, 844)])
def test_a_run_at_its_cap_goes_on_once_a_higher_one_is_entered(
    open_page: OpenPage, project: Project, member: Membership, width: int, height: int
) -> None:
    """Five seconds: the page of a paused run looks so often whether somebody else resumed it."""
    run = planned(project)
    Run.objects.update(cap=Decimal("0.35"))
    lifecycle.pause(run, None, reason="The next call could exceed the run's cost cap of 0.35.")
    page = open_page(member.account, address("run", 1), viewport={"width": width, "height": height})
    checked(page)
    cap = page.get_by_label("New cap (now 0.35 USD)")
    expect(cap).to_be_in_viewport()
    cap.fill("0.2")
    page.get_by_role("heading", name="Progress").click()
    page.wait_for_event("response", lambda answer: "hx-request" in answer.request.headers)
    expect(cap).to_have_value("0.2")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert")).to_contain_text("A cap can only be raised.")
    checked(page)
    cap.fill("2.5")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#progress [role=status]")).to_have_text("running")
    expect(page.locator("#progress .stats")).to_contain_text("of 2.5")


def decided(page: Page) -> Locator:
    return page.locator("#progress .stats dd").first


def test_the_filter_of_outcomes_is_one_row_at_1280(
    open_page: OpenPage, project: Project, member: Membership
) -> None:
    run = judged(project)
    size = {"width": 1280, "height": 720}
    page = open_page(member.account, address("run", run.number), viewport=size)
    buttons = page.locator(".outcome-filter .button")
    fields = page.locator(".outcome-filter > .field")
    assert fields.count() == 8
    [bottom] = {
        round(one["y"] + one["height"])
        for one in (place.bounding_box() for place in [*fields.all(), *buttons.all()])
        if one
    }
    assert bottom


@pytest.mark.parametrize(
    "name", ["runs", "run", "items", "strategies", "endpoints", "members", "jobs", "budget"]
)
def test_lists_do_not_scroll_sideways_on_a_phone(
    open_page: OpenPage, project: Project, name: str
) -> None:
    run = judged(project)
    lead = make_member(project, role="lead")
    args = {"run": ("fbi", run.number), "endpoints": ()}.get(name, ("fbi",))
    size = {"width": 390, "height": 844}
    page = open_page(lead.account, reverse(name, args=args), viewport=size)
    lists = page.locator('.table-scroll:has([data-kind="list"])')
    assert lists.count()
    wide = "lists => lists.filter(one => one.scrollWidth > one.clientWidth).length"
    assert lists.evaluate_all(wide) == 0
    checked(page)
    # What a screen reader is told stays a table.
    assert page.get_by_role("table").first.get_by_role("row").count() > 1
    if name == "items":
        expect(page.get_by_label("Tick all items on this page")).to_be_visible()
