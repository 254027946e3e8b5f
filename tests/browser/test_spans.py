"""Passages of the texts, marked with a mouse, with a finger and with the keyboard alone."""

from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation.labelling import queue
from annotation.models import Label, Membership
from tests.annotation.spans import with_spans
from tests.browser.conftest import OpenPage
from tests.browser.screen import label_screen, wait_for
from tests.browser.test_accessibility import LOOKS, checked, look
from tests.browser.test_fields import press
from tests.builders import make_item, make_member, make_project, take

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TEXTS = {"prompt": "How many legs?", "gold": "It has eight legs.", "perturbed": "It has six legs."}

# Selects in the shown pane from the last place of a text to the end of another.
SELECT = """([from, to]) => {
  const pane = document.querySelector('[data-panes="PANE"] > [data-serves]:not([hidden])');
  const places = (words) => {
    const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT);
    let found = null;
    while (walker.nextNode()) {
      const at = walker.currentNode.data.lastIndexOf(words);
      if (at >= 0) found = [walker.currentNode, at];
    }
    return found;
  };
  const [first, start] = places(from);
  const [last, end] = places(to);
  getSelection().setBaseAndExtent(first, start, last, end + to.length);
}"""


def blind(open_page: OpenPage, **options: Any) -> Page:
    """A first look at an item."""
    project = make_project(blind_first=True)
    for number in (1, 2):
        make_item(project, f"item-{number}", texts=TEXTS)
    member = make_member(project)
    page = open_page(member.account, reverse("label", args=[project.slug]), **options)
    return in_first_look(page)


def in_first_look(page: Page) -> Page:
    page.wait_for_selector("#panel[data-phase=blind][data-ready]")
    return page


def at_errors(response: str, **options: Any) -> Membership:
    """Somebody who marks errors with labels and severities in responses."""
    project = with_spans(make_project(task_type="error-detection"))
    for number in (1, 2):
        make_item(project, f"item-{number}", texts={"input": "Sums?", "response": response})
    return make_member(project)


def select(page: Page, first: str, last: str = "", pane: str = "perturbed-1") -> None:
    page.evaluate(SELECT.replace("PANE", pane), [first, last or first])


def said(page: Page) -> str:
    return page.inner_text("[data-fields-said]")


def active(page: Page) -> str:
    return page.get_attribute("[data-field][data-active]", "data-field") or ""


def quotes(page: Page) -> list[str]:
    return page.locator(".span-quote").all_inner_texts()


def highlighted(page: Page) -> list[str]:
    """What the browser draws as marked, in the texts."""
    return page.evaluate(
        "() => [...CSS.highlights.values()].flatMap((all) => [...all].map((one) => `${one}`))"
    )


def test_a_selection_and_one_key_say_where(open_page: OpenPage) -> None:
    page = blind(open_page)
    page.keyboard.press("1")
    assert active(page) == "passage"
    page.locator('[data-panes="perturbed-1"] .text').get_by_text("six").dblclick(
        position={"x": 75, "y": 10}
    )
    word = page.evaluate("`${getSelection()}`.trim()")
    page.keyboard.press("q")
    assert quotes(page) == [word]
    assert highlighted(page) == [word]
    assert active(page) == "severity"
    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-phase="label"][data-ready]')
    start = TEXTS["perturbed"].index(word)
    assert Label.objects.get(stage="blind").answers == {
        "error": True,
        "passage": [{"text": "perturbed", "start": start, "end": start + len(word), "quote": word}],
        "severity": 2,
    }
    expect(page.locator(".label-first-look")).to_contain_text(f"“{word}”")


def with_evidence(open_page: OpenPage, **texts: str) -> Page:
    """The first of three items whose changes are checked against the claim."""
    project = make_project(claim_check=True)
    every = {**TEXTS, "claim": "Eight became six.", **texts}
    for number in (1, 2, 3):
        make_item(project, f"item-0{number}", texts=every)
    return label_screen(open_page, make_member(project))


