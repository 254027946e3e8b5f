"""The pictures of the README are those of today: each is taken of the demo, and compared."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page

from annotation.models import Account
from tests.browser import pictures
from tests.browser.conftest import OpenPage

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

KILOBYTES = 220


def show_label_screen(page: Page) -> None:
    page.wait_for_selector("#panel[data-item][data-ready]")
    notice = page.get_by_role("button", name="I have read them")
    while notice.is_visible():  # a press on an item that has just appeared is ignored
        notice.click()
        page.wait_for_timeout(300)
    while page.get_attribute("#panel", "data-item") != "number-errors-2":
        shown = page.get_attribute("#panel", "data-item")
        page.keyboard.press("s")
        page.wait_for_selector(f'#panel[data-ready]:not([data-item="{shown}"])')


def show_results(page: Page) -> None:
    page.wait_for_selector("#chart svg")


@dataclass(frozen=True)
class Picture:
    """Who looks at which page, what they do before the picture is taken, and its size."""

    who: str
    address: str
    show: Callable[[Page], None]
    width: int
    height: int


PICTURES = {
    "label-screen": Picture("annotator", "/projects/demo/label/", show_label_screen, 1280, 800),
    "results": Picture("researcher", "/projects/demo/results/overview/", show_results, 1280, 1080),
}


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("name", PICTURES)
def test_the_readme_shows_the_page_of_today(name: str, open_page: OpenPage) -> None:
    of = PICTURES[name]
    size = {"width": of.width, "height": of.height}
    page = open_page(Account.objects.get(username=of.who), of.address, viewport=size)
    of.show(page)
    if not pictures.has_font(page):
        pytest.skip(f"The pictures of the README need the font {pictures.FONT}.")
    pictures.compare_picture(page, name, KILOBYTES)
