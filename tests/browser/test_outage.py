"""An outage of minutes is not felt: items ahead, a reload, and every label on record once."""

import time
from typing import Any

import pytest
from django.core.servers.basehttp import WSGIRequestHandler
from django.urls import reverse
from playwright.sync_api import BrowserContext, Page, expect

from annotation.labelling import queue
from annotation.models import Label, Membership, Slot
from tests.browser.conftest import OpenPage
from tests.browser.screen import expect_choices, label_screen, wait_for, with_items
from tests.browser.test_accessibility import checked
from tests.builders import make_member, make_project, say, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# The names of the items that a reload would show, in order.
KEPT = """async () => {
  const [name] = (await caches.keys()).filter((one) => one.startsWith("label|"));
  if (!name) return null;
  const cache = await caches.open(name);
  const base = document.getElementById("screen").dataset.base;
  const order = await cache.match(`${base}kept/?name=order`);
  const page = await cache.match(base);
  return page && order ? (await order.json()).join(" ") : "";
}"""
CACHES = "async () => (await caches.keys()).filter((one) => one.startsWith('label|'))"


@pytest.fixture(autouse=True)
def _server_is_away_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chromium's own switch lets a request through now and then, right after a reload."""
    switch, read = BrowserContext.set_offline, WSGIRequestHandler.parse_request

    def cut(handler: WSGIRequestHandler) -> bool:
        handler.close_connection = True
        return False

    def set_offline(context: BrowserContext, offline: bool) -> None:
        monkeypatch.setattr(WSGIRequestHandler, "parse_request", cut if offline else read)
        switch(context, offline)

    monkeypatch.setattr(BrowserContext, "set_offline", set_offline)


@pytest.fixture
def member() -> Membership:
    return with_items(make_project(), 24)


def prepared(open_page: OpenPage, member: Membership, **options: Any) -> Page:
    """The label screen, once the browser keeps the page and ten items."""
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, **{"service_workers": "allow"} | options)
    page.wait_for_selector("#panel[data-ready]")
    wait_until_kept(page, 10)
    return page


def wait_until_kept(page: Page, number: int) -> None:
    ends = time.monotonic() + 20
    while len(str(kept := page.evaluate(KEPT)).split()) != number:
        assert time.monotonic() < ends, kept
        page.wait_for_timeout(100)


def item_of(page: Page) -> str:
    return page.get_attribute("#panel", "data-item") or ""


def label(page: Page, digit: str = "1") -> None:
    """Press the key, and wait for another item."""
    before = item_of(page)
    page.wait_for_selector("#panel[data-ready]")
    page.keyboard.press(digit)
    page.wait_for_selector(f'#panel[data-ready]:not([data-item="{before}"])')


def test_labels_go_on_without_a_connection_and_over_a_reload_and_are_on_record_once(
    open_page: OpenPage, member: Membership
) -> None:
    """Some ten seconds: ten items, a reload, and the way back."""
    page = prepared(open_page, member)
    page.context.set_offline(True)
    for _ in range(4):
        label(page, "2")
    assert item_of(page) == "item-05"
    expect(page.locator("#outbox")).to_contain_text("4 labels wait for the connection")
    expect(page.locator("#outbox")).to_contain_text("5 more items are here.")
    page.focus("#comment")
    page.keyboard.type("Seven legs?")
    page.reload()
    wait_for(page, "item-05")
    expect(page.locator("#outbox")).to_contain_text("4 labels wait for the connection")
    expect(page.locator("#outbox")).to_contain_text("5 more items are here.")
    assert page.input_value("#comment") == "Seven legs?"
    checked(page)
    for _ in range(3):
        label(page, "3")
    assert not Label.objects.exists()
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_contain_text("All your labels are saved now.")
    expect(page.locator("#outbox")).to_be_empty()
    expect(page.locator("#trouble")).to_be_empty()
    keys = [f"item-{number:02}" for number in range(1, 8)]
    expect_choices(dict(zip(keys, ["invalid"] * 4 + ["score-invariant"] * 3, strict=True)))
    label(page)
    assert Label.objects.count() == 8
    assert Label.objects.get(item__key="item-05").comment == "Seven legs?"
    assert Slot.objects.filter(state="held").count() == 2


