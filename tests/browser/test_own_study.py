"""A study of one's own, from an empty site to figures, by somebody who has a browser and a CSV."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.items import taxonomy
from annotation.models import Item, Label, Project
from judging.jobs.worker import WorkLoop
from tests.browser.conftest import OpenPage
from tests.builders import make_account

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FBI = re.compile(
    r"Long form|Factual|Number errors|Instruction following|(?<!suggest-)\babilit(y|ies)\b",
    re.IGNORECASE,
)
FAULTS = ("Rude remark", "rude-remark", "Vague praise", "Wrong page", "Made up source")
HEAD = "No.,Question,Gold answer,Corrupted Answer,Error type,What changed\n"


def rows() -> str:
    """Twenty rows, of which three cannot be used."""
    good = "".join(
        f"r{n:02},What of paper {n}?,The paper {n} is short and clear.,"
        f"The paper {n} is long and dull.,{FAULTS[n % 5]},Short became long.\n"
        for n in range(17)
    )
    return (
        HEAD
        + good
        + "r90,,Gold.,Other.,Rude remark,\nr91,Q?,,Other.,Rude remark,\n,Q?,G.,O.,Wrong page,\n"
    )


def check(page: Page, name: str) -> None:
    """The page has no word of another study."""
    # In one step, since the page may be replaced between two.
    text = page.evaluate(
        """() => {
            document.querySelectorAll("main code").forEach((one) => one.remove());
            return document.querySelector("main").innerText;
        }"""
    )
    text = text.replace("FBI: 22 perturbations of four abilities", "")
    assert not FBI.search(text), (name, FBI.search(text))


def test_from_nothing_to_figures(open_page: OpenPage, worker: WorkLoop) -> None:
    """Some twenty seconds: some fifty pages, from a new project to its figures."""
    admin = make_account(is_superuser=True)
    page = open_page(admin, reverse("home"))
    page.get_by_role("link", name="New project").click()
    page.get_by_role("textbox", name="Name").fill("Faults of reviews")
    page.get_by_label("Empty: no category yet").check()
    page.get_by_role("button", name="Create the project").click()
    page.get_by_role("link", name="Add categories").click()
    page.get_by_role("link", name="Add a group").first.click()
    page.get_by_role("textbox", name="Name").fill("Tone")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="Add a category").first.click()
    page.get_by_role("textbox", name="Name").fill("Rude remark")
    page.get_by_label("Description").fill("The review is unkind.")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("Added Rude remark.", exact=True)).to_be_visible()
    check(page, "categories")

    project = Project.objects.get()
    page.goto(page.url.replace("categories", "import"))
    page.set_input_files(
        "input[type=file]",
        {"name": "faults.csv", "mimeType": "text/csv", "buffer": rows().encode()},
    )
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="Words that are no category here")).to_be_visible()
    check(page, "words")
    page.get_by_label("Vague praise", exact=True).select_option("new:tone")
    page.get_by_label("Wrong page", exact=True).select_option("new:tone")
    page.get_by_label("Made up source", exact=True).select_option("as:rude-remark")
    page.get_by_role("button", name="Use these categories").click()
    page.get_by_role("link", name="Correct 3 rows here").click()
    expect(page.get_by_role("heading", name="Row 19, key r90")).to_be_visible()
    expect(page.get_by_label("Prompt")).to_be_focused()
    check(page, "row")
    page.keyboard.type("What of paper 90?")
    page.get_by_role("button", name="Save and go to the next row").click()
    expect(page.get_by_role("heading", name="Row 20, key r91")).to_be_visible()
    page.get_by_role("button", name="Save and go to the next row").click()
    expect(page.get_by_role("alert")).to_contain_text("Gold answer is empty or missing")
    page.get_by_label("Gold answer").fill("It is 91.")
    page.get_by_role("button", name="Save and check the file").click()
    expect(page.get_by_text("2 rows are corrected on this page")).to_be_visible()
    check(page, "corrected")
    page.get_by_role("button", name=re.compile("^Import 19 items")).click()
    expect(page.get_by_role("link", name="See the items")).to_be_visible(timeout=20_000)
    check(page, "imported")
    assert Item.objects.count() == 19
    project.refresh_from_db()
    made = {one.slug for one in taxonomy.load_taxonomy(project)}
    assert made == {"rude-remark", "vague-praise", "wrong-page"}

    page.goto(page.url.split("/import")[0] + "/label/")
    page.wait_for_selector("#panel[data-item][data-ready]")
    check(page, "label")
    seen = set()
    for _ in range(18):
        seen.add(shown := page.get_attribute("#panel", "data-item"))
        page.keyboard.press("1")
        page.wait_for_selector(f'#panel[data-ready]:not([data-item="{shown}"])')
    page.keyboard.press("1")
    page.wait_for_selector("#panel:not([data-item])")
    assert len(seen) == 18

    base = page.url.split("/label")[0]
    for name in ("", "/items/", "/board/", "/agreement/", "/exports/", "/strategies/"):
        page.goto(base + name)
        check(page, name)
    assert Label.objects.count() == 19
    page.goto(base + "/runs/new/")
    check(page, "new-run")
    page.locator("input[name=strategy][value=length]").check()
    page.locator("input[name=endpoint][value=baseline]").check()
    page.get_by_role("button", name="Start the run").click()
    state = page.locator("#progress [role=status]")
    expect(state).to_have_text("finished", timeout=20_000)
    check(page, "run")
    page.goto(base + "/results/overview/")
    expect(page.get_by_role("columnheader", name="Tone")).to_be_visible()
    check(page, "results")
    expect(page.get_by_text("Published figures")).to_have_count(0)
    page.goto(base + "/results/by-category/")
    expect(page.locator("table", has_text="Rude remark").first).to_be_visible()
    check(page, "by-category")
