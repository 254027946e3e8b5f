"""Every view of every result page in the browser: a chart and its table in light and dark, wide and
narrow, nothing for axe, the console or the policy to object to; switches with addresses."""

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.db.cache import process_cache
from annotation.models import Membership, Project
from judging.results.detectors import PROMPTS
from judging.results.tables import PAGES
from tests.annotation.test_agreement import make_label, people_of
from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import checked, look, scrolls_sideways, violations
from tests.builders import make_member, make_project
from tests.judging import builders_decided
from tests.judging.archive.builders_archive import ask
from tests.judging.builders_compared import make_compared
from tests.judging.builders_decided import make_audit, make_replied, scores
from tests.judging.builders_detecting import (
    judge,
    judge_all,
    make_sets,
    make_unlabelled,
    rate_endpoint,
    say_kinds,
    say_softly,
)
from tests.judging.builders_judging import make_items
from tests.judging.test_people_page import make_rated

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOOKS = [(390, "dark"), (1280, "light")]


def make_judged(folder: Path) -> Project:
    """A run of every frame over error items and score-invariant ones."""
    project = make_project("fbi")
    items = [*make_items(project, 4, dose=1), *make_items(project, 4, dose=2)]
    items += make_items(
        project, 4, "score-invariant", category="score-invariant", ability="score-invariant"
    )
    apart = cycle([scores(9, 5), scores(9, 9), scores(8, 9), scores(9, None)])
    base = make_replied(project, "vanilla", zip(items, apart, strict=False))
    equal = [outcome.item for outcome in base.outcomes.filter(detail="equal")]
    for slug in ("explanation-check", "explanation-check-gold"):
        flags = cycle([('{"flag": true}',), ('{"flag": false}',)])
        make_replied(project, slug, zip(equal, flags, strict=False), sources=[base], base=base)
    make_replied(project, "reference", zip(items, cycle([scores(9), scores(10)]), strict=False))
    pairs = [builders_decided.verdicts(one) for one in ("G", "both_good", "first_twice", "P")]
    make_replied(project, "pairwise", zip(items, cycle(pairs), strict=False))
    make_audit(base, (True, "correct"), (True, "insufficient"), (False, "wrong"), (False, "none"))
    twice = cycle([scores(9, 5, 9, 9), scores(9, 9, 9, 9)])
    make_replied(project, "vanilla", zip(items, twice, strict=False), samples=2)
    return project


def make_labelled(folder: Path) -> Project:
    """Items of two tasks that two people labelled, and a run over them."""
    process_cache.clear()
    project = make_project("labelled")
    items = make_items(project, 8, fields={"task": "sums", "topic": ["art", "law"]})
    items += make_items(
        project, 4, category="spelling", ability="long-form", fields={"task": "essay"}
    )
    for person, choices in zip(people_of(project, "ann", "bob"), ("vvvi", "viiv"), strict=True):
        for item, one in zip(items, choices * 3, strict=True):
            make_label(item, person, {"v": "valid", "i": "invalid"}[one], seconds=20)
    make_replied(project, "vanilla", zip(items, [scores(9, 5), scores(9, 9)] * 6, strict=True))
    return project


def make_detected(folder: Path) -> Project:
    """Two detectors, each asked by all prompts and with steps."""
    project = make_project("lab", task_type="error-detection")
    items = make_sets(project, 10, 4)
    say_kinds(items[:10], *[["reasoning-correctness"], ["instruction-following"]] * 5)
    for name in ("first", "second"):
        endpoint = rate_endpoint(name, elo=1000 + len(name))
        for place, slug in enumerate((*PROMPTS, "detect-steps")):
            judge(items, "D" * (4 + place) + "U" * (9 - place) + "-", slug, endpoint=endpoint)
    bare = make_unlabelled(project, 6)
    judge_all([*items, *bare], "DU" * 10, "detect-steps", endpoint=endpoint)
    say_softly(items[:4], people_of(project, "ann", "bob"), ["en", "ee", "nn", "ee"])
    return project


def make_paid(folder: Path) -> Project:
    """A run whose replies cost something."""
    project = make_project("paid")
    make_items(project, 6)
    ask(project)
    return project


