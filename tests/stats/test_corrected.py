import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import corrected
from stats.corrected import correct_credit, correct_rate
from stats.estimates import Estimate
from stats.rates import estimate_rate


def digits(text):
    return np.array([int(one) for one in text], dtype=float)


# A seeded sample: 40 labels, what an evaluator says of these items, and of 160 others.
LABELS = digits("0001101001111111000011011110011111011101")
JUDGED = digits("0100101000111111101011011110111101000001")
REST = digits(
    "10010001111011101111001101001100101001101001011111001101011000101011101000001111100101001010"
    "01110001000101111110101011010001010001111001001001000100001000110100"
)
HIDDEN = np.full(len(REST), np.nan)
VERDICTS, KNOWN = np.concatenate([JUDGED, REST]), np.concatenate([LABELS, HIDDEN])


def interval(estimate):
    return (estimate.low, estimate.high)


def without_factor(estimate, items):
    """The ends without the factor m / (m - 1) of the variance, which the package lacks."""
    half = (estimate.high - estimate.low) / 2 * math.sqrt((items - 1) / items)
    return (estimate.value - half, estimate.value + half)


def test_values_and_intervals_equal_the_reference_package():
    # ppi_py 0.2.3: ppi_mean_pointestimate and ppi_mean_ci with alpha=0.05, lam=1 and lam=None.
    found = correct_rate(VERDICTS, KNOWN, np.arange(200))
    assert found.ppi.value == pytest.approx(0.5437500000000001, abs=1e-12)
    assert found.ppi_plus.value == pytest.approx(0.5950758428371349, abs=1e-12)
    assert without_factor(found.ppi, 200) == pytest.approx(
        (0.3712090831013639, 0.7162909168986362), abs=1e-9
    )
    assert without_factor(found.ppi_plus, 200) == pytest.approx(
        (0.4596998024329828, 0.730451883241287), abs=1e-9
    )
    assert found.people == estimate_rate(LABELS, np.arange(40))
    assert found.evaluator == estimate_rate(REST, np.arange(160))


def test_rogan_and_gladen_by_hand():
    # Of 10 positive labels 8 are found, of 10 negative ones 1 is an alarm; half of 100 others:
    # (.5 + .9 - 1) / (.8 + .9 - 1) = 4/7.
    judged, labels = digits("11111111001000000000"), digits("11111111110000000000")
    rest = np.tile([1.0, 0.0], 50)
    found = correct_rate(
        np.concatenate([judged, rest]),
        np.concatenate([labels, np.full(100, np.nan)]),
        np.arange(120),
    ).rogan_gladen
    assert found.value == pytest.approx(4 / 7)
    # The delta method: (p q / N + v^2 se (1 - se) / 10 + (1 - v)^2 sp (1 - sp) / 10) / .7^2
    variance = (0.25 / 100 + (4 / 7) ** 2 * 0.16 / 10 + (3 / 7) ** 2 * 0.09 / 10) / 0.49
    half = 1.959964 * math.sqrt(variance * 120 / 119)
    assert interval(found) == pytest.approx((4 / 7 - half, 4 / 7 + half), abs=1e-6)


def test_a_rate_beyond_the_range_is_cut_and_told():
    judged, labels = digits("1111100001"), digits("1111100000")
    found = correct_rate(
        np.concatenate([judged, np.zeros(20)]),
        np.concatenate([labels, np.full(20, np.nan)]),
        np.arange(30),
    ).rogan_gladen
    # (0 + .8 - 1) / .8 is below 0.
    assert (found.value, found.low, found.reason) == (0, 0, "cut to the range from 0 to 1")
    assert found.high > 0


def test_items_of_one_question_count_together():
    one = correct_rate(VERDICTS, KNOWN, np.arange(200))
    # Each item four times, in its own cluster: as much is known as before.
    again = correct_rate(np.repeat(VERDICTS, 4), np.repeat(KNOWN, 4), np.repeat(np.arange(200), 4))
    assert again.ppi.value == pytest.approx(one.ppi.value)
    # With several items a question, Student's quantile for forty of them.
    wider = 2.022691 / 1.959964
    assert again.ppi.high - again.ppi.low == pytest.approx(wider * (one.ppi.high - one.ppi.low))
    apart = correct_rate(np.repeat(VERDICTS, 4), np.repeat(KNOWN, 4), np.arange(800))
    assert apart.ppi.high - apart.ppi.low < 0.6 * (one.ppi.high - one.ppi.low)


