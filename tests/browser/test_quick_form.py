"""The quick form of perturbation vetting: one key is a label, unless the project asks for more."""

import pytest
from playwright.sync_api import expect

from annotation.models import Label
from tests.browser import screen
from tests.browser.conftest import OpenPage
from tests.browser.screen import the_label, wait_for
from tests.browser.test_fields import active, at_work, label_screen, press, said

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SLUG = "perturbation-vetting"
# Two changes, so that a claim check has two pieces.
TWO_CHANGES = {
    "gold": "A spider has eight legs and two parts.",
    "perturbed": "A spider has six legs and three parts.",
}


def test_not_sure_asks_why_by_one_more_key(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("perturbation-vetting"))
    press(page, "5")
    assert active(page) == "reason"
    assert said(page).startswith("Not sure. Why are you not sure?")
    assert not Label.objects.exists()
    press(page, "Escape")
    assert active(page) == "choice"
    press(page, "5", "2")
    wait_for(page, "item-2")
    assert the_label().answers == {"choice": "not-sure", "reason": "gold-wrong"}


def test_the_expected_effect_may_be_said_or_left_open(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("perturbation-vetting", 4, expected_effect=True))
    press(page, "1", "3")
    wait_for(page, "item-2")
    press(page, "1", "Control+Enter")
    wait_for(page, "item-3")
    press(page, "2")
    wait_for(page, "item-4")
    assert [label.answers for label in Label.objects.order_by("pk")] == [
        {"choice": "valid", "effect": "lot"},
        {"choice": "valid"},
        {"choice": "invalid"},
    ]


def test_changed_pieces_are_checked_against_the_claim_by_key(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("perturbation-vetting", claim_check=True))
    press(page, "ArrowDown")
    assert active(page) == "claim_check"
    press(page, "2", "ArrowUp", "1")
    wait_for(page, "item-2")
    [said_of_piece] = the_label().answers["claim_check"].values()
    assert said_of_piece == "collateral"


def test_enter_on_a_choice_never_presses_another_one(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("perturbation-vetting"))
    press(page, "5", "Tab", "Shift+Tab", "Enter")
    wait_for(page, "item-2")
    assert the_label().answers["choice"] == "not-sure"


def test_the_examples_of_a_choice_open_by_the_keyboard(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work("perturbation-vetting"))
    page.focus('.choice[value="valid"]')
    press(page, "Tab", "Enter")
    expect(page.locator(".examples[open] li").first).to_be_visible()
    assert not Label.objects.exists()


def test_a_pick_waits_for_the_claim_check_and_goes_out_with_its_last_piece(
    open_page: OpenPage,
) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "1")
    assert active(page) == "claim_check"
    assert said(page).startswith("Valid. Does the claim explain each change?")
    page.wait_for_timeout(150)  # at once, it would count as one press
    press(page, "1")
    page.wait_for_timeout(500)
    assert not Label.objects.exists()
    press(page, "2")
    wait_for(page, "item-2")
    answers = the_label().answers
    assert list(answers["claim_check"].values()) == ["explained", "collateral"]
    press(page, "2", "Control+Enter")  # or as it is
    page.wait_for_selector("#panel:not([data-item])")
    assert Label.objects.latest("pk").answers == {"choice": "invalid"}


def test_a_corrected_piece_of_a_claim_check_waits_until_the_label_is_sent(
    open_page: OpenPage,
) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "1", "1", "2")
    wait_for(page, "item-2")
    page.goto(f"{page.url.partition('?')[0]}?item=item-1")
    wait_for(page, "item-1")
    boxes = page.locator('[data-field="claim_check"] input[value="collateral"]')
    boxes.nth(0).focus()
    press(page, "2")
    page.wait_for_timeout(500)
    assert Label.objects.count() == 1
    press(page, "Control+Enter")
    page.wait_for_selector('#panel:not([data-item="item-1"])')
    answers = Label.objects.get(current=True, item__key="item-1").answers
    assert list(answers["claim_check"].values()) == ["collateral", "collateral"]


def test_the_piece_that_is_shown_is_the_one_that_a_key_answers(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "1")
    expect(page.locator("[data-at-change]")).to_have_text("Change 1 of 2, number")
    press(page, "n", "2")
    pieces = page.locator("[data-claim-check] li")
    expect(pieces.nth(1).locator("[value=collateral]")).to_be_checked()
    expect(pieces.nth(0).locator(":checked")).to_have_count(0)
    expect(pieces.nth(0)).to_have_attribute("data-current", "")
    expect(page.locator("[data-at-change]")).to_have_text("Change 1 of 2, number")