# What is looked at where, and what the address says besides.
Home = tuple[Callable[[Path], Project], tuple[str, ...], str]
OF_PEOPLE, OF_LABELS, OF_DETECTORS = (
    ("people",),
    ("data-set", "agreement"),
    ("detector", "corrected"),
)
PAID, OF_PAIRS = ("cost",), ("pairwise",)
OTHERS = (*OF_PEOPLE, *OF_LABELS, *OF_DETECTORS, *PAID, *OF_PAIRS)
OF_RUNS = tuple(slug for slug in PAGES if slug not in OTHERS)
HOMES: dict[str, Home] = {
    "judged": (make_judged, OF_RUNS, ""),
    "rated": (make_rated, OF_PEOPLE, "&metric=correctness"),
    "labelled": (make_labelled, OF_LABELS, "&by=task"),
    "paid": (make_paid, PAID, ""),
    "compared": (lambda folder: make_compared("compared", 4), OF_PAIRS, ""),
    "detected": (make_detected, OF_DETECTORS, "&by=task"),
}


def views(home: str) -> Iterator[str]:
    """The addresses of every view of the pages that a project has figures for."""
    _, pages, besides = HOMES[home]
    for slug in pages:
        for view in PAGES[slug].views:
            yield f"{slug}/?view={view.slug}{besides}&intervals=yes"
    yield from ["detector/?chart=plane"] if home == "detected" else []


def objections(page: Page) -> list[str]:
    """What is wrong with a view, in either look. The second one is only looked at for what differs:
    its colours and its width."""
    drawn(page)
    found = [] if page.locator("table.rates tbody tr").count() else ["no table beside the chart"]
    for (width, scheme), rules in zip(LOOKS, [(), ("color-contrast",)], strict=True):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        found += violations(page, *rules)
        found += ["the page scrolls sideways"] if scrolls_sideways(page) else []
    return found


def chart_is_cut(page: Page) -> bool:
    """Whether a word of the chart reaches beyond its place."""
    beyond = """it => {
      const place = it.getBoundingClientRect();
      const words = [...it.querySelectorAll("text")].map((one) => one.getBoundingClientRect());
      return words.some((one) => one.right > place.right + 1 || one.left < place.left - 1);
    }"""
    return bool(page.locator("[data-chart]").evaluate(beyond))


@pytest.mark.parametrize("home", HOMES)
def test_every_view_has_a_chart_and_a_table_that_all_can_read(
    open_page: OpenPage, tmp_path: Path, home: str
) -> None:
    """Up to half a minute: every view of every page is opened, drawn and looked through by axe."""
    make, *_ = HOMES[home]
    project = make(tmp_path)
    index = reverse("results", args=[project.slug])
    page = open_page(make_member(project, role="researcher").account, index, **look(*LOOKS[0]))
    found: dict[str, list[str]] = {}
    for path in views(home):
        page.set_viewport_size({"width": LOOKS[0][0], "height": 900})
        page.goto(index + path)
        drawn(page)
        found[path] = ["the chart is cut"] if chart_is_cut(page) else []
        found[path] += objections(page)
    assert {path: said for path, said in found.items() if said} == {}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_judged(tmp_path)


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project, role="researcher")


def address(page: str, query: str = "") -> str:
    return reverse("results-page", args=["fbi", page]) + query


def drawn(page: Page) -> None:
    expect(page.locator("[data-chart] svg")).to_have_count(1)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_around_the_figures(
    open_page: OpenPage, project: Project, width: int, scheme: str
) -> None:
    lead = make_member(project, role="lead")
    page = open_page(lead.account, reverse("results", args=["fbi"]), **look(width, scheme))
    checked(page)
    for name in ("results-views", "results-methods", "archives", "exports"):
        page.goto(reverse(name, args=["fbi"]))
        checked(page)


def test_a_chart_of_a_dark_screen_is_printed_whole_and_with_dark_ink(
    open_page: OpenPage, member: Membership
) -> None:
    page = open_page(member.account, address("by-category"), **look(1280, "dark"))
    drawn(page)
    label = page.locator("[data-chart] .role-axis-label text").first
    ink = "it => getComputedStyle(it).fill"
    on_screen = label.evaluate(ink)
    # As paper has it: a scheme of its own, and some 700 points.
    page.emulate_media(media="print", color_scheme="light")
    page.set_viewport_size({"width": 700, "height": 900})
    assert label.evaluate(ink) != on_screen
    chart = page.locator("[data-chart] svg")
    assert chart.evaluate("it => it.getBoundingClientRect().right") <= 700


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
    page.get_by_role("button", name="Apply").click()
    assert "measure=undetected" in page.url
    expect(page.locator("tbody tr")).to_have_count(3)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_field_with_a_name_wider_than_the_page_is_broken(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    project = make_project("fbi")
    make_items(project, 2, fields={"f" * 300: "x" * 80, "topic": "law"})
    account = make_member(project, role="researcher").account
    page = open_page(account, address("data-set", "?by=topic"), **look(width, scheme))
    drawn(page)
    checked(page)
