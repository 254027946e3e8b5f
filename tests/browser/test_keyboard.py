"""Fast hands at the label screen: nothing lands where it was not meant, and nothing is lost."""

import time
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from annotation.accounts import keymap
from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.models import Account, Draft, Label, Mark, Membership, Revision, Slot
from tests.browser.conftest import OpenPage
from tests.browser.screen import (
    choices,
    choose,
    expect_choices,
    label_screen,
    lose_connection,
    said,
    second_page,
    sent_to,
    the_label,
    wait_for,
    with_items,
)
from tests.browser.test_accessibility import violations
from tests.builders import (
    TEXTS,
    correct,
    make_guidelines,
    make_item,
    make_member,
    make_project,
    take,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]
# A key of nothing.
OTHER = next(key for key in "zyxw" if key not in DEFAULT_KEYS.values())

NOT_SURE, UNCLEAR = "5", "3"


@pytest.fixture
def member() -> Membership:
    return with_items(make_project(), 24)


def test_twenty_items_by_the_keyboard_alone(open_page: OpenPage, member: Membership) -> None:
    """Twenty seconds: so many items, each waited for as a person does."""
    page = label_screen(open_page, member)
    for number in range(1, 6):
        choose(page, "1", f"item-{number + 1:02}")
    page.keyboard.press("e")  # a correction
    page.keyboard.press("Control+a")
    page.keyboard.type("A spider has ten legs.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-item="item-06"][data-revision="2"][data-ready]')
    choose(page, "1", "item-07")
    page.keyboard.press(NOT_SURE)  # not sure, with the reason by one more key
    choose(page, UNCLEAR, "item-08")
    choose(page, "2", "item-09")
    choose(page, UNDO, "item-08")  # two undos
    choose(page, UNDO, "item-07")
    page.keyboard.press(NOT_SURE)
    choose(page, UNCLEAR, "item-08")
    for number in range(8, 21):
        choose(page, "3", f"item-{number + 1:02}")
    expect(page.locator(".last-ten button").first).to_contain_text("item-20")
    page.focus(".last-ten button:nth-of-type(3)")  # one of the last ten, changed
    page.keyboard.press("Enter")
    wait_for(page, "item-18")
    expect(page.locator(".label-history")).to_contain_text("You chose Score-invariant")
    choose(page, "4", "item-21")
    said = choices()
    assert len(said) == 20
    assert said["item-18"] == "not-relevant"
    assert Label.objects.get(item__key="item-07", current=True).answers["reason"]
    assert Revision.objects.filter(number=2).count() == 1
    assert Label.objects.filter(withdrawn_at__isnull=False).count() == 2
    expect(page.locator(".label-progress")).to_contain_text("20 by you")


@pytest.mark.parametrize("width, height", [(1280, 720), (390, 844)])
def test_of_twenty_keys_a_second_each_labels_an_item_that_was_seen_or_is_seen_to_be_dropped(
    open_page: OpenPage, member: Membership, width: int, height: int
) -> None:
    viewport = {"width": width, "height": height}
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, own_context=True, viewport=viewport)
    page.clock.install()  # so that a press is 50 ms after the last one on a slow machine too
    page.add_init_script(PRESSES)
    page.reload()
    page.clock.run_for(1000)
    wait_for(page, "item-01")
    page.wait_for_load_state("networkidle")
    for _ in range(60):
        page.keyboard.press("1")
        page.clock.run_for(50)
    presses = page.evaluate("presses")
    ready = [press for press in presses if press["isReady"]]
    assert (len(presses), len(ready) >= 3) == (60, True)
    ends = time.monotonic() + 20
    while Label.objects.count() < len(ready) and time.monotonic() < ends:
        page.clock.run_for(500)  # in which what waits is sent
    assert Label.objects.count() == len(ready)
    assert [press for press in presses if not (press["isReady"] or press["isRefused"])] == []
    assert min(Label.objects.values_list("seconds", flat=True)) >= 0.3  # so long it was in sight