def test_zero_explains_the_rest_and_sends(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "1", "2", "0")
    wait_for(page, "item-2")
    said_of_pieces = the_label().answers["claim_check"].values()
    assert list(said_of_pieces) == ["collateral", "explained"]


def test_a_claim_check_with_an_open_piece_is_sent_at_the_second_try(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "1", "2", "Control+Enter")
    expect(page.locator("[data-problem]")).to_contain_text("1 change has no answer.")
    assert not Label.objects.exists()
    press(page, "Control+Enter")
    wait_for(page, "item-2")
    assert list(the_label().answers["claim_check"].values()) == ["collateral"]


def test_the_expected_effect_does_not_send_an_open_claim_check(open_page: OpenPage) -> None:
    both = {"claim_check": True, "expected_effect": True}
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, **both))
    press(page, "ArrowDown")
    assert active(page) == "claim_check"
    press(page, "1")  # one of the two pieces
    press(page, "ArrowUp", "1")
    assert active(page) == "effect"
    press(page, "2")
    assert active(page) == "claim_check"
    page.wait_for_timeout(500)
    assert not Label.objects.exists()
    press(page, "1")
    wait_for(page, "item-2")
    answers = the_label().answers
    assert answers["effect"] == "little"
    assert list(answers["claim_check"].values()) == ["explained", "explained"]


def test_a_key_that_bounces_answers_once_and_says_so(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    page.evaluate(
        """() => {
            const at = performance.now();
            for (const after of [0, 40]) {
                const which = {key: "1", code: "Digit1", bubbles: true};
                const press = new KeyboardEvent("keydown", which);
                Object.defineProperty(press, "timeStamp", {value: at + after});
                document.body.dispatchEvent(press);
            }
        }"""
    )
    assert active(page) == "claim_check"
    assert page.locator("[data-claim-check] :checked").count() == 0
    assert screen.said(page) == "Key ignored: it was pressed twice at once."
    press(page, "2")
    assert page.locator("[data-claim-check] :checked").count() == 1


def test_a_restored_choice_is_taken_back_by_escape(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "2", "1")
    page.wait_for_timeout(1500)  # the draft is stored
    page.reload()
    wait_for(page, "item-1")
    assert active(page) == "claim_check"
    press(page, "Escape")
    assert active(page) == "choice"
    press(page, "1")
    expect(page.locator('.choice[value="valid"]')).to_have_attribute("data-chosen", "")
    assert page.locator("[data-claim-check] :checked").count() == 1
    assert not Label.objects.exists()


def test_a_space_after_the_list_of_keys_opened_turns_nothing_off(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG))
    press(page, "?", "Space")
    # The space may scroll the list.
    expect(page.locator("#keys")).to_be_visible()
    press(page, "Escape", "2")
    wait_for(page, "item-2")


def test_a_key_that_no_piece_has_names_the_two(open_page: OpenPage) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    press(page, "1", "5")
    expect(page.locator("[data-problem]")).to_have_text("This key does nothing here. Use 1, 2, 0.")
    press(page, "1")
    expect(page.locator("[data-problem]")).to_have_count(0)


def test_before_there_is_a_choice_the_keys_choose_and_afterwards_they_answer_what_is_shown(
    open_page: OpenPage,
) -> None:
    page = label_screen(open_page, at_work(SLUG, texts=TWO_CHANGES, claim_check=True))
    pieces = page.locator("[data-claim-check] li")
    press(page, "n")
    expect(pieces.nth(0)).not_to_have_attribute("data-current", "")
    press(page, "1", "1")
    expect(page.locator('.choice[value="valid"]')).to_have_attribute("data-chosen", "")
    page.wait_for_timeout(1500)  # the draft is stored
    page.reload()
    wait_for(page, "item-1")
    assert active(page) == "claim_check"
    press(page, "n", "n", "2")
    wait_for(page, "item-2")
    label = the_label()
    assert label.choice == "valid"
    assert list(label.answers["claim_check"].values()) == ["explained", "collateral"]


def test_a_key_that_means_nothing_leaves_no_button_that_space_would_press(
    open_page: OpenPage,
) -> None:
    page = label_screen(open_page, at_work(SLUG))
    press(page, "9")
    expect(page.locator("[data-problem]")).to_contain_text("This key does nothing here.")
    press(page, "Space", "Enter")
    page.wait_for_timeout(500)
    assert not Label.objects.exists()
