"""A lead sorts prompts by keys alone, and by ticking several."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import importing, tasktypes
from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.items import ability_sorting
from annotation.items.ability_sorting import AbilityChange, AbilitySuggestion
from annotation.models import Item, Membership
from formats.rows import Row
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]


@pytest.fixture
def lead() -> Membership:
    project = make_project(task_type="gold-verification")
    prompts = [f"Prompt {number}: why?" for number in range(5)] + ["A long one. " * 60]
    rows = [Row("f", at, {"key": f"p{at}", "prompt": one}) for at, one in enumerate(prompts)]
    importing.store_items(project, importing.parse_items(rows, tasktypes.load_task_type(project)))
    told = AbilitySuggestion(Item.objects.get(key="p2").pk, "reasoning")
    ability_sorting.store_suggestions(project, [told], by="suggest-ability, run 1")
    return make_member(project, role="lead")


def opened(open_page: OpenPage, lead: Membership, **how: object) -> Page:
    return open_page(lead.account, reverse("abilities", args=[lead.project.slug]), **how)


def abilities() -> list[str]:
    return list(Item.objects.order_by("position").values_list("ability", flat=True))


def test_prompts_are_sorted_by_keys_alone(open_page: OpenPage, lead: Membership) -> None:
    page = opened(open_page, lead)
    for key in ("1", "2", "Enter", "j", "4"):
        page.keyboard.press(key)
    said = page.locator("#sort-said")
    expect(said).to_have_text("p4 is Reasoning.")
    assert abilities() == ["long-form", "factual", "reasoning", "", "reasoning", ""]
    expect(page.locator("#sort-counts")).to_contain_text("Unsorted 2")
    page.keyboard.press(UNDO)
    expect(said).to_have_text("p4 is again unsorted.")
    page.keyboard.press(UNDO)
    expect(said).to_have_text("p2 is again unsorted.")
    expect(page.locator("li:focus [name=key]")).to_have_value("p2")
    assert abilities() == ["long-form", "factual", "", "", "", ""]


def test_a_key_goes_on_with_what_is_not_sorted_once_all_is_stored(
    open_page: OpenPage, lead: Membership
) -> None:
    page = opened(open_page, lead)
    for key in ("1", "2", "3", "n"):
        page.keyboard.press(key)
    page.wait_for_url("**/abilities/?which=unsorted")
    expect(page.locator("[data-row]")).to_have_count(3)
    assert abilities()[:3] == ["long-form", "factual", "instruction-following"]


def test_several_are_ticked_and_sorted_at_once(open_page: OpenPage, lead: Membership) -> None:
    page = opened(open_page, lead)
    for key in ("x", "j", "j", "x"):
        page.keyboard.press(key)
    page.click("button[name=all][value=factual]")
    expect(page.locator("#sort-said")).to_have_text("2 prompts sorted.")
    assert abilities() == ["factual", "", "factual", "", "", ""]
    page.click("button[name=suggested]")
    expect(page.locator("#sort-said")).to_have_text(re.compile("Nothing is selected"))


def test_what_others_changed_is_told_and_shown(open_page: OpenPage, lead: Membership) -> None:
    page = opened(open_page, lead)
    ability_sorting.set_abilities(
        make_member(lead.project, role="lead"), [AbilityChange("p0", "reasoning")]
    )
    page.keyboard.press("2")
    expect(page.locator("#sort-said")).to_contain_text("to Reasoning; that stays.")
    expect(page.locator("li", has=page.locator("[value=p0]")).locator(".chip")).to_have_text(
        "Reasoning"
    )


def test_a_lost_connection_is_told(open_page: OpenPage, lead: Membership) -> None:
    page = opened(open_page, lead)
    page.context.set_offline(True)
    page.keyboard.press("2")
    expect(page.locator("#sort-said")).to_contain_text("This was not saved")
    assert abilities()[0] == ""


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_page_is_for_everybody_and_fits(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    page = opened(open_page, lead, **look(width, scheme))
    checked(page)
    page.click("[data-open-keys]")
    checked(page)
