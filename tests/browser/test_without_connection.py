"""The label screen without a connection: nothing is lost, and what waits is said in sight."""

from typing import Any

import pytest
from django.db import OperationalError
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from annotation.accounts.keymap import DEFAULT_KEYS
from annotation.models import Draft, Item, Label, Membership, Slot
from tests.browser.conftest import OpenPage
from tests.browser.screen import (
    choose,
    expect_choices,
    label_screen,
    second_page,
    wait_for,
    with_items,
)
from tests.browser.test_accessibility import checked
from tests.builders import make_member, make_project, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

UNDO = DEFAULT_KEYS["undo"]


@pytest.fixture
def member() -> Membership:
    return with_items(make_project(), 24)


def at_the_last_item_offline(open_page: OpenPage, member: Membership) -> Page:
    """Where a label waits and no other item is here."""
    page = label_screen(open_page, member)
    page.route("**/ahead/", lambda route: route.abort())
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    choose(page, "2", "item-02")
    page.keyboard.press("3")
    expect(page.locator("#outbox")).to_contain_text("2 labels wait for the connection")
    expect(page.locator("#outbox")).to_contain_text("Then the next item follows.")
    return page


def test_that_no_item_is_left_is_in_sight_until_the_connection_is_back(
    open_page: OpenPage, member: Membership
) -> None:
    page = at_the_last_item_offline(open_page, member)
    page.context.set_offline(False)
    wait_for(page, "item-03")
    expect(page.locator("#outbox")).to_be_empty()
    expect(page.locator("[data-last]")).to_have_text("All your labels are saved now.")
    expect_choices({"item-01": "invalid", "item-02": "score-invariant"})


def test_a_label_that_the_server_cannot_read_keeps_neither_its_item_nor_others(
    open_page: OpenPage, member: Membership
) -> None:
    page = at_the_last_item_offline(open_page, member)

    def refuse_the_first(route: Route) -> None:
        if "item-01" in str(route.request.post_data):
            route.fulfill(status=400, body="")
        else:
            route.continue_()

    page.route("**/submit/", refuse_the_first)
    page.context.set_offline(False)
    refused = page.locator("#outbox").get_by_text("Your label “Invalid” of item-01 was not saved.")
    expect(refused).to_be_visible()
    expect_choices({"item-02": "score-invariant"})
    page.unroute("**/submit/")
    wait_for(page, "item-01")
    page.keyboard.press("1")
    wait_for(page, "item-03")
    expect_choices({"item-01": "valid", "item-02": "score-invariant"})


def test_labels_are_sent_also_if_their_author_and_project_were_renamed_meanwhile(
    open_page: OpenPage, member: Membership
) -> None:
    page = at_the_last_item_offline(open_page, member)
    member.alias, member.project.slug = "somebody", "elsewhere"
    member.save()
    member.project.save()
    page.context.set_offline(False)
    page.goto(reverse("label", args=["elsewhere"]))
    wait_for(page, "item-03")
    expect_choices({"item-01": "invalid", "item-02": "score-invariant"})


def test_labels_that_were_kept_by_names_before_an_update_are_sent(
    open_page: OpenPage, member: Membership
) -> None:
    page = at_the_last_item_offline(open_page, member)
    former = f"outbox|{member.project.slug} {member.alias}"
    page.evaluate(
        """(former) => {
            const name = Object.keys(localStorage).find((one) => one.startsWith("outbox|"));
            localStorage.setItem(former, localStorage.getItem(name));
            localStorage.removeItem(name);
        }""",
        former,
    )
    page.context.set_offline(False)
    page.reload()
    wait_for(page, "item-03")
    expect_choices({"item-01": "invalid", "item-02": "score-invariant"})
    assert (
        page.evaluate("Object.keys(localStorage).filter((one) => one.startsWith('outbox'))") == []
    )


@pytest.mark.parametrize("key", ["1", UNDO, "s", "f", "c", "e"])
def test_a_key_that_can_do_nothing_without_a_connection_says_so(
    open_page: OpenPage, member: Membership, key: str
) -> None:
    page = at_the_last_item_offline(open_page, member)
    page.keyboard.press(key)
    expect(page.locator("[data-last]")).to_have_text(
        "Your label of this item is waiting to be sent. Then the next item follows."
    )
    assert not Label.objects.exists()


@pytest.mark.parametrize(
    "key, place, said",
    [
        ("s", "#trouble", "The item is not skipped yet."),
        (UNDO, "#trouble", "Nothing was undone yet."),
        ("f", "[data-last]", "The flag could not be set."),
    ],
)
def test_what_needs_the_connection_says_that_it_waits(
    open_page: OpenPage, member: Membership, key: str, place: str, said: str
) -> None:
    page = label_screen(open_page, member)
    page.context.set_offline(True)
    page.keyboard.press(key)
    expect(page.locator(place)).to_contain_text(said)


def test_an_undo_whose_answer_is_lost_undoes_one_label_only(
    open_page: OpenPage, member: Membership
) -> None:
    """Some five seconds, until it is sent again."""
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    for number in (2, 3):
        choose(page, "2", f"item-{number:02}")
    page.wait_for_load_state("networkidle")
    lost: list[Route] = []

    def lose_the_first(route: Route) -> None:
        if lost:
            route.fallback()
            return
        lost.append(route)
        route.fetch()
        route.abort()

    page.route("**/undo/", lose_the_first)
    page.keyboard.press(UNDO)
    expect(page.locator("#trouble")).to_contain_text("Nothing was undone yet.")
    wait_for(page, "item-02")
    expect(page.locator("#trouble")).to_be_empty()
    expect_choices({"item-01": "invalid"})


