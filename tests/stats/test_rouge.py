import csv
import io
import re
import unicodedata
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from stats.rouge import METRICS, best_score, rouge_l, rouge_l_unicode, unicode_words

ascii_text = st.text(st.characters(max_codepoint=127), max_size=200)
few_words = st.lists(st.sampled_from(["a", "b", "Cat", "7", "-"]), max_size=30).map(" ".join)
oracle = RougeScorer(["rougeL"])


def google(reference, candidate):
    return oracle.score(reference, candidate)["rougeL"].fmeasure


def test_four_of_six_words_in_order_by_hand():
    # "the cat sat" is common; P = 3/4, R = 3/6, F = 2 x 3 / (4 + 6).
    assert rouge_l("The cat sat on a mat.", "the cat, there sat") == pytest.approx(0.6)


def test_order_counts():
    assert rouge_l("one two three four", "four three two one") == 0.25


@pytest.mark.parametrize("pair", [("", ""), ("", "word"), ("word", ""), ("word", "...")])
def test_a_text_without_words_scores_nothing(pair):
    assert rouge_l(*pair) == rouge_l_unicode(*pair) == 0


@given(ascii_text, ascii_text)
def test_equals_rouge_score_on_ascii(reference, candidate):
    assert rouge_l(reference, candidate) == pytest.approx(google(reference, candidate), abs=1e-9)


@given(few_words, few_words)
def test_equals_rouge_score_where_words_return(reference, candidate):
    assert rouge_l(reference, candidate) == pytest.approx(google(reference, candidate), abs=1e-9)


def test_equals_rouge_score_on_published_pairs(shared_data):
    with zipfile.ZipFile(shared_data / "fbi" / "data.zip") as archive:
        text = archive.read("data/long-form/grammar-errors.tsv").decode()
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    pairs = [(row["og"], row["perturbed_gpt4"]) for row in rows][:25]
    assert [rouge_l(*pair) for pair in pairs] == pytest.approx(
        [google(*pair) for pair in pairs], abs=1e-9
    )


def test_ascii_words_drop_other_letters_and_unicode_words_keep_them():
    assert rouge_l("blå", "blä") == 1
    assert rouge_l_unicode("blå", "blä") == 0
    assert rouge_l_unicode("Blå båt", "blå BÅT") == 1


def test_composed_and_decomposed_letters_are_the_same_word():
    assert rouge_l_unicode("smörgås", unicodedata.normalize("NFD", "smörgås")) == 1


@given(few_words, few_words)
def test_both_tokenisers_agree_on_plain_words(reference, candidate):
    assert rouge_l_unicode(reference, candidate) == rouge_l(reference, candidate)


def test_an_underscore_is_part_of_a_unicode_word_only():
    assert rouge_l("a_b", "a b") == 1
    assert rouge_l_unicode("a_b", "a b") == 0


@pytest.mark.parametrize("metric", METRICS.values())
def test_the_best_reference_counts(metric):
    assert best_score(["nothing alike", "one two", "one"], "one two", metric) == 1


def test_a_score_needs_a_reference():
    with pytest.raises(ValueError, match="reference"):
        best_score([], "text", rouge_l)


def test_vowel_signs_are_part_of_their_word():
    # Hindi "हिन्दी भाषा", Tamil "தமிழ்", Arabic with points: no letter of them has all signs within.
    assert unicode_words("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert unicode_words("தமிழ், மொழி!") == ["தமிழ்", "மொழி"]
    assert len(unicode_words("كِتَابٌ جَدِيدٌ")) == 2
    # Words that differ in a vowel sign alone ("day", "give") are different words.
    assert rouge_l_unicode("दिन", "दीन") == 0


def test_joiners_hold_a_word_together():
    assert unicode_words("می‌خواهم") == ["می‌خواهم"]
    assert unicode_words("क्‍ष") == ["क्‍ष"]


def test_a_mark_that_follows_no_letter_begins_no_word():
    # A heart with its selector, and a stray accent.
    assert unicode_words("\u2764\ufe0flove \u0301") == ["love"]


def test_a_letter_that_falls_apart_when_lower_cased_stays_in_its_word():
    # The Turkish capital with a dot becomes i and a combining dot.
    assert len(unicode_words("İstanbul")) == 1


@given(st.text(st.characters(exclude_categories=["M", "Cf"]), max_size=100))
def test_without_marks_words_are_what_splitting_at_other_characters_gives(text):
    lowered = unicodedata.normalize("NFC", text).lower()
    # Lower-casing may make marks; then splitting is what goes wrong.
    if not any(unicodedata.category(one).startswith("M") for one in lowered):
        assert unicode_words(text) == [word for word in re.split(r"[^\w]+", lowered) if word]
