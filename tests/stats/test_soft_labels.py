"""Verdicts against shares of people, by hand and against drawn people."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import soft_labels

shares = st.integers(2, 9).flatmap(lambda k: st.tuples(st.integers(0, k), st.just(k)))


def test_agreement_of_three_people_by_hand():
    # Two of three said error: a verdict of error agrees with 2/3, of no error with 1/3; half of the
    # samples with 1/2. Of three pairs of people one agrees; no verdict can do better than 2/3.
    verdicts = [1, 0, 0.5, np.nan]
    found = soft_labels.agreement_with_people(verdicts, [2 / 3] * 4)
    assert found[:3] == pytest.approx([2 / 3, 1 / 3, 1 / 2])
    assert np.isnan(found[3])
    assert soft_labels.agreement_of_people([2], [3]) == pytest.approx([1 / 3])
    assert soft_labels.highest_agreement([2 / 3, 1 / 3]) == pytest.approx([2 / 3, 2 / 3])


def test_one_person_agrees_with_nobody():
    assert np.isnan(soft_labels.agreement_of_people([1], [1])).all()


@given(shares)
def test_people_agree_as_often_as_their_pairs_do(one):
    errors, labels = one
    said = [True] * errors + [False] * (labels - errors)
    alike = [a == b for a, b in combinations(said, 2)]
    [found] = soft_labels.agreement_of_people([errors], [labels])
    assert found == pytest.approx(np.mean(alike))


@given(shares, st.sampled_from([0, 1]))
def test_a_verdict_agrees_as_often_as_people_say_so_and_never_above_the_highest(one, verdict):
    errors, labels = one
    said = [1] * errors + [0] * (labels - errors)
    [found] = soft_labels.agreement_with_people([verdict], [errors / labels])
    assert found == pytest.approx(np.mean([one == verdict for one in said]))
    assert found <= soft_labels.highest_agreement([errors / labels])[0] + 1e-12
