"""The first days of a lead of twelve people: invitations, pilot, disagreements, pace."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.labelling import queue
from annotation.labelling.queue import Offer
from annotation.models import Item, Label, Membership, Project, Resolution
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import checked
from tests.builders import make_item, make_member, make_project, say

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

NAMES = ["Ann", "Bob", "Cem", "Dov", "Eva", "Fay", "Gil", "Hal", "Ida", "Jon", "Kim", "Lea"]
CATEGORIES = ("number-errors", "spelling-errors", "wrong-formula", "incorrect-units")
PILOT = 6
LOOKS = [(1280, 720), (390, 844)]


@pytest.fixture
def project() -> Project:
    project = make_project(overlap=2, order="random", order_seed=11, begun_first=True)
    # Long enough that the speed of labelling counts.
    texts = {"prompt": "Name a river of Europe, and say where it rises and ends. " * 3}
    for number in range(40):
        category = CATEGORIES[number // 10]
        make_item(project, f"item-{number:02}", texts=texts, category=category, slots=2)
    return project


def label(
    project: Project, alias: str, seconds: float, choose: Callable[[Item], str], most: int = 40
) -> list[str]:
    """Somebody labels what they get; the keys in their order."""
    labelled: list[str] = []
    while len(labelled) < most:
        member = Membership.objects.select_related("project__task_type").get(
            project=project, alias=alias
        )
        offer = queue.next_offer(member, now=timezone.now())
        if not isinstance(offer, Offer):
            break
        say(member, offer, choose(offer.item), seconds=seconds)
        labelled.append(offer.item.key)
    return labelled


def press_through(page: Page, number: int) -> None:
    """Label so many items by the keyboard, as fast as the screen goes."""
    for _ in range(number):
        shown = page.get_attribute("#panel[data-ready]", "data-item")
        page.keyboard.press("1")
        page.wait_for_selector(
            f'#panel[data-ready]:not([data-item="{shown}"]), #panel:not([data-item])'
        )


def seen_well(page: Page) -> None:
    """Nothing for axe to find in both schemes, on a laptop and on a phone."""
    for width, height in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        checked(page)
    page.set_viewport_size({"width": 1280, "height": 720})


def test_the_first_days_of_a_lead_of_twelve(open_page: OpenPage, project: Project) -> None:
    """Some forty seconds: a story of 90 labels over eight pages, each looked at in four ways."""
    lead = make_member(project, role="lead", alias="lead")
    base = f"/projects/{project.slug}/"
    page = open_page(lead.account, reverse("members-invite", args=[project.slug]))
    page.get_by_label("Names or e-mail addresses, one per line").fill("\n".join(NAMES))
    page.get_by_role("button", name="Create all links").click()
    expect(page.get_by_role("heading", name="12 people are invited")).to_be_visible()
    seen_well(page)
    for name, link in zip(NAMES, page.locator("td .secret").all_inner_texts(), strict=True):
        password = {"password1": "quite-another-word", "password2": "quite-another-word"}
        answer = Client().post(link, {"username": f"user-{name}", **password})
        assert answer.status_code == 302
    assert project.members.filter(role="annotator").count() == 12

    page.goto(base)
    page.get_by_role("link", name="Pilot").click()
    page.get_by_label("Items of the pilot").fill(str(PILOT))
    page.get_by_role("button", name="Start the pilot").click()
    expect(page.get_by_text("every annotator labels the same 6 items")).to_be_visible()

    ann = open_page(project.members.get(alias="Ann").account, f"{base}label/")
    ann.wait_for_selector("#panel[data-item][data-ready]")
    press_through(ann, PILOT)
    expect(ann.get_by_text("You have labelled all items of the pilot")).to_be_visible()
    project.refresh_from_db()
    divided = set(project.pilot[:3])
    for alias, seconds, other in (("Bob", 40, "invalid"), ("Cem", 900, "score-invariant")):
        said = label(project, alias, seconds, lambda i, o=other: o if i.pk in divided else "valid")
        assert len(said) == PILOT
    page.reload()
    expect(page.get_by_text("3 of 12 annotators have finished")).to_be_visible()
    expect(page.get_by_text("Invalid 1")).to_have_count(3)
    seen_well(page)
    # Six items, and there is agreement to look at.
    page.get_by_role("link", name="Agreement", exact=True).click()
    expect(page.get_by_text("Percent agreement").first).to_be_visible()
    assert Label.objects.values("item").distinct().count() == PILOT
    seen_well(page)

    page.goto(f"{base}pilot/")
    page.get_by_role("button", name="End the pilot").click()
    # Three of twelve have finished: it asks, in sight.
    expect(page.get_by_text("9 annotators have not finished:")).to_be_in_viewport()
    page.get_by_role("button", name="End the pilot anyway").click()
    expect(page.get_by_text("Everybody gets all items now.")).to_be_visible()
    order = label(project, "Bob", 40, lambda item: "valid")
    assert len(order) == 34
    # In the order of the file, ten items of one category would come first.
    assert Item.objects.filter(key__in=order[:8]).values("category").distinct().count() > 1
    assert len(label(project, "Cem", 900, lambda item: "valid", most=22)) == 22
    ann.reload()
    ann.wait_for_selector("#panel[data-item][data-ready]")
    press_through(ann, 12)
    assert Resolution.objects.current().count() == 37

    page.goto(base)
    tasks = page.locator(".lead-tasks")
    expect(tasks.get_by_text("3 items need a decision")).to_be_visible()
    expect(tasks.get_by_text("1 person labels faster than one can read")).to_be_visible()
    expect(tasks.get_by_role("link", name="Ann")).to_be_visible()
    seen_well(page)
    tasks.get_by_text("items need a decision").click()
    for number in range(3):
        if not number:
            page.get_by_role("link", name="Take the next case").click()
        page.wait_for_selector("#panel[data-item][data-ready]")
        if not number:
            seen_well(page)
        page.keyboard.press("2")  # invalid
        page.keyboard.press("1")  # the text can be read in several ways
        page.keyboard.press("c")
        page.keyboard.type("Two of three see it.")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".messages")).to_contain_text("is decided: Invalid.")
    assert Resolution.objects.current().count() == 40

    page.goto(f"{base}pace/")
    expect(page.get_by_role("row", name="Cem").first).to_contain_text("15 min")
    seen_well(page)
    page.goto(f"{base}people/Ann/")
    seen_well(page)
