"""A person at the forms of the task types, with a keyboard alone."""

from itertools import pairwise
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from annotation.items import revisions
from annotation.models import Draft, Item, Label, Membership
from annotation.tasktypes import versions
from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.browser.screen import lose_connection, wait_for
from tests.browser.test_accessibility import LOOKS, checked, look, violations
from tests.builders import adapt_task_type, make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TEXTS: dict[str, dict[str, Any]] = {
    "rating": {"prompt": "A colour?", "gold": ["red", "blue"], "response": "Green."},
    "rubric-scoring": {"prompt": "Which animal?", "gold": "A lynx.", "response": "A cat."},
    "rubric-one-score": {"prompt": "Which animal?", "gold": "A lynx.", "response": "A cat."},
    "rubric-matrix": {"prompt": "Which animal?", "gold": "A lynx.", "response": "A cat."},
    "error-detection": {"input": "2 + 2?", "response": "5"},
    "explanation-audit": {
        "input": "2 + 2?",
        "response": "5",
        "explanation": "The sum is wrong.",
        "verdict": "error",
        "verdict_right": "right",
    },
    "perturbation-vetting": {"claim": "Six for eight.", "rationale": "A wrong number."},
}


def at_work(
    slug: str, items: int = 2, *, texts: dict[str, str] | None = None, **switches: Any
) -> Membership:
    project = make_project(task_type=slug, **switches)
    project.task_type.refresh_from_db()
    for number in range(1, items + 1):
        make_item(project, f"item-{number}", texts=TEXTS[slug] | (texts or {}))
    return make_member(project)


def label_screen(open_page: OpenPage, member: Membership, **options: Any) -> Page:
    return screen.label_screen(open_page, member, "item-1", **options)


def active(page: Page) -> str:
    return page.get_attribute("[data-field][data-active]", "data-field") or ""


def said(page: Page) -> str:
    return page.inner_text("[data-fields-said]")


def press(page: Page, *keys: str) -> None:
    """Press keys at once, but the same key again only after a person could."""
    for before, key in pairwise(("", *keys)):
        if key == before:
            page.wait_for_timeout(150)
        page.keyboard.press(key)


