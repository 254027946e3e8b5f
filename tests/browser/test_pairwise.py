"""Two responses at the label screen: beside each other, by keyboard alone, in the order drawn."""

from typing import Any

import pytest
from playwright.sync_api import Page

from annotation.labelling import queue
from annotation.models import Label, Membership
from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.browser.screen import expect_choices, wait_for
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LONG = "A river flows to the sea. " * 60
TEXTS = {
    "prompt": "Name a river and say where it ends.",
    "response_1": f"The Rhine, which ends in the North Sea.\n\n{LONG}",
    "response_2": "The lake.",
    "reference": "Any river, with its mouth.",
}


@pytest.fixture
def member() -> Membership:
    project = make_project(task_type="pairwise")
    project.task_type.refresh_from_db()
    for number in range(1, 5):
        fields = {"system_1": "secret-alpha", "system_2": "secret-beta"}
        make_item(project, f"item-{number}", texts=TEXTS, category="", fields=fields)
    return make_member(project)


def first_shown(member: Membership) -> str:
    offer = queue.next_offer(member)
    assert isinstance(offer, queue.Offer)
    return offer.first


def places(page: Page) -> list[Any]:
    """Where the two responses stand, the one called A first."""
    boxes = [
        page.locator(
            "#panel .texts-sheet", has=page.get_by_role("heading", name=name)
        ).bounding_box()
        for name in ("Response A", "Response B")
    ]
    assert None not in boxes
    return boxes


def test_one_key_is_a_label_and_names_the_response(open_page: OpenPage, member: Membership) -> None:
    first = first_shown(member)
    page = screen.label_screen(open_page, member, "item-1")
    names = page.locator("[data-reading] [data-text]")
    names = names.evaluate_all("all => all.map(one => one.dataset.text)")
    assert names == ["prompt", first, *{"response_1", "response_2"} - {first}]
    assert "secret" not in page.content()
    page.keyboard.press("1")
    wait_for(page, "item-2")
    expect_choices({"item-1": first})
    page.keyboard.press("3")
    wait_for(page, "item-3")
    expect_choices({"item-1": first, "item-2": "both_good"})
    assert page.inner_text("[data-last]") == "item-2 is labelled: Both are good."

    page.keyboard.press("u")
    wait_for(page, "item-2")
    page.keyboard.press("4")
    wait_for(page, "item-3")
    expect_choices({"item-1": first, "item-2": "both_bad"})
    page.reload()
    wait_for(page, "item-3")
    assert Label.objects.current().get(item__key="item-1").first_shown == first


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1440, 900)])
def test_the_responses_stand_side_by_side_with_the_choices_in_sight(
    open_page: OpenPage, member: Membership, width: int, height: int
) -> None:
    page = screen.label_screen(
        open_page, member, "item-1", viewport={"width": width, "height": height}
    )
    a, b = places(page)
    assert a["y"] == b["y"]
    assert a["x"] + a["width"] <= b["x"]
    assert a["width"] == pytest.approx(b["width"], abs=1)
    for button in page.locator("button.choice").all():
        box = button.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height


def test_on_a_telephone_they_stand_one_below_the_other(
    open_page: OpenPage, member: Membership
) -> None:
    page = screen.label_screen(
        open_page, member, "item-1", viewport={"width": 390, "height": 844}, has_touch=True
    )
    a, b = places(page)
    assert a["x"] == b["x"]
    assert a["y"] + a["height"] <= b["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first = first_shown(member)
    page.get_by_role("button", name="B is better").tap()
    wait_for(page, "item-2")
    expect_choices({"item-1": ({"response_1", "response_2"} - {first}).pop()})


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_axe_finds_nothing_in_it(
    open_page: OpenPage, member: Membership, width: int, scheme: str
) -> None:
    checked(screen.label_screen(open_page, member, "item-1", **look(width, scheme)))
