"""The page of categories in a browser."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation.items import taxonomy
from annotation.models import Role
from tests.annotation.own_categories import with_own_categories
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_way_back_merges_no_other_category(open_page: OpenPage) -> None:
    """Browsers choose again by the places of the rows, whichever category stands there by now."""
    project = with_own_categories(make_project())
    page = open_page(
        make_member(project, Role.LEAD).account, reverse("categories", args=[project.slug])
    )
    row = page.locator("tr", has_text="Rude remark").first
    row.locator("details summary").click()
    row.locator("select").select_option("made-up-citation")
    page.goto(reverse("items", args=[project.slug]))
    page.go_back()
    expect(row).to_be_visible()
    chosen = page.locator("select[name=into]").evaluate_all("all => all.map((one) => one.value)")
    assert set(chosen) == {""}


def test_a_lead_merges_a_category_and_takes_it_back(open_page: OpenPage) -> None:
    project = with_own_categories(make_project())
    make_item(project, "a", category="rude", ability="tone")
    lead = make_member(project, Role.LEAD)
    page = open_page(lead.account, reverse("categories", args=[project.slug]))
    row = page.locator("tr", has_text="Rude remark").first
    row.locator("details summary").click()
    row.locator("select").select_option("made-up-citation")
    row.get_by_role("button", name="Merge its 1 item").click()
    expect(page.get_by_text("Merged Rude remark into Made-up citation.")).to_be_visible()
    expect(page.locator("tr", has_text="merged into")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Went back to version 1").first).to_be_visible()
    project.refresh_from_db()
    assert not taxonomy.load_taxonomy(project).category("rude").retired


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_axe_finds_nothing(open_page: OpenPage, width: int, scheme: str) -> None:
    project = with_own_categories(make_project())
    make_item(project, "a", category="rude", ability="tone")
    lead = make_member(project, Role.LEAD)
    for name, more in (("categories", []), ("category", ["rude"]), ("group-new", [])):
        address = reverse(name, args=[project.slug, *more])
        page = open_page(lead.account, address, **look(width, scheme))
        page.screenshot(path=f"/tmp/shots/cat-{name}-{width}.png", full_page=True)
        checked(page)


def test_the_list_of_items_after_back_is_as_it_was(open_page: OpenPage) -> None:
    lead = make_member(make_project(), Role.LEAD)
    make_item(lead.project, "a")
    make_item(lead.project, "b", category="entity")
    assert lead.account
    page = open_page(lead.account, reverse("items", args=[lead.project.slug]))
    page.get_by_label("Category").select_option("entity")
    expect(page.get_by_role("link", name="a", exact=True)).to_have_count(0)
    expect(page).to_have_url(re.compile("category=entity"))
    page.get_by_role("link", name="b", exact=True).click()
    expect(page.get_by_role("heading", name="b", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Category")).to_have_value("entity")
    expect(page.get_by_role("link", name="b", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="a", exact=True)).to_have_count(0)
