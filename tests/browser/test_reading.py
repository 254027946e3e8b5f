"""A person reads an item: every way to see its texts, from change to change, by keyboard."""

import re
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from annotation import tasktypes
from annotation.models import Membership, TaskTypeVersion
from tests.browser.conftest import OpenPage
from tests.browser.screen import choose, label_screen, said, wait_for
from tests.browser.test_accessibility import violations
from tests.builders import make_item, make_member, make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GOLD = "The bridge of $x^2$ is 5 km long.\n\n- It is **old**.\n- It stands.\n"
PERTURBED = "The bridge of $x^3$ is 5 miles long.\n\n* It is **old**.\n- It never stands.\n"
FILLER = "This line is the same in both of the answers, word for word.\n\n"
SHOWN = '[data-panes="compared"] > [data-serves]:not([hidden])'
COPIED = """(selector) => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(selector));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  return getSelection().toString();
}"""
# How far the mark that is current stands from the top of its pane, and how high the pane is.
PLACE = """(number) => {
  const pane = document.querySelector('[data-panes="compared"]');
  const marks = [...pane.querySelectorAll(`[data-change="${number}"]`)];
  const mark = marks.find((one) => one.getClientRects().length);
  const top = mark.getBoundingClientRect().top - pane.getBoundingClientRect().top;
  return [top, pane.clientHeight];
}"""


@pytest.fixture
def member() -> Membership:
    return make_member(make_project(text_format="math"), role="adjudicator")


def vet(open_page: OpenPage, member: Membership, **options: Any) -> Page:
    page = open_page(member.account, reverse("label", args=[member.project.slug]), **options)
    page.wait_for_selector("#panel[data-ready]")
    return page


def changed_item(member: Membership, gold: str = GOLD, perturbed: str = PERTURBED) -> None:
    texts = {"gold": gold, "perturbed": perturbed, "claim": "Each of them."}
    make_item(member.project, "item-01", texts=texts)


def read_as(page: Page, form: str) -> None:
    page.click(".texts-formats > summary")
    page.click(f'[data-format-choice="{form}"]')


def is_in_view(page: Page, number: str) -> bool:
    top, height = page.evaluate(PLACE, number)
    return 0 <= top <= height


def test_one_key_turns_through_the_five_views_and_back(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member)
    page = vet(open_page, member)
    seen = []
    for _ in range(6):
        seen.append(page.get_attribute("[data-reading]", "data-view"))
        assert page.locator(SHOWN).count() == 1
        page.keyboard.press("d")
    assert seen == ["inline", "side", "after", "before", "raw", "inline"]


def test_a_view_without_the_changes_is_for_one_item_and_the_view_before_comes_back(
    open_page: OpenPage, member: Membership
) -> None:
    for key in ("one", "two", "three"):
        make_item(member.project, key)
    page = label_screen(open_page, member, "one")
    page.click('[data-view="side"]')
    choose(page, "1", "two")
    assert page.get_attribute("[data-reading]", "data-view") == "side"
    page.click('[data-view="before"]')
    choose(page, "1", "three")
    assert page.get_attribute("[data-reading]", "data-view") == "side"
    page.click('[data-view="raw"]')
    page.reload()
    wait_for(page, "three")
    assert page.get_attribute("[data-reading]", "data-view") == "side"


def test_the_chosen_view_and_format_are_there_after_loading_again(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member)
    page = vet(open_page, member)
    page.click('[data-view="after"]:not([data-reading])')
    read_as(page, "markdown")
    page.reload()
    expect(page.locator(f"{SHOWN}.prose ins").first).to_be_visible()
    assert page.get_attribute("[data-reading]", "data-format") == "markdown"
    assert page.locator(".math").count() == 0


def test_formulas_are_drawn_and_a_changed_one_is_marked(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member)
    page = vet(open_page, member)
    page.click('[data-view="after"]:not([data-reading])')
    expect(page.locator(f"{SHOWN} ins .katex-html").first).to_be_visible()


def test_a_key_steps_through_the_changes_in_every_view_and_says_their_kind(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member)
    page = vet(open_page, member)
    for _ in range(5):
        page.evaluate("delete document.querySelector('[data-reading]').dataset.at")
        page.keyboard.press("n")
        assert said(page) == "Change 1 of 4, number"
        page.keyboard.press("n")
        assert said(page) == "Change 2 of 4, unit"
        page.keyboard.press("p")
        page.keyboard.press("p")
        assert said(page) == "Change 4 of 4, negation"
        assert page.locator(f"{SHOWN} [data-current]").count() >= 1
        page.keyboard.press("d")


