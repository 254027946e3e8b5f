"""Settings say what a change would do before it is saved, with a script and without."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Membership, Role
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import checked
from tests.builders import make_item, make_member, make_project, make_resolution

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["wide", "narrow"])


@pytest.fixture
def lead() -> Membership:
    lead = make_member(make_project(), role=Role.LEAD)
    make_item(lead.project, "open")
    make_resolution(make_item(lead.project, "accepted", slots=0))
    return lead


def settings_of(open_page: OpenPage, lead: Membership, size: tuple[int, int], **more: bool) -> Page:
    viewport = {"width": size[0], "height": size[1]}
    address = reverse("settings", args=[lead.project.slug])
    return open_page(lead.account, address, viewport=viewport, **more)


@SIZES
def test_a_number_that_is_typed_says_at_once_what_saving_would_do(
    open_page: OpenPage, lead: Membership, size: tuple[int, int]
) -> None:
    page = settings_of(open_page, lead, size)
    page.fill("#id_overlap", "2")
    reach = page.locator("#reach")
    expect(reach).to_contain_text("1 item needs more labels.")
    expect(reach).to_contain_text("1 item needs no labels: its final label came with the import.")
    box = reach.bounding_box()
    assert box
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= size[1]
    checked(page)
    page.fill("#id_overlap", "0")
    expect(reach).to_contain_text("Annotators per item")
    page.fill("#id_overlap", "1")
    expect(reach).to_contain_text("No changes.")
    page.fill("#id_overlap", "2")
    page.click("text=Save the settings")
    expect(page.locator(".messages")).to_contain_text("1 setting changed.")


def test_without_a_script_a_button_says_it(open_page: OpenPage, lead: Membership) -> None:
    page = settings_of(open_page, lead, (1280, 720), java_script_enabled=False)
    page.fill("#id_overlap", "2")
    page.click("text=Preview")
    expect(page.locator("#reach")).to_contain_text("1 item needs more labels.")
    expect(page.locator("#id_overlap")).to_have_value("2")
    lead.project.refresh_from_db()
    assert lead.project.overlap == 1


def test_the_way_back_shows_what_another_lead_has_saved_since(
    open_page: OpenPage, lead: Membership
) -> None:
    """Browsers fill in the forms of an address again as they were left: saving would undo it."""
    page = settings_of(open_page, lead, (1280, 720))
    expect(page.locator("#id_expected_effect")).not_to_be_checked()
    page.goto(reverse("items", args=[lead.project.slug]))
    lead.project.expected_effect = True
    lead.project.save()
    page.go_back()
    expect(page.locator("#id_expected_effect")).to_be_checked()


def test_leaving_settings_that_are_not_saved_is_asked_about(
    open_page: OpenPage, lead: Membership
) -> None:
    page = settings_of(open_page, lead, (1280, 720))
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.fill("#id_overlap", "2")
    page.get_by_role("link", name="Items").first.click()
    page.wait_for_timeout(200)
    assert asked == ["beforeunload"]
    expect(page.locator("#id_overlap")).to_have_value("2")
    page.click("text=Save the settings")
    expect(page.locator(".messages")).to_contain_text("1 setting changed.")
    assert asked == ["beforeunload"]
