"""A text that was typed and not saved: asked about before the item is left, and never lost."""

import json
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, Response, expect

from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.models import Draft, Label, Membership, Revision, Slot
from annotation.projects import guidelines
from tests.browser.conftest import OpenPage
from tests.browser.screen import (
    choices,
    choose,
    expect_choices,
    label_screen,
    second_page,
    wait_for,
    with_items,
)
from tests.browser.test_accessibility import violations
from tests.builders import TEXTS, make_guidelines, make_item, make_member, make_project, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]

SIZES = [{"width": 1280, "height": 720}, {"width": 390, "height": 844}]
TYPED = f"In fact: {TEXTS['perturbed']}"


@pytest.fixture
def member() -> Membership:
    return with_items(make_project(), 6)


def with_typed_text(open_page: OpenPage, member: Membership, **options: Any) -> Page:
    """Where a correction was typed a moment ago, and its editor is closed."""
    page = label_screen(open_page, member, **options)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    page.keyboard.press("Escape")
    return page


def asked(page: Page) -> Page:
    """The page, once it asks what becomes of the text."""
    dialog = page.get_by_role("dialog", name="You changed the text but did not save it.")
    expect(dialog).to_be_visible()
    return page


@pytest.mark.parametrize("viewport", SIZES)
def test_a_choice_asks_what_becomes_of_a_text_whose_editor_is_closed(
    open_page: OpenPage, member: Membership, viewport: dict[str, int]
) -> None:
    page = with_typed_text(open_page, member, viewport=viewport)
    page.keyboard.press("1")
    asked(page)
    assert violations(page) == []
    page.keyboard.press("1")  # which answers nothing
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert choices() == {}
    page.keyboard.press("e")
    assert page.input_value("#correct-text") == TYPED


def test_save_and_label_labels_the_corrected_text(open_page: OpenPage, member: Membership) -> None:
    page = with_typed_text(open_page, member)
    page.keyboard.press("1")
    asked(page).keyboard.press("Enter")
    wait_for(page, "item-02")
    label = Label.objects.get()
    assert (label.choice, label.revision.number) == ("valid", 2)
    assert label.revision.texts["perturbed"] == TYPED
    assert not Draft.objects.exists()


def test_label_without_it_keeps_the_text_as_a_draft(
    open_page: OpenPage, member: Membership
) -> None:
    page = with_typed_text(open_page, member)
    page.keyboard.press("2")
    asked(page).keyboard.press("w")
    wait_for(page, "item-02")
    expect_choices({"item-01": "invalid"})
    assert Label.objects.get().revision.number == 1
    assert Draft.objects.get().data["text"] == TYPED
    page.goto(reverse("label", args=[member.project.slug]) + "?item=item-01")
    page.wait_for_selector('#panel[data-item="item-01"][data-ready]')
    page.keyboard.press("e")
    assert page.input_value("#correct-text") == TYPED


def test_a_comment_and_a_reason_go_with_the_label_that_saves_the_text(
    open_page: OpenPage, member: Membership
) -> None:
    page = with_typed_text(open_page, member)
    page.keyboard.press("c")
    page.keyboard.type("It said eight.")
    page.keyboard.press("Escape")
    page.keyboard.press("5")  # not sure
    page.keyboard.press("3")  # and why
    asked(page).keyboard.press("Enter")
    wait_for(page, "item-02")
    label = Label.objects.get()
    assert (label.choice, label.comment) == ("not-sure", "It said eight.")
    assert (label.revision.number, label.answers["reason"]) == (2, "question-unclear")


@pytest.mark.parametrize("key, then", [("s", "item-03"), (UNDO, "item-01")])
def test_skip_and_undo_ask_too_and_the_text_is_kept(
    open_page: OpenPage, member: Membership, key: str, then: str
) -> None:
    page = label_screen(open_page, member)
    choose(page, "1", "item-02")
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    page.keyboard.press("Escape")
    page.keyboard.press(key)
    asked(page).keyboard.press("w")
    wait_for(page, then)
    assert Draft.objects.get(item__key="item-02").data["text"] == TYPED


def test_skip_saves_the_text_if_the_person_says_so(open_page: OpenPage, member: Membership) -> None:
    page = with_typed_text(open_page, member)
    page.keyboard.press("s")
    asked(page).get_by_role("button", name="Save and skip").click()
    wait_for(page, "item-02")
    assert Revision.objects.get(number=2).item.marks.get().kind == "skip"