MOVED = "First you mix the flour with all of the eggs.\n"
STAYS = "Then you bake it in the oven for at least half an hour.\n"


def test_keys_lead_from_one_end_of_a_move_to_the_other_and_then_on(
    open_page: OpenPage, member: Membership
) -> None:
    end = "Serve it to {} people."
    changed_item(member, MOVED + STAYS + end.format("five"), STAYS + MOVED + end.format("six"))
    page = vet(open_page, member)
    expect(page.locator("[data-at-change]")).to_have_text("2 changes")
    heard = []
    for _ in range(4):
        page.keyboard.press("n")
        heard.append(said(page))
    assert heard == [
        "Change 1 of 2, moved down",
        "Change 1 of 2, moved here from above",
        "Change 2 of 2, number",
        "Change 1 of 2, moved down",
    ]
    assert page.locator(f"{SHOWN} :is(del, ins)[data-move][data-current]").count() == 2  # both ends


def test_all_changes_of_formatting_are_one_stop(open_page: OpenPage, member: Membership) -> None:
    gold = "**One** of them.\n\n- Here.\n- There.\n\nIt has eight legs."
    perturbed = "One of them.\n\n* Here.\n* There.\n\nIt has six legs."
    changed_item(member, gold, perturbed)
    page = vet(open_page, member)
    expect(page.locator("[data-at-change]")).to_have_text("2 changes")
    page.keyboard.press("n")
    assert said(page) == "Change 1 of 2, formatting in 4 places"
    assert page.locator(f"{SHOWN} [data-current]").count() >= 4
    page.keyboard.press("n")
    assert said(page) == "Change 2 of 2, number"


def test_side_by_side_shows_both_texts_formatted_with_their_changes(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member)
    page = vet(open_page, member)
    page.click('[data-view="side"]:not([data-reading])')
    read_as(page, "math")
    columns = page.locator(f"{SHOWN} > .prose")
    expect(columns).to_have_count(2)
    expect(columns.nth(0).locator("del .katex-html")).to_be_visible()
    expect(columns.nth(1).locator("ins .katex-html")).to_be_visible()
    assert columns.nth(0).locator("ins").count() == 0
    assert violations(page) == []


def test_a_screen_reader_is_told_what_was_removed_and_added_and_of_which_kind(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member, "It has eight legs.", "It has six hairy legs.")
    spoken = vet(open_page, member).locator(SHOWN).aria_snapshot()
    heard = " ".join(re.findall(r"(?:text|mark): \"?([^\"\n]*)", spoken))
    assert "removed, number: eight added, number: six hairy" in heard


def test_a_key_folds_what_changed_in_looks_alone(open_page: OpenPage, member: Membership) -> None:
    changed_item(member)
    page = vet(open_page, member)
    mark = page.locator(f"{SHOWN} del[data-folds]")
    expect(mark).to_be_visible()
    page.keyboard.press("w")
    expect(mark).to_be_hidden()
    expect(page.locator("[data-fold-switch]")).to_contain_text("Show 1 folded")
    page.keyboard.press("n")
    assert said(page) == "Change 1 of 3, number"
    page.reload()
    expect(mark).to_be_hidden()


def test_the_first_change_of_a_long_text_is_in_view_and_the_next_come_into_it(
    open_page: OpenPage, member: Membership
) -> None:
    gold = FILLER * 120 + "It has eight legs. " + FILLER * 120 + "It is red."
    changed_item(member, gold, gold.replace("eight", "six").replace("red", "blue"))
    page = vet(open_page, member)
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") == 0
    assert is_in_view(page, "1")
    assert not is_in_view(page, "3")
    for view in ("side", "after", "before", "raw", "inline"):
        page.click(f'[data-view="{view}"]:not([data-reading])')
        page.wait_for_selector(f'{SHOWN}[data-serves*="{view}"]')
        page.evaluate("document.querySelector('[data-reading]').dataset.at = ''")
        page.keyboard.press("n")
        page.keyboard.press("n")
        page.wait_for_timeout(200)
        assert is_in_view(page, "3")


