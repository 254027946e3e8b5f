"""Normal forms take no longer for a text whose letters have very many marks."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.items import search_index
from stats import rouge
from stats.unicode_forms import MOST_MARKS, normalise

# Marks of two classes, which are sorted, and a sign that consists of such marks.
ACUTE, CEDILLA, PAIR = "\u0301", "\u0327", "\u0f73"


@given(st.text(max_size=MOST_MARKS))
def test_a_text_has_its_usual_form(text: str) -> None:
    assert normalise("NFC", text) == unicodedata.normalize("NFC", text)
    assert normalise("NFKC", text) == unicodedata.normalize("NFKC", text)


def test_marks_that_no_writing_has_are_left_out() -> None:
    text = f"e{ACUTE * 40}x{CEDILLA}"
    assert normalise("NFC", text) == f"\u00e9{ACUTE * (MOST_MARKS - 1)}x{CEDILLA}"


@pytest.mark.parametrize(("marks", "word"), [(ACUTE + CEDILLA, "\u00e1"), (PAIR, "a")])
def test_a_letter_with_very_many_marks_takes_no_time(marks: str, word: str) -> None:
    text = "a" + marks * 20_000
    started = time.process_time()
    assert search_index.split_words(text) == [word]
    assert len(rouge.unicode_words(text)) == 1
    assert time.process_time() - started < 1