def test_words_of_the_claim_are_evidence_and_no_label_waits_for_some(
    open_page: OpenPage,
) -> None:
    page = with_evidence(open_page)
    select(page, "became six", pane="claim-1")
    page.keyboard.press("q")
    assert quotes(page) == ["became six"]
    assert highlighted(page) == ["became six"]
    for after in ("item-02", "item-03"):
        page.keyboard.press("1")
        assert active(page) == "claim_check"
        page.wait_for_timeout(200)  # a press at once counts as a double press
        page.keyboard.press("1")
        wait_for(page, after)
    marked, without = Label.objects.order_by("pk")
    place = {"text": "claim", "start": 6, "end": 16, "quote": "became six"}
    checked = {"choice": "valid", "claim_check": {"1": "explained"}}
    assert marked.answers == {**checked, "evidence": [place]}
    assert without.answers == checked


def test_digits_answer_what_is_open_after_evidence_was_marked(open_page: OpenPage) -> None:
    page = with_evidence(open_page)
    for key in ("1", "q", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert quotes(page) == ["has"]
    page.locator("[data-span-undo]").click()
    assert quotes(page) == []
    page.keyboard.press("2")
    wait_for(page, "item-02")
    assert Label.objects.get().answers == {"choice": "valid", "claim_check": {"1": "collateral"}}


def test_words_in_a_drawn_formula_are_passed_over(open_page: OpenPage) -> None:
    page = with_evidence(open_page, claim="The area $\\pi r^2$ is 28.27 $\\frac{1}{2}$.")
    expect(page.locator(".label-claims .math[data-drawn]")).to_have_count(2)
    for key in ("q", "PageDown", "PageDown"):
        page.keyboard.press(key)
    words = []
    for _ in range(4):
        words.append(said(page))
        page.keyboard.press("ArrowRight")
    assert words == ["The", "area", "is", "28.27"]


def test_the_word_on_the_left_is_the_next_one_of_a_text_from_right_to_left(
    open_page: OpenPage,
) -> None:
    gold = "העיר נוסדה בשנת 754 על ידי המלך."
    page = with_evidence(open_page, gold=gold, perturbed=gold.replace("754", "457"))
    for key in ("q", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    assert said(page) == "457"
    arrow = "getComputedStyle(document.querySelector('.diff-inline del'), '::after').content"
    assert page.evaluate(arrow).startswith('"←"')


def test_words_are_chosen_and_marked_by_keyboard_alone(open_page: OpenPage) -> None:
    page = blind(open_page)
    for key in ("1", "q"):
        page.keyboard.press(key)
    assert said(page).startswith("Choose words with the arrow keys")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    assert said(page) == "six legs"
    page.keyboard.press("Control+Shift+ArrowRight")
    assert said(page) == "six legs."
    page.keyboard.press("Control+Shift+ArrowLeft")
    page.keyboard.press("Enter")
    assert quotes(page) == ["six legs"]
    assert page.evaluate("getSelection().isCollapsed")
    for key in ("3", "Control+Enter"):
        page.keyboard.press(key)
    page.wait_for_selector('#panel[data-phase="label"][data-ready]')
    [passage] = Label.objects.get(stage="blind").answers["passage"]
    assert (passage["start"], passage["end"], passage["quote"]) == (7, 15, "six legs")


def test_typing_finds_words_and_escape_leaves_everything_as_it_was(open_page: OpenPage) -> None:
    page = blind(open_page)
    page.keyboard.press("1")
    page.keyboard.press("q")
    page.keyboard.type("legs")
    assert said(page) == "legs"
    page.keyboard.type("q")
    assert said(page) == "“legsq” is not in this text."
    page.keyboard.press("PageUp")
    page.keyboard.type("how m")
    assert said(page) == "How many"
    page.keyboard.press("Escape")
    assert quotes(page) == []
    assert page.evaluate("getSelection().isCollapsed")
    # Keys mean what they meant before.
    page.keyboard.press("Control+Enter")
    asked = "Mark a passage first. Or write it in “Where, in words?”."
    assert said(page) == f"Where? {asked}"


def test_labels_and_severities_are_chosen_by_digits(open_page: OpenPage) -> None:
    member = at_errors("2 + 2 = 5 👩‍🔬 and 3 + 3 = 7.")
    page = label_screen(open_page, member, "item-1")
    press(page, "1", "1")  # the verdict, and an error category
    page.fill("[name=explanation]", "Sums")
    page.locator('[data-field="spans"] [data-mark]').focus()
    select(page, "5", pane="response-1")
    page.keyboard.press("2")  # the label, of what is selected
    page.keyboard.press("1")  # the severity, which it lacks
    select(page, "3 + 3 = 7", pane="response-1")
    page.keyboard.press("q")
    assert said(page) == "Marked “3 + 3 = 7”. Choose the label."
    page.keyboard.press("Control+Enter")
    problem = page.locator('[data-field="spans"] [data-problem]')
    expect(problem).to_have_text("Choose the label of “3 + 3 = 7”.")
    for key in ("1", "2"):
        page.keyboard.press(key)
    page.keyboard.press("Control+Enter")
    wait_for(page, "item-2")
    assert Label.objects.get().answers["spans"] == [
        {"text": "response", "start": 8, "end": 9, "quote": "5", "label": "fact",
         "severity": "minor"},
        # Five code points of the emoji before it are seven units of a browser.
        {"text": "response", "start": 18, "end": 27, "quote": "3 + 3 = 7", "label": "sum",
         "severity": "major"},
    ]  # fmt: skip


def test_what_is_marked_is_undone_removed_and_kept_over_a_reload(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_errors("One two three."), "item-1")
    page.keyboard.press("1")
    for word in ("One", "two", "three"):
        select(page, word, pane="response-1")
        page.keyboard.press("q")
    assert quotes(page) == ["One", "two", "three"]
    page.keyboard.press("Control+z")
    assert quotes(page) == ["One", "two"]
    page.get_by_role("button", name="Remove “One”").click()
    assert quotes(page) == ["two"]
    page.locator("[data-span-undo]").click()
    assert quotes(page) == ["One", "two"]
    with page.expect_response("**/draft/"):
        page.get_by_label("Label of “two”").select_option("sum")
    page.reload()
    wait_for(page, "item-1")
    assert quotes(page) == ["One", "two"]
    assert highlighted(page) == ["One", "two"]
    expect(page.get_by_label("Label of “two”")).to_have_value("sum")


def test_each_view_of_a_difference_leads_to_the_same_place(open_page: OpenPage) -> None:
    project = with_spans(make_project())
    texts = {"gold": "One\n**two** three.\nOne", "perturbed": "One\n**two** four 👍 five.\nOne"}
    make_item(project, "item-1", texts=texts)
    page = label_screen(open_page, make_member(project), "item-1")
    found = {}
    for view, form in [("inline", "plain"), ("side", "plain"), ("after", "markdown")]:
        page.locator(f'a[data-view="{view}"]').click()
        page.evaluate(
            "(name) => document.querySelector(`[data-format-choice='${name}']`).click()", form
        )
        page.wait_for_selector(
            f'[data-panes="compared"] > :is([data-serves~="{view}:{form}"], '
            f'[data-serves~="{view}"]):not([hidden])'
        )
        select(page, "two", "five", pane="compared")
        page.keyboard.press("q")
        found[view] = page.evaluate("JSON.parse(document.querySelector('[data-passages]').value)")
    quote = "two** four 👍 five"
    place = {"text": "perturbed", "start": 6, "end": 6 + len(quote), "quote": quote}
    assert found["inline"] == [place]
    assert found["side"] == [place]
    assert found["after"] == [place]
    assert said(page) == f"“{quote}” is marked already."
    # Of words that a text has twice, the ones that were selected.
    for view in ("side", "after"):
        page.locator(f'a[data-view="{view}"]').click()
        select(page, "One", pane="compared")
        page.keyboard.press("q")
        assert quotes(page) == [quote, "One"]
        passages = page.evaluate("JSON.parse(document.querySelector('[data-passages]').value)")
        assert passages[1]["start"] == texts["perturbed"].rindex("One")
        assert highlighted(page).count("One") == 1


def test_line_breaks_of_other_systems_do_not_shift_a_place(open_page: OpenPage) -> None:
    member = at_errors("One\r\ntwo\rthree\r\nfour.")
    page = label_screen(open_page, member, "item-1")
    press(page, "1", "1")
    page.fill("[name=explanation]", "Words")
    page.locator('[data-field="spans"] [data-mark]').focus()
    select(page, "three", "four", pane="response-1")
    page.wait_for_timeout(150)  # the same digit at once would count as one press
    press(page, "1", "1", "Control+Enter")
    wait_for(page, "item-2")
    [passage] = Label.objects.get().answers["spans"]
    assert (passage["start"], passage["quote"]) == (9, "three\r\nfour")


def test_a_correction_moves_what_is_marked_or_says_that_it_is_gone(open_page: OpenPage) -> None:
    project = with_spans(make_project())
    make_item(project, "item-1", texts=TEXTS)
    page = label_screen(open_page, make_member(project), "item-1")
    for word in ("has", "six"):
        select(page, word, pane="compared")
        page.keyboard.press("q")
    page.keyboard.press("e")
    page.fill("[data-editor] [name=text]", "Well, it has seven legs.")
    with page.expect_response("**/correct/"):
        page.keyboard.press("Control+Enter")
    page.wait_for_selector('#panel[data-revision="2"][data-ready]')
    assert highlighted(page) == ["has"]
    expect(page.locator(".span-list li").last).to_contain_text("not in the text any more")
    for key in ("1", "Control+Enter"):
        page.keyboard.press(key)
    expect(page.locator('[data-field="spans"] [data-problem]')).to_have_text(
        "“six” is not in the text any more. Remove it (✕), and mark it again if it is still meant."
    )
    page.get_by_role("button", name="Remove “six”").click()
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#panel:not([data-item])")
    [passage] = Label.objects.get().answers["spans"]
    assert (passage["start"], passage["quote"]) == (9, "has")


def test_who_contests_a_label_marks_other_passages(open_page: OpenPage) -> None:
    project = with_spans(make_project(verify=True))
    make_item(project, "item-1", texts=TEXTS)
    queue.store_label(first := make_member(project), take(first).submission({"choice": "valid"}))
    checker = make_member(project, role="adjudicator")
    page = open_page(checker.account, reverse("verify", args=[project.slug]))
    page.wait_for_selector("#panel[data-ready]")
    page.keyboard.press("x")
    select(page, "six", pane="compared")
    page.keyboard.press("q")
    assert quotes(page) == ["six"]
    page.locator("label.choice", has_text="Invalid").click()
    page.fill("[data-decision] [name=comment]", "Not an error.")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/verify/**")
    expect(page.get_by_text("Nothing to verify")).to_be_visible()
    label = Label.objects.get(stage="verify")
    assert [one["quote"] for one in label.answers["spans"]] == ["six"]


def test_a_touch_finds_a_button_beside_what_is_selected(open_page: OpenPage) -> None:
    page = blind(open_page, viewport={"width": 390, "height": 844}, has_touch=True)
    page.locator("label.choice", has_text="Yes").tap()
    select(page, "six")
    bar = page.locator(".span-bar")
    expect(bar).to_be_visible()
    expect(bar).to_be_in_viewport(ratio=1)
    bar.tap()
    assert quotes(page) == ["six"]
    expect(bar).to_have_count(0)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_axe_finds_nothing_in_marked_passages(open_page: OpenPage, width: int, scheme: str) -> None:
    page = label_screen(open_page, at_errors("One two three."), "item-1", **look(width, scheme))
    page.keyboard.press("1")
    select(page, "two", pane="response-1")
    page.keyboard.press("q")
    checked(page)