def test_what_is_said_comes_to_who_has_scrolled_down(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.set_viewport_size({"width": 390, "height": 400})
    page.evaluate("scrollTo(0, 600)")
    page.keyboard.press("g")
    expect(page.locator("[data-last]")).to_be_in_viewport()


@pytest.mark.parametrize("width, height", [(1280, 720), (390, 844)])
def test_a_database_that_is_away_is_told_in_words_on_a_page_that_asks_it_nothing(
    open_page: OpenPage,
    member: Membership,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    height: int,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    address = reverse("project", args=[member.project.slug])
    page = open_page(member.account, address, viewport={"width": width, "height": height})
    with monkeypatch.context() as broken:
        # What every page asks first: who is there.
        broken.setattr("annotation.accounts.sessions.SessionStore.load", away)
        page.reload()
        expect(page.get_by_role("heading")).to_have_text("The database is not available")
        expect(page.get_by_text("Everything you saved earlier is safe.")).to_be_in_viewport()
        expect(page.get_by_role("link", name="Go to projects")).to_be_in_viewport()
        checked(page)
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_contain_text(member.project.name)


def test_a_window_without_room_drops_nothing_that_another_window_keeps(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    other = page.context.new_page()
    other.goto(page.url)
    for one in (page, other):
        one.wait_for_load_state("networkidle")
    page.evaluate(
        """() => {
          globalThis.setItem = Storage.prototype.setItem;
          Storage.prototype.setItem = () => { throw new Error("full"); };
        }"""
    )
    page.context.set_offline(True)
    choose(page, "1", "item-02")
    expect(page.locator("#outbox")).to_contain_text("Saved on this page only")
    choose(other, "2", "item-02")
    page.evaluate("() => { Storage.prototype.setItem = globalThis.setItem; }")
    page.keyboard.press("1")
    expect(page.locator("#outbox")).to_contain_text("3 labels wait for the connection")
    expect(other.locator("#outbox")).to_contain_text("3 labels wait for the connection")


def write_and_leave(open_page: OpenPage, member: Membership) -> Page:
    """Write a comment on the first item without a connection, and close the page; return another
    page of the same browser."""
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    other = second_page(page)
    page.context.set_offline(True)
    with page.expect_event("requestfailed", lambda request: "/draft/" in request.url):
        page.fill("#comment", "Eight, not six.")
    page.close()
    return other


def test_what_was_written_without_a_connection_is_a_draft_after_the_item_went_to_somebody_else(
    open_page: OpenPage, member: Membership
) -> None:
    other = write_and_leave(open_page, member)
    Slot.objects.filter(state="held").update(held_until=timezone.now())
    colleague = make_member(member.project)
    say(colleague, take(colleague))
    other.context.set_offline(False)
    with other.expect_response("**/draft/"):
        other.goto(reverse("label", args=[member.project.slug]))
    wait_for(other, "item-02")
    assert Draft.objects.get().data["comment"] == "Eight, not six."
    other.goto(f"{other.url}?item=item-01")
    wait_for(other, "item-01")
    expect(other.locator("#comment")).to_have_value("Eight, not six.")


def test_a_draft_that_was_left_and_is_refused_is_sent_once(
    open_page: OpenPage, member: Membership
) -> None:
    other = write_and_leave(open_page, member)
    item = Item.objects.get(key="item-01")
    Draft.objects.create(member=member, item=item, revision=1, data={"comment": "From elsewhere."})
    other.context.set_offline(False)
    answers: list[int] = []
    other.on("response", lambda one: "/draft/" in one.url and answers.append(one.status))
    for _ in range(2):
        other.goto(f"{reverse('label', args=[member.project.slug])}?item=item-02")
        wait_for(other, "item-02")
        other.wait_for_load_state("networkidle")
    assert answers == [409]
    assert Draft.objects.get().data["comment"] == "From elsewhere."


def test_a_draft_is_stored_by_itself_once_the_connection_is_back(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: it is tried again every five seconds."""
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    with page.expect_event("requestfailed", lambda request: "/draft/" in request.url):
        page.fill("#comment", "Eight, not six.")
    page.context.set_offline(False)
    with page.expect_response("**/draft/"):
        pass
    assert Draft.objects.get().data["comment"] == "Eight, not six."


def test_a_draft_that_was_left_is_in_the_form_of_the_next_item(
    open_page: OpenPage, member: Membership
) -> None:
    page = label_screen(open_page, member)
    page.wait_for_load_state("networkidle")
    choose(page, "1", "item-02")
    page.context.route("**/draft/", lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: "/draft/" in request.url):
        page.fill("#comment", "Eight, not six.")
    page.keyboard.press("Escape")
    page.keyboard.press(UNDO)
    wait_for(page, "item-01")
    other = second_page(page)
    page.close()
    other.context.unroute("**/draft/")
    passed: list[str] = []
    other.on("requestfinished", lambda one: passed.append(f"{one.url.split('/')[-2]} ended"))
    other.on("request", lambda one: passed.append(f"{one.url.split('/')[-2]} began"))
    other.goto(reverse("label", args=[member.project.slug]))
    wait_for(other, "item-01")
    other.wait_for_load_state("networkidle")
    assert passed.index("draft ended") < passed.index("next began")
    choose(other, "2", "item-02")
    expect(other.locator("#comment")).to_have_value("Eight, not six.")
