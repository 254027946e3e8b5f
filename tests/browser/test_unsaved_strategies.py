"""What is written in the strategy editor and not stored: kept, brought back, let go."""

import re

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Membership, Project
from judging.models import StrategyVersion
from judging.strategies import catalogue, editing
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_member, make_project
from tests.judging.builders_judging import make_items

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EDIT = "/projects/fbi/strategies/ours/edit/"


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


@pytest.fixture
def member(project: Project) -> Membership:
    make_items(project, 1)
    member = make_member(project, role="researcher")
    parent = catalogue.find_version(project, "vanilla")
    assert parent
    editing.copy_strategy(project, parent, slug="ours", member=member)
    return member


def text(page: Page) -> str:
    return page.get_by_label("Strategy (TOML)").input_value()


def write(page: Page, old: str = "Judge how well", new: str = "Say how well") -> None:
    assert old in text(page)
    page.get_by_label("Strategy (TOML)").fill(text(page).replace(old, new))


def notice(page: Page):
    return page.get_by_text("This is your unsaved text.")


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_a_text_that_was_left_is_brought_back(
    open_page: OpenPage, member: Membership, width: int, scheme: str
) -> None:
    page = open_page(member.account, EDIT, **look(width, scheme))
    expect(notice(page)).to_be_hidden()
    write(page)
    page.get_by_label("Note about this version").fill("asks to say")
    page.get_by_role("link", name="ours", exact=True).click()
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(notice(page)).to_be_visible()
    assert "Say how well" in text(page)
    assert page.get_by_label("Note about this version").input_value() == "asks to say"
    expect(page.get_by_role("region", name="Preview")).to_contain_text("Say how well")
    checked(page)
    page.get_by_role("button", name="Start from the saved text").press("Enter")
    assert "Judge how well" in text(page)
    expect(page.get_by_label("Strategy (TOML)")).to_be_focused()
    page.reload()
    expect(notice(page)).to_be_hidden()


def test_what_is_stored_is_not_brought_back(open_page: OpenPage, member: Membership) -> None:
    page = open_page(member.account, EDIT)
    write(page)
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved as ours v2.")
    assert page.evaluate("Object.keys(localStorage).length") == 0
    page.goto(EDIT)
    assert "Say how well" in text(page)
    expect(notice(page)).to_be_hidden()


def test_a_text_that_cannot_be_stored_is_kept_all_the_same(
    open_page: OpenPage, member: Membership
) -> None:
    page = open_page(member.account, EDIT)
    write(page, "{{response}}", "{{respnse}}")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("alert").first).to_contain_text("Not saved.")
    page.goto(EDIT)
    expect(notice(page)).to_be_visible()
    assert "{{respnse}}" in text(page)


def test_a_text_made_from_an_earlier_version_is_held_against_what_came_since(
    open_page: OpenPage, project: Project, member: Membership
) -> None:
    page = open_page(member.account, EDIT)
    write(page)
    newest = StrategyVersion.objects.get(project=project)
    source = catalogue.get_source(newest).replace("useless", "worthless")
    editing.save_version(project, editing.parse_source(source, "ours"), shown=1, member=member)
    page.goto(EDIT)
    expect(notice(page)).to_be_visible()
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("alert")).to_contain_text("was saved while you were editing")
    assert "Say how well" in text(page)


def test_another_version_in_the_editor_leaves_what_was_begun(
    open_page: OpenPage, member: Membership
) -> None:
    page = open_page(member.account, EDIT)
    write(page)
    page.goto(EDIT + "?use=1")
    assert "Judge how well" in text(page)
    page.goto(EDIT)
    assert "Say how well" in text(page)


def test_where_there_is_no_room_leaving_is_warned_of(
    open_page: OpenPage, member: Membership
) -> None:
    page = open_page(member.account, EDIT)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.get_by_label("Strategy (TOML)").click()
    page.keyboard.type("# mine")
    page.get_by_role("link", name="ours", exact=True).click(no_wait_after=True)
    page.wait_for_timeout(300)
    assert asked == ["beforeunload"]
    expect(page).to_have_url(re.compile("/edit/"))