def test_digits_right_after_one_that_was_ignored_answer_no_other_field(
    open_page: OpenPage,
) -> None:
    project = make_project(task_type="rating")
    for number in (1, 2):
        make_item(project, f"item-{number}", texts={"prompt": "?", "gold": ["a"], "response": "b"})
    address = reverse("label", args=[project.slug])
    page = open_page(make_member(project).account, address, own_context=True)
    page.clock.install()
    page.clock.pause_at(timezone.now() + timedelta(minutes=1))
    page.reload()
    page.wait_for_selector("#panel[data-item=item-1][data-guarded]")
    page.clock.run_for(100)
    for digit in "123":
        page.keyboard.press(digit)
        page.clock.run_for(200)
    assert said(page) == "Key ignored: a new item appeared while you were typing. Pause a moment."
    assert page.locator("#panel :checked").count() == 0
    page.clock.run_for(300)
    for digit in "123":
        page.keyboard.press(digit)
        page.clock.run_for(200)
    expect(page.locator("[name=correctness][value='3']")).to_be_focused()
    page.keyboard.press("Control+Enter")
    page.clock.run_for(1000)
    wait_for(page, "item-2")
    assert list(the_label().answers.values()) == [1, 2, 3]


# What each press met, before and after the page's own scripts saw it.
PRESSES = """(() => {
  const words = (selector) => document.querySelector(selector)?.textContent ?? "";
  let isReady;
  window.presses = [];
  addEventListener("keydown", () => {
    isReady = "ready" in document.getElementById("panel").dataset;
  }, true);
  addEventListener("keydown", () => {
    const sign = getComputedStyle(document.querySelector(".label-form"), "::before").content;
    const told = words("[data-last]");
    const isRefused = sign.includes("Key ignored") || told.includes("waiting to be sent");
    window.presses.push({ isReady, isRefused });
  });
})()"""


