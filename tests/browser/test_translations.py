"""Items are translated: New run asks for the language, and texts run in their own direction."""

import json

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.generation.release import ReleasePolicy
from annotation.models import Membership
from judging.generation import bring_in
from judging.generation.bring_in import BringInRequest
from judging.models import Run
from judging.runs import lifecycle
from judging.runs.run_config import RunOverrides
from tests.browser.conftest import OpenPage
from tests.browser.screen import label_screen, wait_for
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.builders import make_item, make_member, make_project
from tests.judging.builders_judging import answer_as, make_endpoint, make_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ARABIC = {
    "prompt": "كم ساقا للعنكبوت؟",
    "gold": "للعنكبوت 8 أرجل، وهذا ما يعرفه الجميع.\nThe Latin name is *Araneae*.",
    "perturbed": "للعنكبوت 9 أرجل، وهذا ما يعرفه الجميع.\nThe Latin name is *Araneae*.",
    "claim": "صار العدد 8 العدد 9.",
}
ENGLISH = {
    "prompt": "How many legs has a spider?",
    "gold": "A spider has 8 legs, as all know.\nThe Latin name is *Araneae*.",
    "perturbed": "A spider has 9 legs, as all know.\nThe Latin name is *Araneae*.",
    "claim": "8 became 9.",
}


@pytest.fixture
def lead() -> Membership:
    return make_member(make_project("fbi"), role="lead")


def translated(lead: Membership) -> Run:
    make_item(lead.project, "spider", texts=ENGLISH, slots=0)
    run = make_run(
        lead.project,
        make_endpoint("http://127.0.0.1:9/v1"),
        "translate",
        own=RunOverrides(language="Arabic"),
    )
    lifecycle.plan_calls(run)
    answer_as(run, lambda body: json.dumps({"translation": ARABIC}))
    lifecycle.finish_if_done(run)
    return run


def is_right_to_left(page: Page, words: str) -> bool:
    """True if the line that begins with these words begins at the right: its first letter stands
    right of its last one there."""
    place = """(words) => {
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const at = walker.currentNode.data.indexOf(words);
        const node = walker.currentNode;
        if (at < 0 || !node.parentElement.checkVisibility()) continue;
        const box = (from) => {
          const range = document.createRange();
          range.setStart(node, from);
          range.setEnd(node, from + 1);
          return range.getBoundingClientRect();
        };
        const block = node.parentElement.closest("p, div, dd, td, pre").getBoundingClientRect();
        return block.right - box(at).right < box(at + words.length - 1).left - block.left;
      }
      return null;
    }"""
    found = page.evaluate(place, words)
    assert found is not None, f"{words} is not shown"
    return bool(found)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_the_language_is_asked_for_once_a_translation_is_ticked(
    open_page: OpenPage, lead: Membership, width: int, scheme: str
) -> None:
    make_item(lead.project, "spider", texts=ENGLISH, slots=0)
    make_endpoint("http://127.0.0.1:9/v1")
    page = open_page(lead.account, reverse("run-new", args=["fbi"]), **look(width, scheme))
    language = page.get_by_label("Language to translate into")
    assert not language.is_visible()
    page.locator('summary:text-is("Generators")').click()
    page.locator('summary:has-text("Translations")').click()
    page.get_by_label("Translate: all texts of an item").check()
    checked(page)
    page.get_by_label("evaluator-").check()
    page.get_by_role("button", name="Estimate", exact=True).click()
    page.wait_for_selector("#estimate [role=alert]")
    assert "Choose the language to translate into" in page.inner_text("#estimate")
    language.fill("Arabic")
    page.get_by_role("button", name="Estimate", exact=True).click()
    page.wait_for_selector("#estimate table")
    assert "into Arabic" in page.inner_text("#estimate")
    checked(page)


def test_a_translation_runs_in_its_own_direction_wherever_it_is_shown(
    open_page: OpenPage, lead: Membership
) -> None:
    run = translated(lead)
    page = open_page(lead.account, reverse("run-bring-in", args=["fbi", run.number]))
    assert is_right_to_left(page, "للعنكبوت")
    page.goto(page.url.replace("bring-in/", "items/spider/"))
    assert is_right_to_left(page, "كم ساقا")
    bring_in.bring_in_replies(BringInRequest(run, lead.project, ReleasePolicy()), None)
    for address in (
        reverse("label", args=["fbi"]),
        reverse("item", args=["fbi", f"spider+translate.{run.number}.1"]),
    ):
        page.goto(page.url.partition("/projects/")[0] + address)
        for words in ("كم ساقا", "للعنكبوت", "صار العدد"):
            assert is_right_to_left(page, words), (address, words)


def test_what_was_translated_stays_open_from_item_to_item(open_page: OpenPage) -> None:
    project = make_project(task_type="rating")
    texts = {"prompt": "Flod?", "gold": ["Loire"], "response": "Seine"}
    before = {"before_translation": {"prompt": "Which river?", "response": "The Seine"}}
    for number in range(1, 4):
        make_item(project, f"item-{number}", texts=texts, fields=before)
    page = label_screen(open_page, make_member(project), "item-1")
    expect(page.get_by_text("Which river?")).to_be_hidden()
    page.get_by_text("Before translation").click()
    expect(page.get_by_text("Which river?")).to_be_visible()
    for number in (2, 3):
        for digit in "321":
            page.keyboard.press(digit)
        page.keyboard.press("Control+Enter")
        wait_for(page, f"item-{number}")
    expect(page.get_by_text("Which river?")).to_be_visible()
    page.get_by_text("Before translation").click()
    page.reload()
    wait_for(page, "item-3")
    expect(page.get_by_text("Which river?")).to_be_hidden()
