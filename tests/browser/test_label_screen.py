"""A person at the label screen, with a keyboard alone."""

import pytest
from django.urls import reverse
from playwright.sync_api import Route, expect

from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.models import Draft, Label, Membership, Revision, Slot
from tests.browser.conftest import OpenPage
from tests.browser.screen import (
    choose,
    expect_choices,
    label_screen,
    lose_connection,
    said,
    second_page,
    wait_for,
    with_items,
)
from tests.builders import TEXTS, correct, make_project, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]

# Six presses, 5 ms from each other however slow the machine is, and one more 150 ms after the
# next item came: the second press of a slow double press.
PRESSES = """
const press = () => {
  for (const kind of ["keydown", "keyup"]) {
    const event = new KeyboardEvent(kind, { key: "1", code: "Digit1", bubbles: true });
    document.body.dispatchEvent(event);
  }
};
const painted = () => {
  if (document.getElementById("panel").dataset.item !== "item-02") return;
  observer.disconnect();
  setTimeout(press, 150);
};
const observer = new MutationObserver(painted);
observer.observe(document.body, { subtree: true, childList: true });
for (const time of [0, 5, 10, 15, 20, 25]) setTimeout(press, time);
"""


@pytest.fixture
def member() -> Membership:
    return with_items(make_project(), 12)


def test_ten_items_are_labelled_by_the_keyboard_alone(
    open_page: OpenPage, member: Membership
) -> None:
    """Five to ten seconds: ten items, each waited for as a person does."""
    page = label_screen(open_page, member)
    for number in range(1, 11):
        page.keyboard.press(str((number - 1) % 5 + 1))
        if number % 5 == 0:  # not sure: one more key says what is in the way
            page.keyboard.press("3")
        wait_for(page, f"item-{number + 1:02}")
    choices = ["valid", "invalid", "score-invariant", "not-relevant", "not-sure"] * 2
    assert list(Label.objects.order_by("pk").values_list("choice", flat=True)) == choices
    expect(page.locator(".label-progress")).to_contain_text("10 by you")