def test_an_evaluator_that_says_nothing_of_the_labels_has_no_weight():
    found = correct_rate([0.5] * 20, [*[1.0, 0.0] * 5, *[np.nan] * 10], np.arange(20))
    assert found.weight == 0
    assert found.ppi_plus.value == found.people.value == 0.5


@pytest.mark.parametrize(
    ("verdicts", "labels", "figure", "reason"),
    [
        ([1, 0], [np.nan, np.nan], "ppi", corrected.NO_LABELS),
        ([1, 0], [1, 0], "ppi_plus", corrected.ALL_LABELLED),
        ([1, 0, 1], [1, 1, np.nan], "rogan_gladen", corrected.ONE_KIND),
        ([0, 1, 1], [1, 0, np.nan], "rogan_gladen", corrected.NO_BETTER),
        ([1, 0, 1], [1, np.nan, np.nan], "ppi", corrected.ONE_LABELLED_CLUSTER),
        ([1, 1, 1], [1, 1, np.nan], "ppi", corrected.NO_SPREAD),
        ([], [], "people", "no items"),
    ],
)
def test_what_is_lacking_is_told(verdicts, labels, figure, reason):
    found = getattr(correct_rate(verdicts, labels, np.arange(len(verdicts))), figure)
    assert (found.low, found.high, found.reason) == (None, None, reason)


def test_an_item_without_a_verdict_is_left_out():
    verdicts, labels = [*VERDICTS, np.nan, np.nan], [*KNOWN, 1, np.nan]
    assert correct_rate(verdicts, labels, np.arange(202)) == correct_rate(
        VERDICTS, KNOWN, np.arange(200)
    )


def test_a_level_is_a_fraction():
    with pytest.raises(ValueError, match="level"):
        correct_rate([1, 0], [1, np.nan], [1, 2], level=95)


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 1, math.nan])), max_size=40))
def test_every_value_is_a_rate_within_its_interval(items):
    verdicts, labels = [one for one, _ in items], [one for _, one in items]
    found = correct_rate(verdicts, labels, [place // 2 for place in range(len(items))])
    for name in ("people", "evaluator", "rogan_gladen", "ppi", "ppi_plus"):
        one = getattr(found, name)
        assert one.value is None or 0 <= one.value <= 1
        assert one.low is None or 0 <= one.low <= one.value <= one.high <= 1


@pytest.mark.parametrize(
    ("found", "false_credit", "value"),
    [(0.5, 0.2, 0.375), (0.3, 0, 0.3), (0.1, 0.2, 0), (1, 0.5, 1), (0.5, 1, None)],
)
def test_credit_that_explanations_get_falsely_is_taken_off(found, false_credit, value):
    assert correct_credit(found, false_credit) == (None if value is None else pytest.approx(value))


def test_an_undetected_rate_after_credit_by_hand():
    # 60 of 100 undetected, all with equal scores; 30 of these named: .3 after credit. Of gold
    # answers .2 get credit, so only (.5 - .2) / .8 = .375 are really named: .6 - .6 x .375.
    after, credit = Estimate(0.3, 0.22, 0.4, 100), Estimate(0.2, 0.1, 0.3, 60)
    found = corrected.correct_after_credit(after, 0.6, 0.5, credit)
    assert found.value == pytest.approx(0.375)
    # At .1 of false credit (.5 - .1) / .9 are named, at .3 (.5 - .3) / .7.
    low, high = 0.6 - 0.6 * 4 / 9, 0.6 - 0.6 * 2 / 7
    assert interval(found) == pytest.approx(
        (0.375 - math.hypot(0.08, 0.375 - low), 0.375 + math.hypot(0.1, high - 0.375))
    )


@pytest.mark.parametrize(
    ("after", "found", "credit", "reason"),
    [
        (Estimate(0.3, 0.2, 0.4, 9), 0.5, Estimate(None, None, None, 0, "no items"), "no check of"),
        (Estimate(0.3, 0.2, 0.4, 9), 0.5, Estimate(1, 0.5, 1, 9), "in every explanation"),
        (Estimate(None, None, None, 0, "no items"), None, Estimate(0.2, 0.1, 0.3, 9), "no items"),
        (Estimate(0.3, 0.2, 0.4, 9), 0.5, Estimate(0.2, None, None, 9, "one cluster"), "one clus"),
    ],
)
def test_what_a_corrected_credit_lacks_is_told(after, found, credit, reason):
    made = corrected.correct_after_credit(after, 0.6, found, credit)
    assert reason in made.reason
    assert interval(made) == (None, None)
