"""What is drawn of an item's texts, for each task type and each habit of a reader."""

import re
from typing import Any

import pytest

from annotation import tasktypes
from annotation.items.diffing.difference import Difference, compare
from annotation.items.rendering import differences, sheet
from annotation.items.rendering.sheet import (
    Comparison,
    ItemSheet,
    Pane,
    ReadingPreferences,
    TextSheet,
)
from annotation.items.rendering.texts import find_format
from annotation.tasktypes import TaskType

GOLD, PERTURBED = "It has *eight* legs.", "It has *six* legs."
LONG = "A line of words that stands in both texts.\n" * (differences.LONG_TEXT // 40)


def task(slug: str = "perturbation-vetting") -> TaskType:
    return tasktypes.parse_definition(tasktypes.load_definitions()[slug])


def read(
    texts: dict[str, Any],
    habits: ReadingPreferences | None = None,
    difference: Difference | None = None,
    slug: str = "perturbation-vetting",
) -> ItemSheet:
    return sheet.build_sheet(task(slug), texts, difference, habits or ReadingPreferences())


def compared(gold: str, perturbed: str, habits: ReadingPreferences | None = None) -> Comparison:
    texts = {"prompt": "?", "gold": gold, "perturbed": perturbed}
    found = read(texts, habits, compare(gold, perturbed)).comparison
    assert found
    return found


def chosen(panes: tuple[Pane, ...]) -> Pane:
    """The pane that is shown at first; there is always just one."""
    (pane,) = (pane for pane in panes if pane.chosen)
    return pane


def test_texts_stand_in_the_order_of_the_task_and_claims_at_the_side() -> None:
    texts = {"claim": "c", "perturbed": PERTURBED, "gold": GOLD, "prompt": "?", "rationale": "r"}
    sheets = read(texts, difference=compare(GOLD, PERTURBED)).sheets
    assert [type(sheet) for sheet in sheets] == [TextSheet, Comparison]
    assert isinstance(sheets[1], Comparison)
    assert sheets[1].title == "Gold vs perturbed answer"


def test_without_a_difference_each_text_has_a_sheet_of_its_own() -> None:
    # As at a first look, where the gold answer is not shown either.
    found = read({"prompt": "?", "perturbed": PERTURBED})
    assert [sheet.name for sheet in found.sheets if isinstance(sheet, TextSheet)] == [
        "prompt",
        "perturbed",
    ]
    assert found.comparison is None


def test_several_golds_are_parts_of_one_sheet() -> None:
    texts = {"prompt": "?", "gold": ["one", "two", "three"], "response": "r"}
    golds = next(
        s
        for s in read(texts, slug="rating").sheets
        if isinstance(s, TextSheet) and s.name == "gold"
    )
    assert [chosen(part).html for part in golds.parts] == ["one", "two", "three"]


@pytest.mark.parametrize("slug", sorted(tasktypes.load_definitions()))
def test_every_task_type_is_drawn(slug: str) -> None:
    texts: dict[str, Any] = {
        text.name: ["a <b>", "c"] if text.many else "a <b>" for text in task(slug).texts
    }
    difference = compare("a", "a <b>") if task(slug).diff else None
    for read_sheet in read(texts, difference=difference, slug=slug).sheets:
        whole = isinstance(read_sheet, Comparison)
        parts = [read_sheet.panes] if whole else read_sheet.parts
        for panes in parts:
            assert chosen(panes)
            assert all("<b>" not in pane.html for pane in panes if pane.kind == "text")


@pytest.mark.parametrize("view", sheet.VIEWS)
@pytest.mark.parametrize("form", ["plain", "markdown", "math"])
@pytest.mark.parametrize("gold", [GOLD, GOLD + " $x$", LONG + GOLD, "", LONG + "$x$ שלום"])
def test_one_pane_shows_each_view_in_each_format(view: str, form: Any, gold: str) -> None:
    panes = compared(gold, gold + " More.", ReadingPreferences(view, form)).panes
    serves = chosen(panes).serves
    if view in ("after", "before", "side"):
        assert f"{view}:{form}" in serves
    else:
        assert view in serves


def test_a_short_text_has_every_way_on_the_page_and_a_long_one_the_chosen_alone() -> None:
    ways = {name for pane in compared(GOLD, PERTURBED).panes for name in pane.serves}
    assert {
        "inline",
        "side:plain",
        "side:math",
        "raw",
        "after:math",
        "before:markdown",
        "before:plain",
    } <= ways
    assert len(compared(LONG + GOLD, LONG + PERTURBED).panes) == 1


def test_changes_are_marked_in_the_later_text_alone_and_can_be_found_in_the_earlier() -> None:
    after = chosen(compared(GOLD, PERTURBED, ReadingPreferences("after", "markdown")).panes).html
    assert '<em><ins data-change="1" data-mark="number">' in after
    assert '<mark data-kind="number" data-badge="#">six</mark></ins></em>' in after
    before = chosen(compared(GOLD, PERTURBED, ReadingPreferences("before", "markdown")).panes).html
    assert '<em><span class="spot" data-change="1"' in before


def test_raw_shows_the_white_space_of_the_later_text() -> None:
    raw = chosen(compared("a b", "a  b\t", ReadingPreferences("raw")).panes).html
    assert 'data-blank="··"' in raw
    assert 'data-blank="→"' in raw
    long = chosen(
        compared("a b\n" * 9000, "a b\n" * 9000 + "c  d", ReadingPreferences("raw")).panes
    ).html
    assert 'data-blank="·"' not in long
    assert 'data-blank="··"' in long


def test_raw_leaves_single_spaces_of_a_long_text_alone_also_beside_a_change() -> None:
    line = "It has eight legs and waits.\n"
    gold = line * (differences.LONG_TEXT // 20)
    drawn = chosen(
        compared(gold, gold.replace("eight", "six"), ReadingPreferences("raw")).panes
    ).html
    assert 'data-blank="·"' not in drawn
    moved = gold.replace("eight legs", " six legs", 1)  # "has" and two spaces, the one new
    drawn = chosen(compared(gold, moved, ReadingPreferences("raw")).panes).html
    assert drawn.count('data-blank="·') == 1
    assert drawn.count("data-blank") == gold.count("\n") + 1
    assert re.sub("<[^>]+>", "", drawn) == moved


def test_what_can_be_folded_is_counted_and_the_legend_names_what_occurs() -> None:
    found = compared("one  two **three** 4", "one two three 5")
    assert found.folded == 2  # the two spaces, and the signs round "three"
    assert [mark for mark, _ in found.marks] == ["number", "white-space", "formatting"]


def test_the_strip_shows_where_the_changes_are() -> None:
    # 1 of 100 characters before the change: a hundredth of 1,000, on a grid of 4.
    strip = compared("a b" + " c" * 50, "a X" + " c" * 50).strip
    assert strip.count("<rect") == 1
    assert 'data-place="1"' in strip


@pytest.mark.parametrize(
    "text, form",
    [
        ("Plain words.\n- and\n- a list", "plain"),
        ("It costs $2, not $3_000, and a_b * c * d.", "plain"),
        ("def f(**kwargs):\n    # a comment\n    return kwargs ** 2", "plain"),
        ("A **bold** claim.", "markdown"),
        ("Words.\n\n### A heading", "markdown"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "markdown"),
        ("```\ncode\n```", "markdown"),
        (r"So \( x = 2 \) holds, **always**.", "math"),
        ("\\[\n6 \\times 7\n\\]", "math"),
        (r"The root $\sqrt{2}$ is not rational, and $x^2$ is.", "math"),
        ("\\[ never closed", "plain"),
    ],
)
def test_the_format_is_found_from_the_signs_of_a_text(text: str, form: str) -> None:
    assert find_format(["Words.", text]) == form


def test_texts_have_the_format_that_they_hold_until_somebody_chooses_one() -> None:
    gold, perturbed = "A **bold** claim.", "A **bold** lie."
    found = ReadingPreferences.from_request({}, {}, "p", "found")
    texts = {"prompt": "Why?", "gold": gold, "perturbed": perturbed}
    assert read(texts, found, compare(gold, perturbed)).habits.format == "markdown"
    assert read({"prompt": "Why?", "gold": "A", "perturbed": "B"}, found).habits.format == "plain"
    chosen_once = ReadingPreferences.from_request({}, {"format-p": "plain"}, "p", "found")
    assert not chosen_once.finds_format


def test_habits_come_from_the_address_then_from_cookies_then_from_the_project() -> None:
    kept = {"diff": "side", "format-p": "markdown", "fold": "on"}
    assert ReadingPreferences.from_request({}, {}, "p", "math") == ReadingPreferences(
        "inline", "math", False
    )
    assert ReadingPreferences.from_request({}, kept, "p", "math") == ReadingPreferences(
        "side", "markdown", True
    )
    assert ReadingPreferences.from_request(
        {"view": "raw", "format": "plain", "fold": "off"}, kept, "p"
    ) == ReadingPreferences("raw")
    assert ReadingPreferences.from_request({}, kept, "q", "math").format == "math"
    # A view in which changes cannot be seen is for one item.
    assert ReadingPreferences.from_request({}, {"diff": "before"}, "p").view == "inline"
    assert sheet.preference_cookies({"view": "before", "fold": "on"}, "p") == {"fold": "on"}


def test_odd_values_in_addresses_and_cookies_mean_nothing() -> None:
    odd = {"view": "<b>", "format": "x", "fold": "maybe"}
    assert (
        ReadingPreferences.from_request(odd, {"diff": "?", "fold": ""}, "p", "odd")
        == ReadingPreferences()
    )
    assert sheet.preference_cookies(odd, "p") == {}


def test_what_an_address_asks_for_is_kept_in_cookies() -> None:
    asked = {"view": "side", "format": "math", "fold": "on", "item": "a"}
    assert sheet.preference_cookies(asked, "p") == {
        "diff": "side",
        "format-p": "math",
        "fold": "on",
    }


def test_other_texts_have_another_key() -> None:
    assert read({"prompt": "a"}).key == read({"prompt": "a"}).key
    assert read({"prompt": "a"}).key != read({"prompt": "b"}).key
