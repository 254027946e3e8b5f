"""The F1 of marked characters, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import bootstrap, overlap
from stats.overlap import Passage, count_characters, mean_f1, overlap_f1, pooled_f1

passages = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 9)).map(
        lambda one: (one[0], min(one[1:]), max(one[1:]))
    ),
    max_size=5,
)


def at(start: int, end: int, key: object = "t") -> Passage:
    return key, start, end


def test_half_of_each_passage_is_shared() -> None:
    # 0-4 and 2-6 share 2 of 4 and 4 characters: precision and recall 2/4.
    assert count_characters([at(0, 4)], [at(2, 6)]) == (2, 4, 4)
    assert overlap_f1([at(0, 4)], [at(2, 6)]) == 1 / 2


def test_a_longer_passage_around_a_shorter_one_loses_precision_alone() -> None:
    # Precision 2/8, recall 2/2, so 2 x 1/4 x 1 / (5/4) = 2/5.
    assert overlap_f1([at(0, 8)], [at(3, 5)]) == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    "one, other, f1",
    [
        ([], [], None),
        ([at(0, 3)], [], 0),
        ([], [at(0, 3)], 0),
        ([at(0, 3)], [at(3, 6)], 0),
        ([at(0, 3)], [at(0, 3)], 1),
        ([at(2, 2)], [], None),
    ],
)
def test_the_ends_of_the_scale(one: list[Passage], other: list[Passage], f1: float | None) -> None:
    assert overlap_f1(one, other) == f1


def test_passages_of_other_texts_or_labels_share_nothing() -> None:
    assert overlap_f1([at(0, 3, ("a", "sum"))], [at(0, 3, ("a", "fact"))]) == 0
    assert overlap_f1([at(0, 3, ("a", None))], [at(0, 3, ("b", None))]) == 0


def test_one_passage_cut_in_two_or_marked_twice_is_the_same_passage() -> None:
    assert overlap_f1([at(0, 6)], [at(3, 6), at(0, 3)]) == 1
    assert count_characters([at(0, 4), at(2, 6), at(3, 5)], [at(0, 6)]) == (6, 6, 6)


@given(passages, passages)
def test_the_count_is_that_of_sets_of_characters(one: list[Passage], other: list[Passage]) -> None:
    first, second = (
        {(key, place) for key, start, end in said for place in range(start, end)}
        for said in (one, other)
    )
    assert count_characters(one, other) == (len(first & second), len(first), len(second))
    assert overlap_f1(one, other) == overlap_f1(other, one)


def test_long_passages_weigh_more_in_the_pooled_figure_and_alike_in_the_mean() -> None:
    # Shared 8 of 10 and 8, and 0 of 1 and 1; an item that nobody marked does not count.
    marked = [[[at(0, 10)], [at(2, 10)]], [[at(0, 1)], [at(1, 2)]], [[], []]]
    pooled, mean = pooled_f1(marked).point(), mean_f1(marked).point()
    assert (pooled.value, pooled.n) == (pytest.approx(16 / 20), 2)
    assert (mean.value, mean.n) == (pytest.approx((16 / 18 + 0) / 2), 2)


def test_three_raters_of_an_item_are_three_pairs_with_one_items_weight() -> None:
    # F1 of the pairs: 1, 0, 0; sums 8 of 8, 0 of 4, 0 of 4, so means 8/3 and 16/3.
    marked = [[[at(0, 4)], [at(0, 4)], []], [[at(0, 4)], [at(0, 4)], None]]
    assert mean_f1(marked).point().value == pytest.approx((1 / 3 + 1) / 2)
    assert pooled_f1(marked).point().value == pytest.approx((8 / 3 + 8) / (16 / 3 + 8))


@pytest.mark.parametrize(
    "marked, reason",
    [
        ([], overlap.NO_PAIR),
        ([[[at(0, 1)], None]], overlap.NO_PAIR),
        ([[[], []], [[], None]], overlap.NOTHING),
    ],
)
def test_what_cannot_be_measured_has_a_reason(marked: overlap.Marked, reason: str) -> None:
    for figure in (pooled_f1(marked), mean_f1(marked)):
        assert (figure.point().value, figure.point().reason) == (None, reason)


def test_ten_items_have_an_interval() -> None:
    marked = [[[at(0, 4)], [at(0, 4 - item % 3)]] for item in range(10)]
    rng = np.random.Generator(np.random.PCG64(1))
    found = bootstrap.estimate(pooled_f1(marked), np.arange(10), rng)
    assert None not in (found.value, found.low, found.high)
    low, value, high = (float(one or 0) for one in (found.low, found.value, found.high))
    assert 0 < low < value < high
