"""Nothing in a text is hidden from its reader, and what belongs to letters is left alone."""

import re

import pytest

from annotation.items.diffing.difference import compare
from annotation.items.rendering import invisible_characters
from annotation.items.rendering.differences import DifferenceRenderer, render_plain
from annotation.items.rendering.texts import render_text


def seen(html: str) -> list[str]:
    return re.findall(r'data-sign="([^"]+)"', html)


@pytest.mark.parametrize(
    "sign, name",
    [
        ("\u202e", "RLO"),
        ("\u2066", "LRI"),
        ("\u2069", "PDI"),
        ("\u200b", "ZWSP"),
        ("\ufeff", "BOM"),
        ("\u00ad", "SHY"),
        ("\x1b", "U+001B"),
        ("\U000e0041", "U+E0041"),
    ],
)
def test_a_sign_that_cannot_be_seen_gets_a_name_and_stays(sign: str, name: str) -> None:
    html = invisible_characters.escape_text(f"a{sign}b")
    assert seen(html) == [name]
    assert re.sub(r"<[^>]+>", "", html) == f"a{sign}b"


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d👩\u200d👧",  # a family, one emoji
        "🏳\ufe0f\u200d🌈",
        "👩🏽\u200d🚀",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # a flag
        "می\u200cخواهم",  # Persian
        "क्\u200dष",  # Devanagari
        "e\u0301",
    ],
)
def test_joiners_that_belong_to_emoji_or_letters_are_left_alone(text: str) -> None:
    assert invisible_characters.escape_text(text) == text


@pytest.mark.parametrize("text", ["ab\u200dcd", "a \u200c b", "\u200d", "1\u200d2"])
def test_joiners_between_other_signs_are_shown(text: str) -> None:
    assert seen(invisible_characters.escape_text(text)) != []


def test_raw_text_shows_its_white_space_and_is_still_the_text() -> None:
    text = "a  b\tc\u00a0d\ne"
    html = invisible_characters.render_raw(text)
    assert re.findall(r'data-blank="([^"]+)"', html) == ["··", "→", "⍽", "↵"]
    assert re.sub(r"<[^>]+>", "", html) == text


def test_hostile_text_is_escaped() -> None:
    for html in (
        invisible_characters.escape_text('<img src="x">'),
        invisible_characters.render_raw('<img src="x">'),
    ):
        assert "<img" not in html


def test_in_html_only_text_is_touched() -> None:
    html = invisible_characters.name_in_html('<a href="x\u202e>">y\u202e</a>')
    assert html.startswith('<a href="x\u202e>">y<span class="sign"')


def test_of_very_many_signs_the_first_are_named_and_all_stay() -> None:
    """A name is an element, and a text of a million of them filled memories."""
    text = "a\u00ad\n" * (invisible_characters.MOST_NAMED + 5)
    drawn = DifferenceRenderer(compare("a\n", text))
    shown = [drawn.inline(), drawn.sides(), drawn.columns("plain"), render_plain(text)]
    shown += [render_text(text, "plain"), render_text(text, "markdown")]
    for html in shown:
        assert len(seen(html)) == invisible_characters.MOST_NAMED
        assert html.count("\u00ad") == text.count("\u00ad")


def test_of_very_many_changed_numbers_none_is_marked() -> None:
    few, many = (DifferenceRenderer(compare("It is 8.", "5 " * n)).inline() for n in (9, 30_000))
    assert few.count("<mark") > 9
    assert "<mark" not in many


def test_of_very_many_blanks_the_first_are_drawn_and_all_stay() -> None:
    text = "a\n" * (invisible_characters.MOST_DRAWN + 5)
    raw = DifferenceRenderer(compare("a\n", text)).raw()
    assert raw.count("<i data-blank") == invisible_characters.MOST_DRAWN
    assert raw.count("\n") == text.count("\n")
