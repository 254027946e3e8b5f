"""The result pages in the browser: charts, nothing for axe to find, switches with addresses."""

from itertools import cycle

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.models import Membership, Project
from judging.views.results.registry import PAGES
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import checked, look
from tests.builders import make_member, make_project
from tests.judging import builders_decided
from tests.judging.builders_decided import make_audit, make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project() -> Project:
    """A run of every frame over error items and score-invariant ones."""
    project = make_project("fbi")
    items = make_items(project, 8)
    items += make_items(
        project, 4, "score-invariant", category="score-invariant", ability="score-invariant"
    )
    apart = cycle([scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None)])
    base = make_replied(project, "vanilla", zip(items, apart, strict=False))
    equal = [outcome.item for outcome in base.outcomes.filter(detail="equal")]
    for slug in ("explanation-check", "explanation-check-gold"):
        flags = cycle([('{"flag": true}',), ('{"flag": false}',)])
        checked = zip(equal, flags, strict=False)
        make_replied(project, slug, checked, sources=[base], base=base)
    make_replied(project, "reference", zip(items, cycle([scores(9), scores(10)]), strict=False))
    pairs = [builders_decided.verdicts(one) for one in ("G", "both_good", "first_twice", "P")]
    make_replied(project, "pairwise", zip(items, cycle(pairs), strict=False))
    make_audit(base, (True, "correct"), (True, "insufficient"), (False, "wrong"), (False, "none"))
    twice = cycle([scores(9, 5, 9, 9), scores(9, 9, 9, 9)])
    make_replied(project, "vanilla", zip(items, twice, strict=False), samples=2)
    return project


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, role="researcher")


def address(page: str, query: str = "") -> str:
    return reverse("results-page", args=["fbi", page]) + query


def drawn(page: Page) -> None:
    expect(page.locator("[data-chart] svg")).to_have_count(1)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("slug", PAGES)
def test_every_view_of_a_page(
    open_page: OpenPage, member: Membership, slug: str, width: int, scheme: str
) -> None:
    page = open_page(member.account, reverse("results", args=["fbi"]), **look(width, scheme))
    checked(page)
    for view in PAGES[slug].views:
        page.goto(address(slug, f"?view={view.slug}&intervals=yes"))
        drawn(page)
        checked(page)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_how_figures_came_to_be_and_their_archives(
    open_page: OpenPage, project: Project, width: int, scheme: str
) -> None:
    lead = make_member(project, role="lead")
    page = open_page(lead.account, reverse("results-methods", args=["fbi"]), **look(width, scheme))
    checked(page)
    page.goto(reverse("archives", args=["fbi"]))
    checked(page)


def test_a_switch_changes_the_address_and_back_goes_back(
    open_page: OpenPage, member: Membership
) -> None:
    page = open_page(member.account, address("overview"))
    drawn(page)
    page.get_by_role("link", name="Undetected").click()
    title = page.locator("[data-chart] .role-axis-title", has_text="Undetected rate")
    expect(title).to_be_visible()
    assert page.url.endswith("?measure=undetected")
    page.get_by_role("link", name="Factual").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Factual")
    assert page.url.endswith("?measure=undetected&sort=-factual")
    page.go_back()
    expect(page.locator("th[aria-sort]")).to_have_count(0)
    drawn(page)


def test_pages_work_without_scripts(open_page: OpenPage, member: Membership) -> None:
    page = open_page(member.account, address("overview"), java_script_enabled=False)
    page.get_by_role("link", name="Undetected").click()
    page.get_by_label("1 · vanilla").uncheck()
    page.get_by_role("button", name="Show these").click()
    assert "measure=undetected" in page.url
    expect(page.locator("tbody tr")).to_have_count(3)
