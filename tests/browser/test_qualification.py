"""Practice at the label screen, with a keyboard alone; and the pages round it, for axe."""

from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.labelling import qualification
from annotation.models import Draft, Item, Label, Membership, Project, Revision
from annotation.projects import guidelines
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_known, make_member, make_project, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]


@pytest.fixture
def project() -> Project:
    """Rounds of two items that must both be right; all of them are valid."""
    project = make_project(practice_items=2, practice_pass=2)
    for number in range(1, 5):
        make_known(project, f"practice-{number}", texts={"claim": "Six for eight."})
    make_item(project, "work")
    return project


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, alias="anna")


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead")


def answer(page: Page, key: str) -> None:
    """Press a choice at an item of practice and wait for its explanation."""
    page.wait_for_selector('#panel[data-phase="qualification"][data-ready]')
    page.keyboard.press(key)
    page.wait_for_selector("#panel[data-lesson][data-ready]")


def test_on_a_telephone_the_explanation_comes_into_sight(
    open_page: OpenPage, member: Membership
) -> None:
    """It lies below the texts, which are long."""
    for revision in Revision.objects.filter(item__purpose="practice"):
        long = "A spider has eight legs, and each of them has seven parts. " * 40
        revision.texts |= {
            "prompt": long,
            "gold": long,
            "perturbed": long + "Or six.",
            "claim": long,
        }
        revision.save(update_fields=["texts"])
    page = open_page(
        member.account,
        reverse("label", args=[member.project.slug]),
        viewport={"width": 390, "height": 844},
    )
    answer(page, "1")
    expect(page.locator("#lesson-title")).to_be_in_viewport(ratio=1)
    expect(page.locator("[data-go-on]")).to_be_in_viewport(ratio=1)


def test_a_round_is_failed_then_another_passed_and_then_there_is_work(
    open_page: OpenPage, member: Membership
) -> None:
    """Eight seconds: two rounds of items, each waited for as a person does."""
    page = open_page(member.account, reverse("label", args=[member.project.slug]))
    page.wait_for_selector('#panel[data-phase="qualification"][data-ready]')
    expect(page.locator(".label-item")).to_contain_text("qualification")
    page.keyboard.press("e")  # a correction would be refused once it is written
    expect(page.locator("#announcer")).to_have_text("There is nothing to correct here.")
    answer(page, "1")
    expect(page.locator(".label-lesson")).to_contain_text("Right")
    expect(page.locator(".label-lesson")).to_contain_text("It is valid.")
    expect(page.locator("#lesson-title")).to_be_focused()
    page.keyboard.press("n")
    answer(page, "2")
    expect(page.locator(".label-lesson")).to_contain_text("you chose Invalid")
    expect(page.locator(".practice-standing")).to_contain_text("not passed")
    for _ in range(2):
        page.keyboard.press("Enter")
        answer(page, "1")
    expect(page.locator(".practice-standing")).to_contain_text("You can now label items")
    page.keyboard.press("n")
    page.wait_for_selector('#panel[data-item="work"][data-ready]')
    results = [(one.row.right, one.row.passed) for one in qualification.list_rounds(member)]
    assert results == [(2, True), (1, False)]
    assert Label.objects.values("item").distinct().count() == 4


def test_who_has_practised_on_all_is_told_what_comes_next(
    open_page: OpenPage, member: Membership
) -> None:
    """Seven seconds: all rounds of items, each waited for as a person does."""
    Draft.objects.create(member=member, item=Item.objects.get(key="work"), revision=1, data={})
    page = open_page(member.account, reverse("label", args=[member.project.slug]))
    standings = []
    for _ in range(4):
        answer(page, "2")
        standings.append(page.inner_text(".practice-standing"))
        page.keyboard.press("n")
    assert "You get another round with new items." in standings[1]
    assert "A lead decides how you go on." in standings[3]
    waiting = page.locator(".label-waiting")
    expect(waiting).to_contain_text("A lead will review your answers")
    expect(waiting.locator("a")).to_have_text(
        ["Check again", "Your answers and the correct ones", "Go to the project"]
    )


def test_an_explained_answer_cannot_be_undone_or_pressed_past(
    open_page: OpenPage, member: Membership
) -> None:
    page = open_page(member.account, reverse("label", args=[member.project.slug]))
    answer(page, "2")
    for key in ("1", UNDO, "s", "1"):
        page.keyboard.press(key, delay=30)
    page.wait_for_timeout(500)
    made = Label.objects.get()
    assert (made.choice, made.withdrawn_at) == ("invalid", None)


def test_a_lead_writes_guidelines_with_a_preview_by_the_keyboard(
    open_page: OpenPage, lead: Membership
) -> None:
    page = open_page(lead.account, reverse("guidelines-edit", args=[lead.project.slug]))
    page.focus("#id_text")
    page.keyboard.type("Read **both** answers.")
    page.focus("[name=preview]")
    page.keyboard.press("Enter")
    expect(page.locator("#preview strong")).to_have_text("both")
    page.get_by_role("button", name="Publish").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".guidelines strong")).to_have_text("both")
    version = guidelines.current_version(lead.project)
    assert version
    assert version.text == "Read **both** answers."


PAGES = [
    "qualification-people",
    "answer-key",
    "control-items",
    "guidelines",
    "guidelines-edit",
    "settings",
]


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_pages_for_leads_are_for_everybody(
    open_page: OpenPage, lead: Membership, member: Membership, width: int, scheme: str
) -> None:
    for _ in range(2):
        say(member, take(member), "invalid")
    make_known(lead.project, "a-key-that-is-long-enough-to-push-a-page-wide-probe", purpose="probe")
    guidelines.publish(lead.project, "Read **both**.", {}, "", lead)
    guidelines.publish(lead.project, "Read *all*.\n\n- one\n- two", {"maths": "x"}, "All.", lead)
    page = open_page(lead.account, "/", **look(width, scheme))
    for name in PAGES:
        page.goto(reverse(name, args=[lead.project.slug]))
        checked(page)
    page.goto(reverse("qualification-people", args=[lead.project.slug]))
    page.click("summary:has-text('Round 1')")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_pages_of_practice_are_for_everybody(
    open_page: OpenPage, member: Membership, lead: Membership, width: int, scheme: str
) -> None:
    guidelines.publish(lead.project, "Read **both**.", {}, "First.", lead)
    place: dict[str, Any] = look(width, scheme)
    page = open_page(member.account, reverse("qualification", args=[member.project.slug]), **place)
    checked(page)
    page.goto(reverse("label", args=[member.project.slug]))
    answer(page, "2")
    checked(page)
    page.goto(reverse("qualification", args=[member.project.slug]))
    page.click("summary:has-text('Read the item again')")
    checked(page)
    page.goto(reverse("guidelines", args=[member.project.slug]))
    checked(page)