def test_the_strip_beside_a_long_text_leads_to_a_change(
    open_page: OpenPage, member: Membership
) -> None:
    gold = FILLER * 60 + "It has eight legs. " + FILLER * 60 + "It is red."
    changed_item(member, gold, gold.replace("eight", "six").replace("red", "blue"))
    page = vet(open_page, member)
    strip = page.locator("[data-strip]")
    box = strip.bounding_box()
    assert box
    strip.click(position={"x": 5, "y": box["height"] - 3})
    assert said(page) == "Change 2 of 2"
    assert is_in_view(page, "3")


def test_a_long_text_brings_another_view_when_it_is_asked_for(
    open_page: OpenPage, member: Membership
) -> None:
    gold = FILLER * 400 + "It has eight legs."
    changed_item(member, gold, gold.replace("eight", "six"))
    page = vet(open_page, member)
    assert page.locator("template[data-pane]").count() > 0  # of the prompt, which is short
    assert page.locator('[data-panes="compared"] > *').count() == 1
    page.fill("#comment", "Not to be lost.")
    page.focus("[data-focus]")
    page.keyboard.press("d")
    expect(page.locator(f"{SHOWN}.diff-columns")).to_be_visible()
    assert page.input_value("#comment") == "Not to be lost."
    assert page.locator(SHOWN).count() == 1


@pytest.mark.parametrize("long", [False, True])
def test_copying_gives_the_text_and_nothing_that_was_only_drawn(
    open_page: OpenPage, member: Membership, long: bool
) -> None:
    gold = (
        FILLER * 400 if long else ""
    ) + "One \u202esix\u200b 👩‍👩‍👧 e\u0301 \u05d0\u05d1.\n\n  Two km."
    perturbed = gold.replace("km", "miles")
    changed_item(member, gold, perturbed)
    page = vet(open_page, member)
    for view, text in (("after", perturbed), ("raw", perturbed), ("before", gold)):
        read_as(page, "plain")
        page.click(f'[data-view="{view}"]:not([data-reading])')
        page.wait_for_selector(f'{SHOWN}[data-serves*="{view}"]')
        assert page.evaluate(COPIED, SHOWN).strip("\n") == text


def test_signs_that_turn_the_direction_are_named_and_turn_nothing(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member, "It is \u202eabc here.", "It is \u202eabc there.")
    page = vet(open_page, member)
    name = page.evaluate(
        f"getComputedStyle(document.querySelector('{SHOWN} .sign'), '::before').content"
    )
    assert name == '"RLO"'
    # Were it obeyed, "abc" would run from right to left: a after c.
    places = page.evaluate(
        f"""() => {{
          const node = document.querySelector('{SHOWN} .sign').nextSibling;
          const left = (from) => {{
            const range = document.createRange();
            range.setStart(node, from);
            range.setEnd(node, from + 1);
            return range.getBoundingClientRect().left;
          }};
          return [left(0), left(2)];
        }}"""
    )
    assert places[0] < places[1]


@pytest.mark.parametrize("view", ["after", "before", "inline"])
def test_each_line_has_the_direction_of_its_own_text(
    open_page: OpenPage, member: Membership, view: str
) -> None:
    gold = "An English line.\nזו שורה בעברית עם 5 מילים."
    changed_item(member, gold, gold.replace("5", "7"))
    page = vet(open_page, member)
    read_as(page, "plain")
    page.click(f'[data-view="{view}"]:not([data-reading])')
    # The Hebrew line begins at the right edge: its last sign stands left of its first.
    first, last, edge = page.evaluate(
        f"""() => {{
          const pane = document.querySelector('{SHOWN}');
          const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT);
          const nodes = [];
          while (walker.nextNode()) {{
            if (walker.currentNode.data.trim()) nodes.push(walker.currentNode);
          }}
          const box = (node, at) => {{
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            return range.getBoundingClientRect();
          }};
          const start = nodes[0].data.indexOf("\\n") + 1;
          const end = nodes[nodes.length - 1];
          return [box(nodes[0], start).right, box(end, end.data.trimEnd().length - 1).left,
                  pane.getBoundingClientRect().right];
        }}"""
    )
    assert last < first
    assert edge - first < 40