def test_a_key_that_is_held_down_is_one_press(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    page.keyboard.down("1")
    for _ in range(3):
        page.keyboard.down("1")  # what the keyboard repeats by itself
    wait_for(page, "item-02")
    page.keyboard.up("1")
    choose(page, "2", "item-03")
    expect_choices({"item-01": "valid", "item-02": "invalid"})


def test_the_next_item_is_here_before_it_is_needed(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    with page.expect_response("**/label/next/"):
        page.reload()
    wait_for(page, "item-01")
    assert set(held_by(member)) == {"item-01", "item-02"}
    with page.expect_response("**/label/submit/") as answered:
        page.keyboard.press("1")
    assert answered.value.text() == "item-01 is labelled: Valid."  # the next item is here already
    wait_for(page, "item-02")
    expect(page.locator("#announcer")).to_have_text("item-01: Valid. Now item-02, Number errors.")
    expect(page.locator("[data-last]")).to_have_text("item-01 is labelled: Valid.")
    page.wait_for_load_state("networkidle")
    assert set(held_by(member)) == {"item-02", "item-03"}


def held_by(member: Membership) -> list[str]:
    held = Slot.objects.filter(member=member, state="held")
    return list(held.values_list("item__key", flat=True))


def hold_labels(page: Page) -> list[Route]:
    """Labels on their way, which the test lets go on when it wants to."""
    held: list[Route] = []
    page.route("**/label/submit/", lambda route: held.append(route))
    return held


def label_with_nothing_next(page: Page) -> list[Route]:
    """Label the first item while the next one is not here; the label is held on its way."""
    page.route("**/label/next/", lambda route: route.abort())
    page.reload()
    wait_for(page, "item-01")
    held = hold_labels(page)
    page.keyboard.press("1")
    return held


def let_first_go(page: Page, held: list[Route]) -> None:
    """The first label goes on, once the test has heard of it: the page knows of it before."""
    for _ in range(1_000):
        if held:
            break
        page.wait_for_timeout(20)
    held[0].continue_()


def let_go(page: Page) -> None:
    page.unroute("**/label/submit/")  # what is held goes on


def test_the_next_item_is_painted_at_once_and_what_was_chosen_is_said(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    hold_labels(page)
    choose(page, "2", "item-02")
    expect(page.locator("[data-last]")).to_have_text("item-01: Invalid.")
    assert not Label.objects.exists()
    let_go(page)
    expect(page.locator("[data-last]")).to_have_text("item-01 is labelled: Invalid.")
    expect_choices({"item-01": "invalid"})


def test_a_label_given_while_the_one_before_is_on_its_way_comes_after_it(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    held = hold_labels(page)
    choose(page, "2", "item-02")
    page.keyboard.press("3")
    page.keyboard.press("1")  # one too many
    expect(page.locator("[data-last]")).to_contain_text("is waiting to be sent")
    assert len(held) == 1
    let_go(page)
    wait_for(page, "item-03")
    expect_choices({"item-01": "invalid", "item-02": "score-invariant"})
    assert list(Label.objects.order_by("pk").values_list("item__key", flat=True)) == [
        "item-01", "item-02",
    ]  # fmt: skip


def test_an_undo_waits_for_the_label_that_it_takes_back(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    hold_labels(page)
    page.keyboard.press("2")
    page.wait_for_selector('#panel[data-item="item-02"]')
    page.keyboard.press(UNDO)  # at once: no item need be looked at for that
    page.wait_for_timeout(100)
    let_go(page)
    wait_for(page, "item-01")
    assert choices() == {}
    assert Label.objects.get().withdrawn_at


def test_a_refused_label_brings_its_item_back_and_keeps_what_was_begun_on_the_next(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    hold_labels(page)
    choose(page, "1", "item-02")
    page.keyboard.press("c")
    page.keyboard.type("Eight is right.")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    correct(member, take(member))
    let_go(page)
    page.wait_for_selector('#panel[data-item="item-01"][data-revision="2"][data-ready]')
    expect(page.locator(".label-notice")).to_contain_text("The item has changed")
    assert choices() == {}
    choose(page, "3", "item-02")
    assert page.input_value("#comment") == "Eight is right."
    expect(page.locator("[data-last]")).to_contain_text("You chose “Invalid” for this item")
    choose(page, "2", "item-03")
    expect_choices({"item-01": "score-invariant", "item-02": "invalid"})


def test_who_was_signed_out_is_taken_back_to_the_item_whose_label_was_not_stored(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    Session.objects.all().delete()
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("You have been signed out.")
    wait_for(page, "item-01")
    assert page.get_attribute('.choice[value="invalid"]', "data-chosen") == ""
    page.fill("#comment", "Written on.")
    expect(page.locator("#trouble")).to_contain_text("You have been signed out.")


def test_a_label_waiting_for_the_one_before_survives_closing(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    hold_labels(page)
    choose(page, "2", "item-02")
    page.keyboard.press("3")
    again = second_page(page)
    page.close()
    again.goto(reverse("label", args=[member.project.slug]))
    wait_for(again, "item-03")
    expect_choices({"item-01": "invalid", "item-02": "score-invariant"})


def test_a_comment_is_not_begun_on_an_item_that_is_going(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("2")
    page.keyboard.press("c")
    assert page.evaluate("document.activeElement.id") != "comment"
    wait_for(page, "item-02")
    page.keyboard.press("c")
    expect(page.locator("#comment")).to_be_focused()


def test_a_key_for_what_is_not_there_says_so(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("g")
    expect(page.locator("[data-last]")).to_have_text("This project has no guidelines yet.")


@pytest.mark.parametrize("width, height", [(1280, 720), (390, 844)])
def test_labels_made_offline_survive_closing_and_are_sent_once(
    open_page: OpenPage, member: Membership, width: int, height: int
) -> None:
    page = label_screen(open_page, member, viewport={"width": width, "height": height})
    page.wait_for_load_state("networkidle")
    page.keyboard.press("c")
    page.keyboard.type("Without a net.")
    page.keyboard.press("Escape")
    lose_connection(page)
    choose(page, "2", "item-02")
    page.keyboard.press("3")
    expect(page.locator("#outbox")).to_contain_text("2 labels wait for the connection")
    again = second_page(page)
    page.close()
    posts = sent_to(again, "/label/submit/")
    page.context.set_offline(False)
    again.goto(reverse("label", args=[member.project.slug]))
    wait_for(again, "item-03")  # what is labelled is not shown to be labelled again
    expect(again.locator("#outbox")).to_be_empty()
    expect_choices({"item-01": "invalid", "item-02": "score-invariant"})
    assert Label.objects.get(choice="invalid").comment == "Without a net."
    assert Label.objects.count() == len(posts) == 2


def test_a_label_whose_answer_is_slow_is_waited_for_where_the_next_item_is_not_here(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    held = label_with_nothing_next(page)
    expect(page.locator('#panel[data-guarded] .choice[data-chosen][value="valid"]')).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator("[data-last]")).to_contain_text("is waiting to be sent")
    let_first_go(page, held)
    wait_for(page, "item-02")
    expect_choices({"item-01": "valid"})


def test_a_refused_label_brings_the_item_back_with_what_was_written(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("c")
    page.keyboard.type("Seven would be wrong too.")
    page.keyboard.press("Escape")
    correct(member, take(member))
    page.keyboard.press("1")
    page.wait_for_selector('#panel[data-item="item-01"][data-revision="2"][data-ready]')
    expect(page.locator(".label-notice")).to_contain_text("The item has changed")
    assert page.input_value("#comment") == "Seven would be wrong too."
    choose(page, "2", "item-02")
    expect_choices({"item-01": "invalid"})


def test_a_label_refused_after_the_connection_came_back_is_shown_until_it_is_seen(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: what waits is tried every five seconds."""
    page = label_screen(open_page, member)
    lose_connection(page)
    choose(page, "1", "item-02")
    correct(member, take(member))
    page.context.set_offline(False)
    expect(page.locator("#outbox")).to_contain_text("“Valid” of item-01 was not saved")
    page.click("text=Open the item")
    page.wait_for_selector('#panel[data-item="item-01"][data-revision="2"][data-ready]')
    expect(page.locator("#outbox")).to_be_empty()


def test_what_was_begun_survives_a_reload_and_another_computer(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("c")
    page.keyboard.type("Half a thought")
    page.reload()  # at once: what the server did not get is kept here
    wait_for(page, "item-01")
    assert page.input_value("#comment") == "Half a thought"
    with page.expect_response("**/label/draft/"):
        page.focus("#comment")
        page.keyboard.press("End")
        page.keyboard.type(", and more")
    other = label_screen(open_page, member)
    assert other.input_value("#comment") == "Half a thought, and more"
    choose(other, "1", "item-02")
    assert Label.objects.get().comment == "Half a thought, and more"
    assert not Draft.objects.exists()


def test_a_half_written_correction_is_there_again(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("e")
    with page.expect_response("**/label/draft/"):
        page.keyboard.press("Control+Home")
        page.keyboard.type("In fact: ")
    other = label_screen(open_page, member)
    other.keyboard.press("e")
    assert other.input_value("#correct-text") == f"In fact: {TEXTS['perturbed']}"
    expect(other.locator("[data-restored]")).to_be_visible()
    other.keyboard.press("Escape")
    expect(other.locator("[data-edit]")).to_contain_text("(draft)")
    other.keyboard.press("e")
    other.click("[data-discard]")
    assert other.input_value("#correct-text") == TEXTS["perturbed"]


def test_an_item_shown_blind_first_gives_nothing_away(open_page: OpenPage) -> None:
    member = with_items(make_project(blind_first=True), 3)
    page = open_page(member.account, reverse("label", args=[member.project.slug]))
    page.wait_for_selector("#panel[data-phase=blind][data-ready]")
    ahead = page.request.get(reverse("label-next", args=[member.project.slug])).text()
    assert 'data-item="first-look-' in ahead
    for source in (page.content(), ahead):
        assert "item-0" not in source
        assert TEXTS["gold"] not in source
        assert "number-errors" not in source
        assert "Number errors" not in source
        assert "Perturbed" not in source  # its title alone would say that there is an error
    assert TEXTS["perturbed"] in page.inner_text("#panel")
    answer_blind(page)
    page.wait_for_selector('#panel[data-item="item-01"][data-phase="label"][data-ready]')
    assert page.locator(".label-first-look :is(dt, dd)").all_inner_texts() == [
        "Is there an error?", "Yes", "Where, in words?", "in the number", "How bad is it?",
        "3 Severe",
    ]  # fmt: skip
    assert page.locator("#panel del").count() >= 1
    page.keyboard.press("1")
    page.wait_for_selector("#panel[data-phase=blind][data-ready]")
    stages = list(Label.objects.order_by("pk").values_list("stage", flat=True))
    assert stages == ["blind", "label"]


def answer_blind(page: Page) -> None:
    """There is an error, where (in words), and how bad: by the keyboard alone."""
    page.keyboard.press("1")
    page.keyboard.press("ArrowDown")
    page.keyboard.type("in the number")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("3")
    page.keyboard.press("Control+Enter")


def test_siblings_and_guidelines_open_by_a_key_and_close_by_another(
    open_page: OpenPage, member: Membership
) -> None:
    make_guidelines(member.project, "# Read both\n\n- slowly")
    page = label_screen(open_page, member)
    choose(page, "1", "item-02")
    choose(page, "2", "item-03")
    page.keyboard.press("b")
    expect(page.locator("#beside")).to_contain_text("item-01")
    expect(page.locator("#beside li").first).to_contain_text("Valid")
    expect(page.locator("#beside [data-focus]")).to_be_focused()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#beside")).to_be_hidden()
    page.keyboard.press("g")
    expect(page.locator("#beside li")).to_have_text("slowly")
    assert violations(page) == []
    choose(page, "1", "item-04")
    expect(page.locator("#beside li")).to_have_text("slowly")


def test_comments_are_read_and_written_beside_the_work_after_ones_own_label(
    open_page: OpenPage, member: Membership
) -> None:
    first = member.project.items.get(key="item-01")
    page = label_screen(open_page, member)
    page.keyboard.press("m")
    expect(page.locator("#announcer")).to_contain_text("Label an item first")
    choose(page, "1", "item-02")
    page.keyboard.press("m")
    expect(page.locator("#new-comment")).to_be_focused()  # there is nothing to read yet
    page.keyboard.type("unsure, see 2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#beside .entries")).to_contain_text("unsure, see 2")
    assert first.comments.get().text == "unsure, see 2"
    expect_choices({"item-01": "valid"})
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#beside")).to_be_hidden()
    page.keyboard.press("m")
    expect(page.locator("#beside [data-focus]")).to_be_focused()
    assert violations(page) == []


def test_comments_on_the_first_label_wait_for_the_next_item_which_brings_their_link(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    held: list[Route] = []
    page.route("**/label/next/**", lambda route: held.append(route))
    with page.expect_response("**/label/submit/"):
        choose(page, "1", "item-02")
    page.keyboard.press("m")
    page.wait_for_timeout(300)
    expect(page.locator("#announcer")).not_to_contain_text("Label an item first")
    for route in held:
        route.continue_()
    page.unroute("**/label/next/**")
    expect(page.locator("#new-comment")).to_be_focused()


def test_new_guidelines_are_announced_until_they_are_read(
    open_page: OpenPage, member: Membership
) -> None:
    make_guidelines(member.project)
    page = label_screen(open_page, member)
    expect(page.locator("[data-news]")).to_contain_text("There are guidelines.")
    page.click("[data-news] button")
    expect(page.locator("[data-news]")).to_have_count(0)
    page.reload()
    wait_for(page, "item-01")
    expect(page.locator("[data-news]")).to_have_count(0)


def test_an_item_is_skipped_flagged_and_taken_back(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("f")
    expect(page.locator('[aria-pressed="true"]')).to_have_count(1)
    expect(page.locator("#announcer")).to_have_text("item-01 is flagged for a lead.")
    choose(page, "s", "item-02")
    kinds = Mark.objects.in_force().order_by("kind").values_list("kind", flat=True)
    assert list(kinds) == ["flag", "skip"]
    page.click("text=Skipped 1")
    page.click("text=Label now")
    wait_for(page, "item-01")
    choose(page, "1", "item-02")
    expect_choices({"item-01": "valid"})


def test_keys_follow_what_the_person_chose(open_page: OpenPage, member: Membership) -> None:
    Account.objects.filter(pk=member.account_id).update(keys={"undo": OTHER, "option-1": "v"})
    page = label_screen(open_page, member)
    assert page.inner_text("[data-undo] kbd") == OTHER
    assert page.inner_text('.choice[value="valid"] kbd') == "v"
    page.keyboard.press("1")
    page.keyboard.press(UNDO)
    choose(page, "v", "item-02")
    choose(page, "2", "item-03")
    choose(page, OTHER, "item-02")
    expect_choices({"item-01": "valid"})


def test_a_hotkey_is_changed_in_one_place(
    open_page: OpenPage, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(keymap.DEFAULT_KEYS, "undo", OTHER)
    page = label_screen(open_page, member)
    assert page.inner_text("[data-undo] kbd") == OTHER
    choose(page, "1", "item-02")
    page.keyboard.press(UNDO)
    choose(page, OTHER, "item-01")
    assert choices() == {}


def test_digits_of_a_french_keyboard_need_no_shift(open_page: OpenPage, member: Membership) -> None:
    page = label_screen(open_page, member)
    press = 'new KeyboardEvent("keydown", {key: "é", code: "Digit2", bubbles: true})'
    page.evaluate(f"document.body.dispatchEvent({press})")
    wait_for(page, "item-02")
    expect_choices({"item-01": "invalid"})


def test_who_was_away_is_told_before_the_label_is_taken(
    open_page: OpenPage, member: Membership
) -> None:
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, own_context=True)
    page.clock.install()
    page.reload()
    page.clock.run_for(1000)
    wait_for(page, "item-01")
    page.wait_for_load_state("networkidle")  # what comes in holds the item anew
    Slot.objects.filter(state="held").update(held_until=timezone.now() - timedelta(minutes=1))
    take(make_member(member.project))
    page.clock.fast_forward(31 * 60_000)
    page.keyboard.press("1")
    expect(page.locator("[data-last]")).to_contain_text("may have been reassigned")
    assert choices() == {}
    page.clock.run_for(1000)
    wait_for(page, "item-01")
    page.keyboard.press("1")
    page.clock.run_for(1000)
    expect(page.locator("[data-last]")).to_contain_text("saved as an extra one")
    expect_choices({"item-01": "valid"})


def test_a_second_press_is_refused_while_it_is_asked_whether_the_item_is_still_held(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    page.evaluate("document.getElementById('screen').dataset.holdMinutes = '0.001'")
    held: list[Route] = []
    page.route("**/label/hold/", lambda route: held.append(route))
    page.wait_for_timeout(200)
    page.keyboard.press("1")
    page.keyboard.press("s")
    expect(page.locator("[data-refused] .label-form")).to_have_count(1)
    page.evaluate("document.getElementById('screen').dataset.holdMinutes = '30'")
    page.unroute("**/label/hold/")
    wait_for(page, "item-02")
    choose(page, "2", "item-03")
    expect_choices({"item-01": "valid", "item-02": "invalid"})
    assert not Mark.objects.exists()


def test_what_another_window_sent_waits_here_no_more(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    page.route("**/projects/**", lambda route: route.abort())
    choose(page, "2", "item-02")
    page.keyboard.press("3")
    expect(page.locator("#outbox")).to_contain_text("2 labels wait for the connection")
    other = second_page(page)
    other.goto(reverse("label", args=[member.project.slug]))
    wait_for(other, "item-03")
    page.unroute("**/projects/**")
    expect(page.locator("#outbox")).to_be_empty()
    page.click("text=Try again now")
    wait_for(page, "item-03")
    choose(page, "1", "item-04")
    expect_choices({"item-01": "invalid", "item-02": "score-invariant", "item-03": "valid"})


def test_new_guidelines_are_confirmed_by_two_keys(open_page: OpenPage, member: Membership) -> None:
    make_guidelines(member.project, "Read both answers.")
    page = label_screen(open_page, member)
    page.keyboard.press("g")
    expect(page.locator("#beside [data-news] button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[data-news]")).to_have_count(0)
    expect(page.locator("#beside")).to_be_hidden()
    member.refresh_from_db()
    assert member.guidelines_seen == 1
    page.keyboard.press("g")
    expect(page.locator("#beside h2")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    wait_for(page, "item-02")


def test_a_label_that_waited_and_is_refused_leaves_a_screen_that_goes_on(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: what waits is tried every five seconds."""
    page = label_screen(open_page, member)
    lose_connection(page)
    choose(page, "1", "item-02")
    page.keyboard.press("2")
    expect(page.locator("#outbox")).to_contain_text("2 labels wait for the connection")
    correct(member, take(member, ahead=True))
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_have_text("1 label was not saved; see above.")
    page.wait_for_selector('#panel[data-item="item-02"][data-revision="2"][data-ready]')
    choose(page, "3", "item-03")
    expect_choices({"item-01": "valid", "item-02": "score-invariant"})


def test_comments_are_those_of_the_item_labelled_last_also_while_its_label_is_on_its_way(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    choose(page, "1", "item-02")
    page.wait_for_load_state("networkidle")
    hold_labels(page)
    choose(page, "2", "item-03")
    page.keyboard.press("m")
    page.wait_for_timeout(200)
    let_go(page)
    expect(page.locator("#beside h2").first).to_have_text("Comments on item-02")


def test_letters_of_a_comment_do_nothing_to_an_item_that_comes_while_it_is_written(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    hold_labels(page)
    choose(page, "1", "item-02")
    page.keyboard.press("c")
    page.keyboard.type("us")
    correct(member, take(member))
    let_go(page)
    page.wait_for_selector('#panel[data-item="item-01"][data-revision="2"]')
    page.keyboard.type("us2us2", delay=150)
    expect(page.locator("[data-refused] .label-form")).to_have_count(1)
    assert not Label.objects.exists()
    assert not Mark.objects.exists()
    wait_for(page, "item-01")
    choose(page, "2", "item-02")
    assert page.input_value("#comment") == "us"


def test_a_comment_that_is_still_on_its_way_is_not_missing_when_its_item_comes_again(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    labels = hold_labels(page)
    drafts: list[Route] = []
    page.route("**/label/draft/", lambda route: drafts.append(route))
    choose(page, "1", "item-02")
    page.keyboard.press("c")
    page.keyboard.type("us")
    correct(member, take(member))
    labels[0].continue_()
    wait_for(page, "item-01")
    with page.expect_response("**/label/draft/"):
        drafts[0].continue_()
    page.wait_for_function(
        "() => Object.keys(localStorage).filter((name) => name.startsWith('draft|'))"
        ".every((name) => JSON.parse(localStorage[name]).isStored)"
    )
    let_go(page)
    choose(page, "2", "item-02")
    assert page.input_value("#comment") == "us"


def test_a_comment_cannot_be_written_while_its_label_is_on_its_way(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    held = label_with_nothing_next(page)
    page.click("#comment")
    page.keyboard.type("too late")
    assert page.input_value("#comment") == ""
    let_first_go(page, held)
    wait_for(page, "item-02")
    expect_choices({"item-01": "valid"})


def test_what_is_sent_again_by_itself_waits_once_somebody_writes_on(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.keyboard.press("e")
    page.keyboard.press("Control+Home")
    page.keyboard.type("In fact: ")
    lose_connection(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#trouble")).to_contain_text("Retrying every few seconds")
    page.click("#correct-text")
    page.keyboard.press("Home")
    page.keyboard.type("Now, ")
    expect(page.locator("#trouble")).to_contain_text("You kept typing")
    page.context.set_offline(False)
    page.wait_for_timeout(300)
    assert Revision.objects.filter(number=2).count() == 0
    page.click("text=Try again now")
    page.wait_for_selector('#panel[data-revision="2"][data-ready]')
    assert Revision.objects.get(number=2).texts["perturbed"].startswith("Now, In fact: ")


def test_an_open_page_holds_on_while_the_person_works(
    open_page: OpenPage, member: Membership
) -> None:
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, own_context=True)
    page.clock.install()
    page.reload()
    page.clock.run_for(1000)
    wait_for(page, "item-01")
    first = held_until(member)
    page.keyboard.press("n")
    with page.expect_response("**/label/hold/"):
        page.clock.run_for(10 * 60_000 + 1000)
    assert held_until(member) > first


def held_until(member: Membership) -> object:
    return Slot.objects.get(member=member, item__key="item-01").held_until
