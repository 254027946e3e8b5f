"""What a person does at the label screen and sees there, for every test of it."""

import time
from typing import Any

from django.urls import reverse
from playwright.sync_api import Page, Request

from annotation.models import Label, Membership, Project
from tests.browser.conftest import OpenPage
from tests.builders import make_item, make_member


def with_items(project: Project, number: int) -> Membership:
    """Somebody with so many items to label, item-01 and on, of two source questions."""
    for place in range(1, number + 1):
        make_item(project, f"item-{place:02}", cluster=f"cluster-{place % 2}")
    return make_member(project)


def label_screen(
    open_page: OpenPage, member: Membership, key: str = "item-01", **options: Any
) -> Page:
    page = open_page(member.account, reverse("label", args=[member.project.slug]), **options)
    return wait_for(page, key)


def second_page(page: Page) -> Page:
    """Another tab of the same person, as wide and in the same colours."""
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    other = page.context.new_page()
    if page.viewport_size:
        other.set_viewport_size(page.viewport_size)
    other.emulate_media(color_scheme="dark" if is_dark else "light")
    return other


def wait_for(page: Page, key: str) -> Page:
    """The page, once this item is painted and takes a label."""
    page.wait_for_selector(f'#panel[data-item="{key}"][data-ready]')
    return page


def lose_connection(page: Page) -> None:
    """Take the connection away, once the next item has come."""
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)


def choose(page: Page, digit: str, then: str) -> None:
    page.keyboard.press(digit)
    wait_for(page, then)


def said(page: Page) -> str:
    """What a screen reader was told last."""
    return page.inner_text("#announcer")


def choices() -> dict[str, str]:
    current = Label.objects.current()
    return dict(current.order_by("item__position").values_list("item__key", "choice"))


def expect_choices(wanted: dict[str, str]) -> None:
    """Wait for these labels: the screen shows the next item before the last label is stored."""
    ends = time.monotonic() + 15
    while (found := choices()) != wanted and time.monotonic() < ends:
        time.sleep(0.02)
    assert found == wanted


def the_label() -> Label:
    """The one label, once it is stored: the screen shows the next item before."""
    ends = time.monotonic() + 15
    while not Label.objects.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    return Label.objects.get()


def sent_to(page: Page, path: str) -> list[Request]:
    """The posts to an address, in a list that grows."""
    found: list[Request] = []
    page.on(
        "request",
        lambda one: found.append(one) if one.method == "POST" and one.url.endswith(path) else None,
    )
    return found
