"""Finding items by their words, and changing many at once."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from annotation.items import search_index
from annotation.models import Item, Membership
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import TEXTS, make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lead() -> Membership:
    project = make_project(name="Spiders")
    for number in range(8):
        said = (
            f"A spider has six legs. It eats {'flies' if number % 2 else 'moths'}, number {number}."
        )
        make_item(project, f"item-{number}", texts={**TEXTS, "perturbed": said})
    make_member(project, alias="Ann")
    search_index.run_slice()
    return make_member(project, role="lead")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_items_are_found_by_words_and_changed_and_changed_back(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    """Six seconds: three pages, each looked at for accessibility."""
    address = reverse("items", args=[lead.project.slug])
    page = open_page(lead.account, address, **look(width, scheme))
    page.get_by_label("Words in texts and comments").fill("fli")
    page.get_by_label("Words in texts and comments").press("Enter")
    expect(page.get_by_text("4 items match.")).to_be_visible()
    expect(page.locator(".found mark").first).to_have_text("flies")
    checked(page)
    page.get_by_label("Tick all items on this page").check()
    page.get_by_label("Tick item-3", exact=True).uncheck()
    page.get_by_label("Action", exact=True).select_option("exclude:")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("3 items excluded.").first).to_be_visible()
    expect(page.get_by_text("1 item matches.")).to_be_visible()
    checked(page)
    assert Item.objects.in_project(lead.project).count() == 5
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone: 3 items as before.")).to_be_visible()
    checked(page)
    assert Item.objects.in_project(lead.project).count() == 8


def test_the_way_back_ticks_no_other_item(open_page: OpenPage, lead: Membership) -> None:
    """Browsers tick the boxes of an address again by their places, whatever stands there by now."""
    page = open_page(lead.account, reverse("items", args=[lead.project.slug]))
    page.get_by_label("Tick item-3", exact=True).check()
    page.goto(reverse("members", args=[lead.project.slug]))
    Item.objects.filter(key="item-1").update(deleted_at=timezone.now())
    page.go_back()
    expect(page.get_by_label("Tick item-4", exact=True)).to_be_visible()
    expect(page.locator("[name=item]:checked")).to_have_count(0)