def test_what_was_typed_and_stored_before_the_outage_is_there_after_a_reload(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: a draft is stored one second after the last key."""
    page = prepared(open_page, member)
    page.focus("#comment")
    with page.expect_response("**/draft/"):
        page.keyboard.type("Seven legs?")
    wait_until_stored = (
        "() => Object.values(localStorage).some((text) => text.includes('isStored'))"
    )
    page.wait_for_function(wait_until_stored)
    page.context.set_offline(True)
    page.reload()
    wait_for(page, "item-01")
    assert page.input_value("#comment") == "Seven legs?"
    label(page, "2")
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_contain_text("saved now")
    assert Label.objects.get().comment == "Seven legs?"
    assert "Seven legs" not in page.evaluate("JSON.stringify(localStorage)")


def test_at_most_two_items_are_held_while_more_are_here(
    open_page: OpenPage, member: Membership
) -> None:
    prepared(open_page, member)
    assert Slot.objects.filter(state="held").count() == 2


def test_a_label_of_an_item_that_went_to_somebody_else_is_said_to_be_extra(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: what waits is tried every five seconds."""
    page = prepared(open_page, member)
    page.context.set_offline(True)
    for _ in range(3):
        label(page)
    other = make_member(member.project)
    theirs = take(other)
    assert theirs.item.key == "item-03"
    say(other, theirs, "invalid")
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_have_text(
        "All your labels are saved now. Reassigned meanwhile: item-03; "
        "your label is saved as an extra one."
    )
    assert not Label.objects.get(member=member, item=theirs.item).counted


def test_a_label_that_waited_does_not_replace_one_that_was_given_later(
    open_page: OpenPage, member: Membership
) -> None:
    """As of who labels on without a connection and then goes to another computer."""
    page = prepared(open_page, member)
    page.context.set_offline(True)
    label(page, "1")
    label(page, "1")
    later = say(member, take(member), "invalid")
    page.context.set_offline(False)
    expect(page.locator("#outbox")).to_contain_text(
        "You have labelled this item again since, on another page. That label stays."
    )
    expect_choices({"item-01": "invalid", "item-02": "valid"})
    assert Label.objects.get(current=True, item__key="item-01") == later


def test_a_reload_without_a_connection_shows_the_held_item_and_goes_on_by_itself(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: two reloads' worth of loading, and what is tried every five seconds."""
    page = prepared(open_page, member)
    label(page)
    wait_until_kept(page, 9)
    page.context.set_offline(True)
    page.reload()
    wait_for(page, "item-02")
    expect(page.locator("#trouble")).to_contain_text("No connection to the server.")
    for counts in (".my-items-row", ".label-progress"):
        expect(page.locator(counts)).to_be_hidden()
    checked(page)
    page.context.set_offline(False)
    expect(page.locator("#trouble")).to_be_empty()
    expect(page.locator("[data-last]")).to_have_text("You are connected again.")
    expect(page.locator(".my-items-row")).to_be_visible()
    page.wait_for_load_state("networkidle")
    label(page)
    assert item_of(page) == "item-03"


def test_without_items_a_reload_says_so_and_the_next_item_comes_with_the_connection(
    open_page: OpenPage,
) -> None:
    member = with_items(make_project(), 2)
    page = label_screen(open_page, member, service_workers="allow")
    wait_until_kept(page, 2)
    page.context.set_offline(True)
    label(page)
    page.keyboard.press("1")
    expect(page.locator("#outbox")).to_contain_text("2 labels wait")
    page.reload()
    # The page that was kept shows its item until the script is there.
    expect(page.get_by_role("heading", name="No item is left in this browser")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Every item has its final label")).to_be_visible()
    assert Label.objects.count() == 2


def test_first_looks_go_on_without_a_connection_and_second_looks_follow(
    open_page: OpenPage,
) -> None:
    """Some seconds: four items by hand, and what is tried every five seconds."""
    member = with_items(make_project(blind_first=True), 12)
    page = prepared(open_page, member)
    page.context.set_offline(True)
    for _ in range(4):
        before = item_of(page)
        page.wait_for_selector("#panel[data-ready][data-phase=blind]")
        page.locator(".choice", has_text="No").first.click()
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(f'#panel[data-ready]:not([data-item="{before}"])')
        expect(page.locator("[data-last]")).to_contain_text("The second look at this item follows")
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_contain_text("Second looks follow.")
    assert Label.objects.filter(stage="blind").count() == 4
    page.locator(".choice", has_text="No").first.click()
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-ready][data-phase="label"][data-item="item-01"]')


def test_signing_out_deletes_what_the_browser_keeps_but_not_what_waits_to_be_sent(
    open_page: OpenPage, member: Membership
) -> None:
    page = prepared(open_page, member)
    page.evaluate("localStorage.setItem('outbox|somebody else', '[]')")
    page.click(".menu summary")
    page.click("form[data-sign-out] button")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert page.evaluate(CACHES) == []
    assert page.evaluate("localStorage.getItem('outbox|somebody else')") == "[]"
    page.context.set_offline(True)
    with pytest.raises(Exception, match="ERR_"):
        page.goto(reverse("label", args=[member.project.slug]))


@pytest.mark.parametrize("name", ["label", "my-items"])
def test_a_session_that_ended_elsewhere_leaves_nothing_for_the_next_person(
    open_page: OpenPage, member: Membership, name: str
) -> None:
    page = prepared(open_page, member)
    page.context.clear_cookies(name="sessionid")
    page.goto(reverse(name, args=[member.project.slug]))
    expect(page.get_by_role("button", name="Sign in").first).to_be_visible()
    ends = time.monotonic() + 10
    while page.evaluate(CACHES) and time.monotonic() < ends:
        page.wait_for_timeout(50)
    assert page.evaluate(CACHES) == []


def test_nothing_else_of_the_site_is_shown_without_a_connection(
    open_page: OpenPage, member: Membership
) -> None:
    page = prepared(open_page, member)
    page.context.set_offline(True)
    with pytest.raises(Exception, match="ERR_"):
        page.goto(reverse("my-items", args=[member.project.slug]))


def test_without_a_service_worker_the_label_screen_works_as_before(
    open_page: OpenPage, member: Membership
) -> None:
    """Some seconds: items ahead come a moment after the first."""
    address = reverse("label", args=[member.project.slug])
    page = open_page(member.account, address, service_workers="block")
    wait_for(page, "item-01")
    page.wait_for_timeout(3000)
    page.context.set_offline(True)
    for _ in range(4):
        label(page)
    page.context.set_offline(False)
    expect(page.locator("[data-last]")).to_contain_text("All your labels are saved now.")
    assert Label.objects.count() == 4
    assert queue.next_offer(member)


def test_a_server_that_says_nothing_is_waited_for_only_a_moment(
    open_page: OpenPage, member: Membership
) -> None:
    """Eight seconds are the longest wait for an answer; nobody waits so long for the next item."""
    page = prepared(open_page, member)
    page.route("**/label/submit/", lambda route: None)
    begun = time.monotonic()
    for _ in range(4):
        label(page)
    assert time.monotonic() - begun < 7
    page.unroute("**/label/submit/")
    expect(page.locator("[data-last]")).to_contain_text("All your labels are saved now.")
    expect_choices({f"item-{number:02}": "valid" for number in range(1, 5)})