def test_what_was_labelled_and_what_comes_next_is_said_and_focus_follows(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("3")
    wait_for(page, "item-02")
    assert said(page) == "item-01: Score-invariant. Now item-02, Number errors."
    expect(page.locator("[data-focus]")).to_be_focused()


def test_the_text_is_corrected_in_place(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("e")
    page.keyboard.press("Control+a")
    page.keyboard.type("A spider has 12345 legs.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-revision="2"][data-ready]')
    assert page.inner_text(".diff-inline ins").strip() == "12345"
    assert Revision.objects.get(number=2).texts["perturbed"] == "A spider has 12345 legs."
    assert not Label.objects.exists()


def test_unsaved_text_survives_leaving_and_loading_again(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    page.keyboard.press("Escape")
    expect(page.locator("[data-editor]")).to_be_hidden()
    page.reload()
    wait_for(page, "item-01")
    page.keyboard.press("e")
    assert page.input_value("#correct-text") == f"In fact: {TEXTS['perturbed']}"
    page.click("[data-discard]")
    assert page.input_value("#correct-text") == TEXTS["perturbed"]


def test_a_draft_that_went_on_in_another_browser_is_not_replaced_by_the_older_one(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: a draft is stored one second after the last key."""
    page = label_screen(open_page, member)
    page.fill("#comment", "Six.")
    page.goto("/")  # at once: what comes of the draft is not heard any more
    other = label_screen(open_page, member)
    expect(other.locator("#comment")).to_have_value("Six.")
    with other.expect_response("**/draft/"):
        other.fill("#comment", "Six, and a long text.")
    page.goto(reverse("label", args=[member.project.slug]))
    wait_for(page, "item-01")
    expect(page.locator("#comment")).to_have_value("Six, and a long text.")
    expect(page.locator("#trouble")).to_contain_text("In this one you wrote:Six.")
    with page.expect_response("**/draft/"):
        page.fill("#comment", "Six, and a long text, and more.")
    page.reload()
    wait_for(page, "item-01")
    expect(page.locator("#comment")).to_have_value("Six, and a long text, and more.")
    expect(page.locator("#trouble")).to_be_empty()


def test_a_page_that_stayed_open_shows_what_it_would_replace_in_a_draft(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: a draft is stored one second after the last key."""
    page, other = label_screen(open_page, member), label_screen(open_page, member)
    with other.expect_response("**/draft/"):
        other.fill("#comment", "A long text.")
    for words in ("Six.", "Six and more."):
        with page.expect_response(lambda answer: "/draft/" in answer.url and answer.ok):
            page.fill("#comment", words)
        expect(page.locator("#trouble pre")).to_have_text("A long text.")
        assert Draft.objects.get().data["comment"] == words


def test_a_label_of_one_tab_leaves_what_was_written_in_another_to_the_next_label(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: a draft is stored one second after the last key."""
    page = label_screen(open_page, member)
    other = second_page(page)
    other.goto(page.url)
    wait_for(other, "item-01")
    with other.expect_response("**/draft/"):
        other.fill("#comment", "Seven legs?")
    other.close()
    choose(page, "1", "item-02")
    expect_choices({"item-01": "valid"})
    page.goto(f"{page.url}?item=item-01")
    wait_for(page, "item-01")
    expect(page.locator("#comment")).to_have_value("Seven legs?")
    choose(page, "1", "item-02")
    expect(page.locator("[data-last]")).to_contain_text("item-01 is labelled")
    assert Label.objects.current().get().comment == "Seven legs?"
    assert not Draft.objects.exists()


def test_ones_own_words_are_not_told_as_written_on_another_page(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: a draft is stored one second after the last key."""
    page = label_screen(open_page, member)

    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/draft/", lose_answer)
    with page.expect_event("requestfailed"):
        page.fill("#comment", "One.")
    page.unroute("**/draft/")
    with page.expect_response(lambda answer: "/draft/" in answer.url and answer.ok):
        page.fill("#comment", "One. Two.")
    page.route("**/draft/", lose_answer)
    with page.expect_event("requestfailed"):
        page.fill("#comment", "One. Two. Three.")
    page.route("**/draft/", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.fill("#comment", "One. Two. Three. Four.")
    page.unroute("**/draft/")
    page.reload()
    wait_for(page, "item-01")
    expect(page.locator("#comment")).to_have_value("One. Two. Three. Four.")
    expect(page.locator("#trouble")).to_be_empty()


def test_a_comment_outlives_a_correction_and_comes_back_with_an_undone_label(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.fill("#comment", "One leg too few.")
    page.focus("[data-focus]")
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-revision="2"][data-ready]')
    assert page.input_value("#comment") == "One leg too few."
    page.keyboard.press("1")
    wait_for(page, "item-02")
    assert page.input_value("#comment") == ""
    assert Label.objects.get().comment == "One leg too few."
    page.keyboard.press(UNDO)
    wait_for(page, "item-01")
    assert page.input_value("#comment") == "One leg too few."


def test_a_text_in_an_open_editor_is_asked_about_before_a_label(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    page.click('.choice[value="valid"]')
    expect(page.get_by_role("dialog")).to_contain_text("You changed the text but did not save it.")
    page.wait_for_timeout(300)
    assert not Label.objects.exists()


def test_the_last_label_is_undone(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("2")
    wait_for(page, "item-02")
    page.keyboard.press(UNDO)
    wait_for(page, "item-01")
    assert not Label.objects.filter(current=True).exists()


def test_a_double_press_does_not_label_the_next_item(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.evaluate(f"() => {{{PRESSES}}}")
    wait_for(page, "item-02")
    page.wait_for_timeout(400)
    assert Label.objects.count() == 1


def test_a_double_click_does_not_label_the_next_item(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.dblclick('.choice[value="valid"]')
    wait_for(page, "item-02")
    assert Label.objects.count() == 1


def test_keys_mean_nothing_while_typing_or_with_modifiers(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("Control+1")
    page.keyboard.press("Alt+u")
    page.keyboard.press("c")
    page.keyboard.type("123 due")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.keyboard.press("1")
    page.keyboard.press("Escape")
    assert not Label.objects.exists()
    page.keyboard.press("4")
    wait_for(page, "item-02")
    assert Label.objects.get().comment == "123 due"


def test_single_keys_can_be_turned_off(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("?")
    page.uncheck("[data-single-keys]")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.wait_for_timeout(300)
    assert not Label.objects.exists()


def test_the_differences_turn_to_side_by_side_and_stay_so(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("d")
    expect(page.locator(".diff-sides")).to_be_visible()
    page.keyboard.press("1")
    wait_for(page, "item-02")
    expect(page.locator(".diff-sides")).to_be_visible()
    expect(page.locator(".diff-inline")).to_be_hidden()


def test_a_key_goes_from_change_to_change(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("n")
    assert said(page) == "Change 1 of 1, number"
    assert page.locator(".diff-inline [data-current]").count() == 2


def test_a_label_waits_for_the_connection_and_is_sent_once(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: what waits is tried every five seconds."""
    page = label_screen(open_page, member)
    lose_connection(page)
    page.keyboard.press("2")
    wait_for(page, "item-02")
    expect(page.locator("#outbox")).to_contain_text("1 label waits for the connection")
    assert not Label.objects.exists()
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_have_text("All your labels are saved now.")
    expect(page.locator("#outbox")).to_be_empty()
    assert Label.objects.get().choice == "invalid"


def test_a_label_of_texts_that_changed_meanwhile_is_not_stored(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    correct(member, take(member))
    page.keyboard.press("1")
    expect(page.locator(".label-notice")).to_contain_text("The item has changed")
    page.wait_for_selector('#panel[data-revision="2"]')
    assert not Label.objects.exists()


def test_someone_signed_out_comes_back_to_the_same_item_and_choice(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("4")
    expect(page.locator("#trouble")).to_contain_text("signed out")
    page.click("#trouble a")
    page.fill("[name=login]", member.account.username)
    page.fill("[name=password]", "a-long-enough-password")
    page.click("main button")
    wait_for(page, "item-01")
    expect(page.locator("[data-last]")).to_contain_text("You chose “Not relevant”")
    assert not Label.objects.exists()


def test_who_waits_keeps_the_focus_and_gets_the_item_that_comes(
    open_page: OpenPage, member: Membership
) -> None:
    Slot.objects.update(state="closed")
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, own_context=True)
    page.clock.install()
    page.reload()
    page.focus(".brand")
    page.evaluate("document.getElementById('panel').dataset.old = 'yes'")
    page.clock.run_for(31_000)
    page.wait_for_selector("#panel:not([data-old])")
    expect(page.locator(".brand")).to_be_focused()
    Slot.objects.update(state="open")
    page.clock.run_for(31_000)
    expect(page.locator("[data-focus]")).to_be_focused()
    assert said(page) == "Now item-01, Number errors."


def test_a_narrow_screen_shows_where_more_is_to_the_side(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    counts, is_cut = (
        page.locator(".my-items-row"),
        "counts => counts.scrollWidth > counts.clientWidth",
    )
    for width in (390, 900, 320):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(f"innerWidth === {width}")
        assert counts.evaluate(is_cut) == (width == 320)
    expect(counts.get_by_role("link", name="Reserved by others 0")).to_be_attached()
    assert "gradient" in counts.evaluate("counts => getComputedStyle(counts).backgroundImage")
    triangle = "summary => getComputedStyle(summary).listStylePosition"
    assert page.locator(".texts-sheet > summary").first.evaluate(triangle) == "inside"


def test_all_of_it_works_without_a_script(open_page: OpenPage, member: Membership) -> None:
    path = reverse("label", args=[member.project.slug])
    page = open_page(member.account, path, java_script_enabled=False)
    page.click("text=Correct")
    page.fill("#correct-text", "A spider has nine legs.")
    page.click("text=Save as a new revision")
    page.click('.choice[value="valid"]')
    expect(page.locator('#panel[data-item="item-02"]')).to_be_visible()
    assert Label.objects.get().revision.number == 2
    page.click("text=Undo")
    expect(page.locator('#panel[data-item="item-01"]')).to_be_visible()