def test_a_chip_of_the_last_labels_asks_too(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    choose(page, "1", "item-02")
    page.wait_for_selector(".last-ten button")
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    page.keyboard.press("Escape")
    page.click(".last-ten button")
    asked(page).keyboard.press("Enter")
    wait_for(page, "item-01")
    assert Revision.objects.get(number=2).item.key == "item-02"


def test_a_flag_leaves_the_text_where_it_is(open_page: OpenPage, member: Membership) -> None:
    page = with_typed_text(open_page, member)
    with page.expect_response("**/label/draft/"):
        page.keyboard.press("f")
        expect(page.locator("#announcer")).to_have_text("item-01 is flagged for a lead.")
    assert Draft.objects.get().data["text"] == TYPED


@pytest.mark.parametrize("worker", ["block", "allow"])
def test_a_text_typed_a_moment_before_closing_or_signing_out_is_there_again(
    open_page: OpenPage, member: Membership, worker: str
) -> None:
    page = with_typed_text(open_page, member, service_workers=worker)
    page.goto(reverse("account_logout"))
    page.get_by_role("main").get_by_role("button").first.click()
    other = label_screen(open_page, member)
    other.keyboard.press("e")
    assert other.input_value("#correct-text") == TYPED


@pytest.mark.parametrize("viewport", SIZES)
def test_a_correction_begun_before_a_reload_is_saved_without_a_warning(
    open_page: OpenPage, member: Membership, viewport: dict[str, int]
) -> None:
    """Some seconds: two pages, and the wait after which a draft is sent."""
    page = with_typed_text(open_page, member, viewport=viewport)
    page.reload()
    wait_for(page, "item-01")
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("Now: ")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="item-01"][data-revision="2"][data-ready]')
    page.wait_for_timeout(1500)  # what a draft would need to be sent
    assert page.get_by_text("Your draft corrects an earlier revision").count() == 0
    assert Revision.objects.get(number=2).texts["perturbed"] == f"Now: {TYPED}"
    assert not Draft.objects.filter(data__has_key="text").exists()
    page.reload()
    wait_for(page, "item-01")
    assert page.get_by_text("Your draft corrects an earlier revision").count() == 0


EDITORS = [
    ("guidelines-edit", "For every item", "Read both", "Publish"),
    ("task", "Task type (TOML)", 'title = "Severe"', "Save as a new version"),
]


def is_of_a_form(answer: Response) -> bool:
    """Whether it answers a form that was sent, and not a script."""
    return answer.request.method == "POST" and answer.request.is_navigation_request()


@pytest.mark.parametrize("name, title, old, saves", EDITORS)
@pytest.mark.parametrize("viewport", SIZES)
def test_what_was_begun_in_an_editor_of_a_lead_is_brought_back_until_it_is_saved(
    open_page: OpenPage, name: str, title: str, old: str, saves: str, viewport: dict[str, int]
) -> None:
    lead = make_member(make_project(), role="lead")
    make_guidelines(lead.project, "# Read both")
    address = reverse(name, args=[lead.project.slug]) + ("?tab=toml" if name == "task" else "")
    page = open_page(lead.account, address, viewport=viewport)
    field = page.get_by_label(title)
    written = field.input_value().replace(old, f"{old[:-1]} again{old[-1]}")
    field.fill(written)
    page.goto(reverse("project", args=[lead.project.slug]))
    page.goto(address)
    expect(page.get_by_text("This is your unsaved text.")).to_be_visible()
    assert field.input_value() == written
    assert violations(page) == []
    if name == "guidelines-edit":
        page.get_by_label("What changed").fill("More to read.")
    # Another page may only be asked for once the answer to this one is there.
    with page.expect_navigation(), page.expect_response(is_of_a_form) as saved:
        page.get_by_role("button", name=saves, exact=True).click()
    assert saved.value.status == 302
    page.goto(address)
    assert field.input_value().strip() == written.strip()
    expect(page.get_by_text("This is your unsaved text.")).to_be_hidden()
    page.wait_for_function(
        "!Object.keys(localStorage).some((one) => one.startsWith('begun|'))", timeout=5000
    )


