"""Who is signed out while a page is open, cookies and all, is told so and loses nothing."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Draft, Label, Membership
from tests.browser.conftest import OpenPage
from tests.browser.screen import label_screen, second_page, wait_for, with_items
from tests.builders import PASSWORD, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["wide", "narrow"])


def of(size: tuple[int, int]) -> dict[str, dict[str, int]]:
    return {"viewport": {"width": size[0], "height": size[1]}}


def sign_in(page: Page, member: Membership) -> None:
    assert member.account
    page.fill("[name=login]", member.account.username)
    page.fill("[name=password]", PASSWORD)
    page.click("main button")


def is_in_sight(page: Page, selector: str) -> bool:
    inside = "box => box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth"
    box = page.locator(selector)
    return bool(box.evaluate(f"one => ({inside})(one.getBoundingClientRect())"))


@SIZES
def test_a_label_is_kept_until_its_author_has_signed_in_again(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    member = with_items(make_project(), 3)
    page = label_screen(open_page, member, **of(size))
    page.context.clear_cookies()
    page.fill("#comment", "Spiders have eight.")
    page.locator("#panel [data-focus]").focus()
    page.keyboard.press("4")
    expect(page.locator("#trouble")).to_contain_text("You have been signed out.")
    expect(page.locator("#trouble")).to_contain_text("“Not relevant” is kept here")
    assert is_in_sight(page, "#trouble .notice")
    page.click("#trouble a")
    sign_in(page, member)
    wait_for(page, "item-01")
    expect(page.locator("#comment")).to_have_value("Spiders have eight.")
    expect(page.locator("[data-last]")).to_contain_text("You chose “Not relevant”")
    assert not Label.objects.exists()


def test_a_page_ends_with_its_session_when_somebody_else_signs_in_in_another_tab(
    open_page: OpenPage,
) -> None:
    """Otherwise it would show their items, and keep their labels under its own name."""
    member = with_items(make_project(), 3)
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    page.context.clear_cookies()
    other = second_page(page)
    other.goto(reverse("my-items", args=[member.project.slug]))
    sign_in(other, make_member(member.project))
    other.wait_for_url("**/my-items/")
    page.keyboard.press("4")
    expect(page.locator("#trouble")).to_contain_text("You have been signed out.")
    expect(page.locator("#trouble")).to_contain_text("“Not relevant” is kept here")
    assert not Label.objects.exists()


@SIZES
def test_what_a_lead_types_stays_and_comes_back_when_it_is_sent(
    open_page: OpenPage, size: tuple[int, int]
) -> None:
    lead = make_member(make_project(), role="lead")
    page = open_page(
        lead.account, reverse("task", args=[lead.project.slug]) + "?tab=toml", **of(size)
    )
    page.context.clear_cookies()
    page.fill("#source", "# my own words")
    page.press("#source", "End")
    expect(page.locator("#refused")).to_contain_text("You are signed out.")
    assert is_in_sight(page, "#refused .notice")
    expect(page.locator("#source")).to_have_value("# my own words")
    expect(page.locator("#preview")).to_have_count(1)
    page.click("text=Save as a new version")
    expect(page.locator("h1")).to_have_text("You are signed out")
    expect(page.locator("main")).to_contain_text("# my own words")
    with page.context.expect_page() as opened:
        page.click("text=Sign in in a new tab")
    sign_in(opened.value, lead)
    opened.value.wait_for_url(f"**{reverse('task', args=[lead.project.slug])}?tab=toml")
    expect(page.locator("main")).to_contain_text("# my own words")


def test_a_comment_that_cannot_be_sent_is_not_wiped_out(open_page: OpenPage) -> None:
    lead = make_member(with_items(make_project(), 1).project, role="lead")
    page = open_page(lead.account, f"{reverse('comments', args=[lead.project.slug])}?item=item-01")
    page.fill("#comments textarea", "Is eight right?")
    page.context.clear_cookies()
    page.click("#comments form:has(textarea) button")
    expect(page.locator("#refused")).to_contain_text("You are signed out.")
    expect(page.locator("#comments textarea")).to_have_value("Is eight right?")


def test_who_writes_on_after_the_session_ended_is_told(open_page: OpenPage) -> None:
    page = label_screen(open_page, with_items(make_project(), 3))
    page.context.clear_cookies()
    page.fill("#comment", "Eight, not six.")
    trouble = page.locator("#trouble")
    expect(trouble).to_contain_text("You have been signed out.")
    expect(trouble).to_contain_text("What you write is kept in this browser only.")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(trouble).to_contain_text("Your answer “Valid” is kept here but not saved yet.")
    expect(trouble.locator("[data-retry]")).to_have_count(1)


def test_the_warning_ends_with_the_next_draft_that_is_stored(open_page: OpenPage) -> None:
    page = label_screen(open_page, with_items(make_project(), 3))
    cookies = page.context.cookies()
    page.context.clear_cookies()
    page.fill("#comment", "Eight, not six.")
    expect(page.locator("#trouble")).to_contain_text("You have been signed out.")
    page.context.add_cookies([{**one} for one in cookies])  # signed in again in another window
    page.fill("#comment", "Eight legs, not six.")
    expect(page.locator("#trouble [data-retry]")).to_have_count(0)
    assert Draft.objects.get().data["comment"] == "Eight legs, not six."
