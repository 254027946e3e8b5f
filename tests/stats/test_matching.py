import pytest

from stats.matching import string_match


@pytest.mark.parametrize(
    "reference, candidate, score",
    [
        ("Great Bustard", "It is a great bustard, standing in grass.", 1),
        ("Great Bustard", "A bustard of the GREAT plains.", 1),
        ("Great Bustard", "Some kind of bustard.", 0.5),
        ("Great Bustard", "A parrot.", 0),
        # whole words: "bustards" is another word
        ("Great Bustard", "Greater bustards", 0),
        ("Stortrapp på ängen", "ÄNGEN", 0.5),
        ("...", "...", 0),
        ("", "anything", 0),
    ],
)
def test_all_words_of_the_reference_give_1_some_a_half_and_none_0(reference, candidate, score):
    assert string_match([reference], candidate) == score


def test_the_best_of_several_references_counts_and_none_at_all_is_an_error():
    assert string_match(["Emu", "Great Bustard"], "an emu") == 1
    with pytest.raises(ValueError, match="at least one reference"):
        string_match([], "an emu")