def test_what_was_begun_in_an_editor_is_brought_back_after_an_update_and_another_name(
    open_page: OpenPage,
) -> None:
    lead = make_member(make_project(), role="lead")
    make_guidelines(lead.project, "# Read both")
    page = open_page(lead.account, reverse("guidelines-edit", args=[lead.project.slug]))
    former = f"begun|{lead.account.pk}|{lead.project.slug}/guidelines|"
    field = page.get_by_label("For every item")
    kept = json.dumps({field.get_attribute("id"): "# Read all"})
    page.evaluate("([name, kept]) => localStorage.setItem(name, kept)", [former, kept])
    page.reload()
    expect(field).to_have_value("# Read all")
    assert former not in page.evaluate("Object.keys(localStorage)")
    lead.project.slug = "elsewhere"
    lead.project.save()
    page.goto(reverse("guidelines-edit", args=["elsewhere"]))
    expect(page.get_by_text("This is your unsaved text.")).to_be_visible()
    expect(field).to_have_value("# Read all")


def test_a_comment_to_the_others_survives_closing_the_tab(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    choose(page, "1", "item-02")
    address = reverse("comments", args=[member.project.slug]) + "?item=item-01"
    page.goto(address)
    page.get_by_label("Write a comment").fill("See item-02.")
    again = second_page(page)
    page.close()
    again.goto(address)
    assert again.get_by_label("Write a comment").input_value() == "See item-02."
    again.get_by_role("button", name="Send").click()
    expect(again.locator(".entries")).to_contain_text("See item-02.")
    again.reload()
    assert again.get_by_label("Write a comment").input_value() == ""


def test_what_was_begun_for_one_kind_is_kept_while_the_rest_is_as_it_is_stored(
    open_page: OpenPage,
) -> None:
    lead = make_member(make_project(guidelines_field="category"), role="lead")
    make_item(lead.project, category="spelling")
    make_guidelines(lead.project, "# Read both")
    address = reverse("guidelines-edit", args=[lead.project.slug])
    page = open_page(lead.account, address)
    page.get_by_label("What changed").fill("More of spelling.")
    page.get_by_role("link", name="All versions").click()
    page.goto(address)
    assert page.get_by_label("What changed").input_value() == "More of spelling."


def test_a_comment_that_could_not_be_sent_says_so_and_stays(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    choose(page, "1", "item-02")
    page.goto(reverse("comments", args=[member.project.slug]) + "?item=item-01")
    page.get_by_label("Write a comment").fill("See item-02.")
    page.context.set_offline(True)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent")
    assert page.get_by_label("Write a comment").input_value() == "See item-02."


def test_the_way_back_leads_to_another_item_without_what_was_written_on_the_former_one(
    open_page: OpenPage, member: Membership
) -> None:
    """Browsers fill in the forms of an address again as they were left."""
    page = with_typed_text(open_page, member)
    page.keyboard.press("c")
    page.keyboard.type("Of the first item.")
    page.goto(reverse("my-items", args=[member.project.slug]))
    Slot.objects.filter(item__key="item-01").update(state="open", member=None, held_until=None)
    other = make_member(member.project)
    say(other, take(other))
    page.go_back()
    wait_for(page, "item-02")
    expect(page.locator("#correct-text")).to_have_value(TEXTS["perturbed"])
    expect(page.locator("#comment")).to_have_value("")
    draft = Draft.objects.get()
    assert (draft.item.key, draft.data["text"]) == ("item-01", TYPED)
    assert draft.data["comment"] == "Of the first item."


def test_the_way_back_to_the_editor_of_the_guidelines_shows_what_another_lead_has_published(
    open_page: OpenPage,
) -> None:
    """With the text as it was left, the number of the new version would hide that it is older."""
    project = make_project()
    make_guidelines(project)
    lead, other = make_member(project, "lead"), make_member(project, "lead")
    page = open_page(lead.account, reverse("guidelines-edit", args=[project.slug]))
    page.fill("#id_text", "Read both answers twice.")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".messages")).to_contain_text("Version 2 published.")
    guidelines.publish(project, "Read both answers aloud.", {}, "", other, base=2)
    page.go_back()
    expect(page.locator("#id_text")).to_have_value("Read both answers aloud.")