def test_several_golds_and_a_response_are_read_without_a_difference(
    open_page: OpenPage, member: Membership
) -> None:
    member.project.task_type = TaskTypeVersion.objects.get_or_create(
        slug="rating",
        number=1,
        defaults={"definition": tasktypes.load_definitions()["rating"], "digest": "x"},
    )[0]
    member.project.save()
    texts: dict[str, Any] = {
        "gold": ["$a$", "**b**"],
        "response": "Some *words*.",
        "perturbed": None,
    }
    make_item(member.project, "item-01", texts=texts)
    path = reverse("item", args=[member.project.slug, "item-01"])
    page = open_page(member.account, path, viewport={"width": 390, "height": 800})
    assert page.locator("[data-views]").count() == 0
    expect(page.locator("[data-panes='gold-1'] .katex-html")).to_be_visible()
    expect(page.locator("[data-panes='gold-2'] strong")).to_be_visible()
    expect(page.locator("[data-panes='response-1'] em")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing_in_any_view(
    open_page: OpenPage, member: Membership, width: int, scheme: str
) -> None:
    """Some seconds: axe looks through each of the five views."""
    table = "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n# Title\n\n> said\n"
    changed_item(
        member, GOLD + table + FILLER * 30, PERTURBED + table.replace("2", "3") + FILLER * 30
    )
    size = {"width": width, "height": 900}
    page = vet(open_page, member, viewport=size, color_scheme=scheme)
    for _ in range(5):
        page.keyboard.press("n")
        page.wait_for_timeout(100)
        assert violations(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        page.keyboard.press("d")
    page.keyboard.press("w")
    assert violations(page) == []


def test_it_can_be_read_without_a_script(open_page: OpenPage, member: Membership) -> None:
    changed_item(member)
    path = reverse("label", args=[member.project.slug])
    page = open_page(member.account, path, java_script_enabled=False)
    page.click('a[data-view="after"]')
    read_as(page, "markdown")
    page.click("a[data-fold-switch]")
    page.goto(path)
    expect(page.locator(f"{SHOWN}.prose ins").first).to_be_visible()
    expect(page.locator("[data-fold-switch]")).to_contain_text("Show 1 folded")


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "dark")])
def test_each_piece_of_a_claim_check_leads_to_its_change_and_the_rest_is_explained_at_once(
    open_page: OpenPage, width: int, scheme: str
) -> None:
    member = make_member(make_project(claim_check=True))
    changed_item(member)
    size = {"width": width, "height": 900}
    page = vet(open_page, member, viewport=size, color_scheme=scheme)
    check = page.locator("[data-claim-check]")
    expect(check.locator("li")).to_have_count(4)
    check.locator("[data-piece]").nth(1).click()
    assert said(page) == "Change 2 of 4, unit"
    check.locator("input[value=collateral]").nth(1).check(force=True)
    expect(check.locator("input:checked")).to_have_count(1)
    check.locator("[data-rest-explained]").click()
    expect(check.locator("input[value=explained]:checked")).to_have_count(3)
    expect(check.locator("input[value=collateral]:checked")).to_have_count(1)
    assert violations(page) == []


def test_a_correction_stands_beside_the_changes_and_begins_at_the_one_that_was_read(
    open_page: OpenPage, member: Membership
) -> None:
    gold = "😀 It has eight legs.\n" + "It sat on a web.\n" * 40 + "It caught two flies."
    perturbed = gold.replace("eight", "six").replace("two", "three")
    changed_item(member, gold, perturbed)
    page = vet(open_page, member)
    page.keyboard.press("e")
    cursor = "[document.activeElement.selectionStart, document.activeElement.scrollTop]"
    assert page.evaluate(cursor) == [perturbed.index("six") + 1, 0]  # a face is two units
    expect(page.locator(SHOWN)).to_be_visible()
    page.keyboard.press("Alt+ArrowDown")
    place, scrolled = page.evaluate(cursor)
    assert place == perturbed.index("three") + 1
    assert scrolled > 100
    assert is_in_view(page, "3")
    page.keyboard.insert_text("some of the ")
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowDown")
    place = page.evaluate("document.activeElement.selectionStart") - 1
    assert page.input_value("#correct-text")[place:] == "some of the three flies."


def test_a_formatted_view_says_how_many_changes_it_does_not_show(
    open_page: OpenPage, member: Membership
) -> None:
    changed_item(member, "One.\n\n1. Two six.\n2. Three.", "One.\n\n3. Two ten.\n4. Three.")
    page = vet(open_page, member)
    unseen = page.locator("[data-unseen]")
    expect(unseen).to_be_hidden()
    page.keyboard.press("d")
    read_as(page, "markdown")
    expect(unseen).to_have_text(re.compile(r"^[12] not shown in this view$"))