def test_a_rating_goes_from_scale_to_scale(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rating"))
    assert active(page) == "naturalness"
    press(page, "3")
    assert active(page) == "relatedness"
    assert said(page) == "Naturalness: Natural. Next: Relatedness."
    press(page, "2", "1")
    assert said(page) == "Correctness: Not correct. All fields are answered: Ctrl+Enter saves."
    # Back up to mend the second, which leads on to nothing that is open.
    press(page, "ArrowUp", "3", "Control+Enter")
    wait_for(page, "item-2")
    label = Label.objects.get()
    assert label.answers == {"naturalness": 3, "relatedness": 3, "correctness": 1}
    assert label.choice == "3/3/1"


def test_a_form_that_lacks_an_answer_leads_there_and_is_not_sent(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rating"))
    press(page, "ArrowDown", "2", "Control+Enter")
    assert active(page) == "naturalness"
    assert said(page) == "Naturalness: Choose an answer first."
    problem = page.locator('[data-field="naturalness"] [data-problem]')
    expect(problem).to_be_in_viewport()
    expect(problem).to_have_text("Choose an answer first.")
    expect(page.locator('[data-field="naturalness"] input').first).to_be_focused()
    assert violations(page) == []
    assert not Label.objects.exists()
    press(page, "2")
    expect(problem).to_have_count(0)


def test_a_digit_that_is_no_option_says_which_are(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rating"))
    press(page, "7")
    problem = page.locator("[data-field][data-active] [data-problem]")
    expect(problem).to_have_text("This key does nothing here. Use 1, 2, 3.")
    expect(problem).to_be_in_viewport()
    assert said(page) == "Naturalness: This key does nothing here. Use 1, 2, 3."
    press(page, "3")
    expect(page.locator("[data-problem]")).to_have_count(0)
    described = page.locator("[data-field]").first.get_attribute("aria-describedby")
    assert described == "asked-naturalness-help"


def test_a_rubric_adds_up_while_it_is_filled_in(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rubric-scoring"))
    expect(page.locator("[data-total]")).to_have_text("—")
    press(page, "2", "3")
    expect(page.locator("[data-total]")).to_have_text("5 so far")
    press(page, "5", "0", "1")
    expect(page.locator("[data-total]")).to_have_text("11")
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    assert Label.objects.get().answers == {"m1": 2, "m2": 3, "m3": 5, "m4": 0, "m5": 1}
    assert Label.objects.get().choice == "11"


def test_the_score_matrix_takes_minus_as_a_key(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rubric-matrix"))
    press(page, "1", "-", "0", "Control+Enter")
    wait_for(page, "item-2")
    assert Label.objects.get().answers == {"s1": 1, "s2": -1, "s3": 0}


def press_french(page: Page, *keys: tuple[str, str]) -> None:
    """Keys of a French keyboard without Shift: what they type, and which they are."""
    for key, code in keys:
        page.evaluate(
            "([key, code]) => document.body.dispatchEvent("
            "new KeyboardEvent('keydown', {key, code, bubbles: true}))",
            [key, code],
        )


def test_minus_on_the_six_of_a_french_keyboard_is_minus(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rubric-matrix"))
    press_french(page, ("-", "Digit6"), ("&", "Digit1"), ("à", "Digit0"))
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    assert Label.objects.get().answers == {"s1": -1, "s2": 1, "s3": 0}


def test_a_key_without_a_minus_to_answer_is_its_digit(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rating"))
    press_french(page, ("-", "Digit6"))
    expect(page.locator("[data-problem]")).to_have_text("This key does nothing here. Use 1, 2, 3.")
    press_french(page, ("é", "Digit2"))
    assert said(page) == "Naturalness: Partly natural. Next: Relatedness."


def test_a_digit_counts_as_it_is_typed_wherever_its_key_lies(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("rating"))
    press_french(page, ("3", "Digit2"), ("ArrowDown", "Numpad2"))
    assert said(page) == "Naturalness: Natural. Next: Relatedness."


def test_an_error_is_typed_and_explained_and_no_error_is_one_key(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("error-detection", 3))
    expect(page.locator('[data-field="explanation"]')).to_be_hidden()
    press(page, "1")
    assert active(page) == "error_type"
    page.wait_for_timeout(150)  # at once, it would count as one press
    press(page, "1", "3", "Control+Enter")
    assert active(page) == "explanation"
    page.keyboard.type("2 + 2 is 4, not 5.")
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    label = Label.objects.get()
    assert label.answers == {
        "verdict": "error",
        "error_type": ["reasoning-correctness", "context-faithfulness"],
        "explanation": "2 + 2 is 4, not 5.",
    }
    press(page, "2", "Control+Enter")
    wait_for(page, "item-3")
    assert Label.objects.latest("pk").answers == {"verdict": "no_error"}


def test_the_same_keys_answer_an_undone_rating_anew(open_page: OpenPage) -> None:
    """All fields begin with an answer, and still each key goes to its own field."""
    page = label_screen(open_page, at_work("rating"))
    press(page, "3", "2", "1", "Control+Enter")
    wait_for(page, "item-2")
    press(page, "u")
    wait_for(page, "item-1")
    press(page, "2")
    assert active(page) == "relatedness"
    assert said(page) == "Naturalness: Partly natural. Next: Relatedness."
    press(page, "3", "2")
    assert said(page) == "Correctness: Partly correct. All fields are answered: Ctrl+Enter saves."
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    made = Label.objects.latest("pk")
    assert made.answers == {"naturalness": 2, "relatedness": 3, "correctness": 2}


def test_other_words_stand_in_for_the_type_of_an_error(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("error-detection"))
    press(page, "1", "ArrowDown")
    assert active(page) == "other_type"
    page.keyboard.type("It is cut off.")
    press(page, "ArrowDown")
    page.keyboard.type("The last line ends early.")
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    assert Label.objects.get().answers["other_type"] == "It is cut off."
    assert "error_type" not in Label.objects.get().answers


def test_what_was_answered_before_another_verdict_is_not_sent(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("error-detection"))
    press(page, "1", "1", "ArrowUp", "2")
    sent = page.evaluate("[...new FormData(document.querySelector('[data-label]')).keys()]")
    assert {"verdict", "error_type", "explanation", "reason"} & {*sent} == {"verdict"}
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    assert Label.objects.get().answers == {"verdict": "no_error"}


def test_a_first_look_is_answered_before_anything_is_revealed(open_page: OpenPage) -> None:
    member = at_work("perturbation-vetting", blind_first=True)
    page = open_page(member.account, reverse("label", args=[member.project.slug]))
    page.wait_for_selector("#panel[data-phase=blind][data-ready]")
    assert active(page) == "error"
    press(page, "1")
    assert active(page) == "passage"
    # What cannot be marked is written instead.
    press(page, "ArrowDown")
    assert active(page) == "place"
    page.keyboard.type("six legs")
    press(page, "Escape", "2", "Control+Enter")
    page.wait_for_selector('#panel[data-item="item-1"][data-phase="label"][data-ready]')
    press(page, "1")
    page.wait_for_selector("#panel[data-phase=blind][data-ready]")
    said_of_it = {label.stage: label.answers for label in Label.objects.all()}
    assert said_of_it == {
        "blind": {"error": True, "place": "six legs", "severity": 2},
        "label": {"choice": "valid"},
    }


@pytest.mark.parametrize("slug", TEXTS)
def test_every_form_works_without_a_script(open_page: OpenPage, slug: str) -> None:
    member = at_work(slug)
    path = reverse("label", args=[member.project.slug])
    page = open_page(member.account, path, java_script_enabled=False)
    for field in page.locator("fieldset[data-field]:not([data-when-field])").all():
        if field.locator("input").count():
            field.locator("input").nth(1).check()
    end = page.locator("[data-store]:not([type=button])")
    (end if end.count() else page.locator("button.choice").first).click()
    expect(page.locator('#panel[data-item="item-2"]')).to_be_visible()
    assert Label.objects.count() == 1


@pytest.mark.parametrize("width, scheme", LOOKS)
@pytest.mark.parametrize("slug", ["rating", "rubric-scoring", "error-detection"])
def test_axe_finds_nothing_in_a_form(
    open_page: OpenPage, slug: str, width: int, scheme: str
) -> None:
    page = label_screen(open_page, at_work(slug), **look(width, scheme))
    press(page, "1")
    checked(page)


@pytest.mark.parametrize("width, scheme", LOOKS)
def test_a_lead_sees_what_a_change_of_the_task_does(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    # So much of the first text that the preview scrolls.
    member = at_work("rating", texts={"prompt": "Say more.\n" * 40})
    member.role = "lead"
    member.save()
    path = reverse("task", args=[member.project.slug]) + "?tab=toml"
    page = open_page(member.account, path, **look(width, scheme))
    source = page.input_value("#source")
    page.fill("#source", source.replace('"Naturalness"', '"Flow"'))
    expect(page.locator("#preview legend").first).to_have_text("Flow")
    page.locator('#preview [data-field="naturalness"] input').first.check()
    checked(page)
    page.fill("#source", source.replace('kind = "scale"', 'kind = "scales"', 1))
    page.click("[data-line]")
    assert page.evaluate("getSelection().toString()") == 'kind = "scales"'
    checked(page)


def test_more_changes_than_a_form_has_entries_can_be_checked(open_page: OpenPage) -> None:
    texts = {
        name: " ".join(f"Group {number} has {word} cats." for number in range(1_100))
        for name, word in (("gold", "two"), ("perturbed", "six"))
    }
    member = at_work("perturbation-vetting", claim_check=True, texts=texts)
    page = label_screen(open_page, member)
    press(page, "1")
    page.locator("[data-rest-explained]").click()
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    answers = Label.objects.get().answers["claim_check"]
    assert (len(answers), set(answers.values())) == (1_100, {"explained"})


def test_what_was_said_of_a_change_is_not_brought_back_on_texts_that_have_other_changes(
    open_page: OpenPage,
) -> None:
    texts = {
        "gold": "Ants have six legs. Cats have four legs.",
        "perturbed": "Ants have six legs. Cats have five legs.",
    }
    member = at_work("perturbation-vetting", claim_check=True, texts=texts)
    page = label_screen(open_page, member)
    lose_connection(page)
    page.fill("#comment", "Four.")
    page.locator("#panel li label", has_text="Collateral").click()
    expect(page.locator("#panel li input").last).to_be_checked()
    item = Item.objects.get(key="item-1")
    changed = item.revision().texts | {"perturbed": "Ants have seven legs. Cats have four legs."}
    author = make_member(member.project)
    revisions.add_revision(item, changed, author=author, note="", now=timezone.now())
    page.context.set_offline(False)
    page.reload()
    wait_for(page, "item-1")
    expect(page.locator("#comment")).to_have_value("Four.")
    expect(page.locator("#panel li input").last).not_to_be_checked()


def test_what_tab_leads_to_is_in_sight_on_a_screen_of_400_percent(open_page: OpenPage) -> None:
    member = at_work("rating")
    page = label_screen(open_page, member, viewport={"width": 320, "height": 256})
    page.locator("[name=naturalness]").first.focus()
    for field in ("relatedness", "correctness"):
        while page.evaluate("document.activeElement.name") != field:
            page.keyboard.press("Tab")
        expect(page.locator(f"[name={field}]").first).to_be_in_viewport()


def test_what_was_written_in_a_field_on_another_page_is_shown_before_it_is_replaced(
    open_page: OpenPage,
) -> None:
    """Some seconds: a draft is stored one second after the last key."""
    page = label_screen(open_page, at_work("error-detection"))
    other = screen.second_page(page)
    other.goto(page.url)
    wait_for(other, "item-1")
    press(other, "1")
    with other.expect_response("**/draft/"):
        other.fill("[data-field=explanation] textarea", "It is four.")
    other.close()
    with page.expect_response("**/draft/"):
        page.fill("#comment", "Simple sums.")
    expect(page.locator("#trouble")).to_contain_text(
        "You wrote in this draft on another page, too:"
    )
    expect(page.locator("#trouble")).to_contain_text("It is four.")


def test_what_was_written_in_a_field_that_another_answer_hides_is_there_after_a_reload(
    open_page: OpenPage,
) -> None:
    page = label_screen(open_page, at_work("error-detection"))
    press(page, "1")
    explanation = page.locator("[data-field=explanation] textarea")
    explanation.fill("It is four.")
    page.locator("label", has_text="No error").click()
    expect(explanation).to_be_hidden()
    with page.expect_response("**/draft/"):
        page.fill("#comment", "Simple sums.")
    page.reload()
    wait_for(page, "item-1")
    expect(explanation).to_be_hidden()
    press(page, "1")
    expect(explanation).to_have_value("It is four.")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"explanation"', '"why"'),
        ('"explanation"\nkind = "text"', '"explanation"\nkind = "yesno"'),
    ],
)
def test_what_was_written_without_a_connection_for_a_question_that_is_asked_no_more_is_shown(
    open_page: OpenPage, before: str, after: str
) -> None:
    member = at_work("error-detection")
    page = label_screen(open_page, member)
    press(page, "1")
    lose_connection(page)
    page.fill("[data-field=explanation] textarea", "It is four.")
    task_type = member.project.task_type
    adapt_task_type(member, versions.version_source(task_type).replace(before, after))
    page.context.set_offline(False)
    page.reload()
    wait_for(page, "item-1")
    expect(page.locator("#trouble")).to_contain_text("It is four.")
    checked(page)
    Draft.objects.all().delete()  # which may have come as the page was left
    with page.expect_response("**/draft/"):
        page.fill("[name=comment]", "hm")
    page.reload()
    wait_for(page, "item-1")
    expect(page.locator("#panel")).to_contain_text("You wrote an answer to a question that is no")
    assert "It is four." in page.locator("#panel pre").all_text_contents()[-1]
