"""The tour of the label screen: it is offered to newcomers, can be left, and comes back."""

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Membership
from tests.browser.conftest import OpenPage
from tests.browser.screen import label_screen, wait_for, with_items
from tests.builders import make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return label_screen(open_page, with_items(make_project(), 4), tour=True)


def _number(page: Page) -> str:
    return page.locator("#tour [data-number]").inner_text()


def test_each_note_stands_in_sight_beside_its_part(page: Page) -> None:
    """Some seconds on a busy machine: each note is waited for."""
    page.get_by_role("button", name="Take the tour").click()
    last = int(_number(page).removeprefix("1 of "))
    assert last == 6
    for number in range(1, last + 1):
        assert _number(page) == f"{number} of {last}"
        expect(page.locator("#tour-title")).to_be_focused()
        expect(page.locator("[data-toured]")).to_be_in_viewport()
        box = page.locator("#tour").bounding_box()
        assert box
        assert 0 <= box["y"] <= 720 - box["height"]
        page.keyboard.press("ArrowRight")
    expect(page.locator("#tour")).to_be_hidden()
    expect(page.locator("[data-toured]")).to_have_count(0)
    expect(page.locator("#tour-offer")).to_be_hidden()
    page.reload()
    expect(page.locator("#panel[data-ready]")).to_be_visible()
    expect(page.locator("#tour-offer")).to_be_hidden()


def test_a_tour_that_was_left_goes_on_where_it_was(page: Page) -> None:
    page.get_by_role("button", name="Take the tour").click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("1")  # answers nothing while the tour is open
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_have_attribute("data-item", "item-01")
    page.keyboard.press("1")
    wait_for(page, "item-02")
    page.reload()
    expect(page.locator("#tour-offer")).to_contain_text("You left it at note 2.")
    page.get_by_role("button", name="Go on with the tour").click()
    assert _number(page) == "2 of 7"  # now with the last labels


def test_who_wants_no_tour_finds_it_under_keys(page: Page) -> None:
    page.get_by_role("button", name="No, thanks").click()
    expect(page.locator("#tour-offer")).to_be_hidden()
    page.reload()
    expect(page.locator("#panel[data-ready]")).to_be_visible()
    expect(page.locator("#tour-offer")).to_be_hidden()
    page.keyboard.press("?")
    page.get_by_role("button", name="Tour of this screen").click()
    assert _number(page) == "1 of 6"


def test_who_has_labelled_here_before_is_not_asked(open_page: OpenPage, page: Page) -> None:
    page.keyboard.press("1")
    wait_for(page, "item-02")
    other = open_page(Membership.objects.get().account, page.url, tour=True)
    expect(other.locator("#panel[data-ready]")).to_be_visible()
    expect(other.locator("#tour-offer")).to_be_hidden()
