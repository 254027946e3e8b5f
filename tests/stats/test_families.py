from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from stats import families

METHODS = {
    "holm": families.holm,
    "fdr_bh": families.benjamini_hochberg,
    "fdr_by": families.benjamini_yekutieli,
}
ps = st.lists(st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.01, 0.5])), max_size=12)


def test_holm_by_hand():
    # Sorted .01 .02 .04 times 3, 2, 1: .03 .04 .04.
    assert families.holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    # .03 x 2 = .06 holds .04 down to it; .9 x 2 is cut at 1.
    assert families.holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert families.holm([0.9, 0.8]) == [1, 1]


def test_benjamini_hochberg_by_hand():
    # .01 x 3 / 1 = .03, .04 x 3 / 2 = .06, .05 x 3 / 3 = .05, which pulls the second down.
    assert families.benjamini_hochberg([0.05, 0.04, 0.01]) == pytest.approx([0.05, 0.05, 0.03])


def test_benjamini_yekutieli_by_hand():
    # Times 1 + 1/2 + 1/3 = 11/6.
    expected = [0.05 * 11 / 6, 0.05 * 11 / 6, 0.03 * 11 / 6]
    assert families.benjamini_yekutieli([0.05, 0.04, 0.01]) == pytest.approx(expected)


@given(ps, st.sampled_from(sorted(METHODS)))
def test_adjusted_p_values_equal_those_of_statsmodels(values, name):
    """A minute with the many examples of CI, and statsmodels is loaded."""
    found = METHODS[name](values)
    made = [p for p in values if p is not None]
    expected = iter(multipletests(made, method=name)[1]) if made else iter([])
    for p, adjusted in zip(values, found, strict=True):
        assert adjusted == (None if p is None else pytest.approx(next(expected)))


@pytest.mark.parametrize("adjust", METHODS.values())
def test_no_tests_one_test_and_what_is_no_p(adjust):
    assert adjust([]) == []
    assert adjust([None]) == [None]
    assert adjust([0.03, None]) == [0.03, None]
    with pytest.raises(ValueError, match="is not a p"):
        adjust([1.5])


def test_pairs_below_alpha_are_different():
    assert families.different_pairs([0.049, 0.05, None], 3) == {(0, 1)}
    with pytest.raises(ValueError):
        families.different_pairs([0.5], 3)


def test_letters_by_hand():
    # The first and the last differ: the two in the middle share with both.
    assert families.compact_letters(4, {(0, 3)}) == ["a", "ab", "ab", "b"]
    assert families.compact_letters(3, {(0, 1), (0, 2), (1, 2)}) == ["a", "b", "c"]
    # 0 differs from 2 and 3, 1 from 3: 01, 12, 23.
    assert families.compact_letters(4, {(0, 2), (0, 3), (1, 3)}) == ["a", "ab", "bc", "c"]
    assert families.compact_letters(2, set()) == ["a", "a"]
    assert families.compact_letters(1, set()) == ["a"]


def test_after_z_letters_are_two_and_stand_apart():
    found = families.compact_letters(28, set(combinations(range(28), 2)))
    assert (found[0], found[25], found[26], found[27]) == ("a", "z", "aa", "ab")


@given(st.integers(1, 7), st.data())
def test_two_runs_share_a_letter_unless_they_are_different(runs, data):
    pairs = list(combinations(range(runs), 2))
    different = data.draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    found = families.compact_letters(runs, different)
    for one, other in pairs:
        assert bool(set(found[one]) & set(found[other])) == ((one, other) not in different)
    # No letter is idle: none stands only where another stands as well.
    holders = [
        {run for run in range(runs) if letter in found[run]} for letter in set("".join(found))
    ]
    assert not any(one <= other for one in holders for other in holders if one is not other)


def test_letters_of_pairs_that_differ_each_over_items_of_its_own():
    # Two evaluators in each of 11 categories: a letter for each largest set of runs without a pair
    # that differs would be 2^11 letters.
    different = {(run, run + 1) for run in range(0, 22, 2)}
    split = families.split_letters(families.compact_letters(22, different))
    shared = {(a, b) for a, b in combinations(range(22), 2) if split[a] & split[b]}
    assert shared == set(combinations(range(22), 2)) - different
    assert len(set.union(*split)) <= families.MOST_GROUPS


@pytest.mark.parametrize(
    ("shown", "split"),
    [
        (["a", "ab", "", "b"], [{"a"}, {"a", "b"}, set(), {"b"}]),
        (["z", "z aa", "aa"], [{"z"}, {"z", "aa"}, {"aa"}]),
    ],
)
def test_letters_are_split_as_they_were_joined(shown, split):
    assert families.split_letters(shown) == split


def test_letters_of_many_runs_that_all_differ_are_words():
    shown = families.compact_letters(30, set(combinations(range(30), 2)))
    assert shown[-1] == "ad"
    split = families.split_letters(shown)
    assert all(one.isdisjoint(other) for one, other in combinations(split, 2))
