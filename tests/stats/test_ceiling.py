import math

import krippendorff
import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from stats import bootstrap, ceiling, closeness, correlation

NAN = math.nan
TOO_FEW = "under 3 raters with 50 items shared with others and the evaluator"


def generator(seed=1):
    return np.random.Generator(np.random.PCG64(seed))


def people(items, noise=0.3, raters=3, seed=1):
    """Raters and an evaluator who give the truth, or, with that chance, any value of 1 to 3."""
    rng = generator(seed)
    truth = rng.integers(1, 4, size=items)
    shape = (items, raters + 1)
    said = np.where(rng.random(shape) < noise, rng.integers(1, 4, size=shape), truth[:, None])
    return said[:, :-1].astype(float), said[:, -1].astype(float)


# The bound


def noisy(items, raters=3, seed=7):
    """True values, and raters of reliability .5: errors as large as the spread of the truth."""
    rng = generator(seed)
    truth = rng.normal(size=items)
    return truth, truth[:, None] + rng.normal(size=(items, raters))


def test_one_more_rater_reaches_58_and_a_perfect_evaluator_82():
    # Closed form: the mean of two others has the reliability 2 x .5 / 1.5 = 2/3, of root .816; one
    # more rater reaches the root of .5 x 2/3 = .577.
    truth, table = noisy(40_000)
    bounds = [one.point().value for one in ceiling.rater_bounds(table, truth)]
    assert bounds == pytest.approx([math.sqrt(2 / 3)] * 3, abs=0.01)
    for beside, bound in zip(
        ceiling.rater_ceilings(table, truth, correlation.pearson), bounds, strict=True
    ):
        assert beside.people.point().value == pytest.approx(math.sqrt(1 / 3), abs=0.01)
        # What the truth itself reaches, which is the bound.
        assert beside.evaluator.point().value == pytest.approx(bound, abs=0.01)
    ranked = [one.point().value for one in ceiling.rater_bounds(table, truth, ranks=True)]
    reached = [
        one.evaluator.point().value
        for one in ceiling.rater_ceilings(table, truth, correlation.spearman)
    ]
    assert ranked == pytest.approx(reached, abs=0.02)


@pytest.mark.parametrize("level", ["interval", "ordinal"])
def test_the_bound_is_spearman_brown_s_of_the_krippendorff_package(level):
    table, evaluator = people(70, raters=4)
    # The first item has one other of rater 0, the next nine have two, the rest three.
    table[0, 2:] = NAN
    table[1:10, 3] = NAN
    evaluator[60:] = NAN
    [bound, *_] = ceiling.rater_bounds(table, evaluator, ranks=level == "ordinal")
    r = krippendorff.alpha(table[:60].T, level_of_measurement=level)
    k = 60 / (1 / 1 + 9 / 2 + 50 / 3)
    assert bound.point().value == pytest.approx(math.sqrt(k * r / (1 + (k - 1) * r)))
    assert bound.n == 60
    found = bootstrap.estimate(bound, np.arange(70), generator())
    assert found.low < found.value < found.high <= 1


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[2, 2], [2, 2], [2, 2]], "all labels are the same"),
        ([[1, 3], [3, 1], [1, 3]], "the annotators agree no better than by chance"),
    ],
)
def test_without_agreement_above_chance_there_is_no_bound(table, reason):
    for ranks in (False, True):
        bounds = ceiling.rater_bounds(table, [1, 2, 3], ranks=ranks)
        assert [(one.point().value, one.point().reason) for one in bounds] == [(None, reason)] * 2


def test_the_mean_of_bounds_is_undefined_if_one_is():
    found = ceiling.rater_bounds([[1, 1, NAN], [3, 3, NAN], [2, NAN, 2], [1, NAN, 3]], [1, 2, 3, 1])
    values = [one.point().value for one in found]
    assert values[1] == 1
    mean = ceiling.mean_figure(found).point().value
    assert mean == (None if None in values else pytest.approx(np.mean(values)))


# The ceiling


def test_each_rater_is_held_against_the_mean_of_the_others_by_hand():
    # Rater 0: means of 1 and 2 are 2, 1, 3; own 1, 1, 3: errors 1, 0, 0. The evaluator 2, 2, 3:
    # errors 0, 1, 0. The fourth item lacks another label, the fifth the evaluator's.
    table = [[1, 1, 3], [1, NAN, 1], [3, 3, 3], [2, NAN, NAN], [1, 1, 1]]
    first, second, third = ceiling.rater_ceilings(table, [2, 2, 3, 2, NAN], closeness.mae)
    assert (first.rater, first.people.n, first.evaluator.n) == (0, 3, 3)
    assert first.people.point().value == pytest.approx(1 / 3)
    assert first.evaluator.point().value == pytest.approx(1 / 3)
    # Rater 1 has the first and third item: means 2 and 3, own 1 and 3, the evaluator 2 and 3.
    assert (second.people.n, second.people.point().value) == (2, 0.5)
    assert second.evaluator.point().value == 0
    # Rater 2 has three: means 1, 1, 3; own 3, 1, 3; the evaluator 2, 2, 3.
    assert third.people.point().value == pytest.approx(2 / 3)
    assert third.evaluator.point().value == pytest.approx(2 / 3)
    mean = ceiling.mean_ceiling([first, second, third])
    assert mean.people.point().value == pytest.approx((1 / 3 + 1 / 2 + 2 / 3) / 3)
    assert mean.evaluator.point().value == pytest.approx((1 / 3 + 0 + 2 / 3) / 3)


def test_the_ceiling_equals_scipy_s_correlations():
    table, evaluator = people(80)
    for rater, beside in enumerate(ceiling.rater_ceilings(table, evaluator, correlation.spearman)):
        others = np.delete(table, rater, axis=1).mean(axis=1)
        own = scipy_stats.spearmanr(table[:, rater], others).statistic
        its = scipy_stats.spearmanr(evaluator, others).statistic
        assert beside.people.point().value == pytest.approx(own)
        assert beside.evaluator.point().value == pytest.approx(its)


def test_the_ceiling_and_what_the_evaluator_lacks_of_it_have_intervals():
    table, evaluator = people(120)
    mean = ceiling.mean_ceiling(ceiling.rater_ceilings(table, evaluator, correlation.pearson))
    lacking = bootstrap.subtract_figures(mean.evaluator, mean.people)
    for figure in (mean.people, mean.evaluator, lacking):
        found = bootstrap.estimate(figure, np.arange(120), generator(), draws=300)
        assert found.low < found.value < found.high


def test_without_two_labels_of_an_item_there_is_no_ceiling():
    for table, evaluator in (([[1, NAN], [NAN, 2]], [1, 2]), (np.empty((0, 2)), [])):
        assert ceiling.rater_ceilings(table, evaluator, correlation.pearson) == []
    assert ceiling.mean_ceiling([]) is None
    constant = ceiling.rater_ceilings([[2, 2]] * 20, [2] * 20, correlation.pearson)
    assert ceiling.mean_ceiling(constant).people.point().reason == correlation.CONSTANT
    with pytest.raises(ValueError, match="do not go with"):
        ceiling.rater_ceilings([[1, 2]], [1, 2], correlation.pearson)


# The alternative annotator test


def item_by_item(table, evaluator, epsilon, scale):
    """The paper's procedure written out, items and raters one by one."""

    def close(label, others):
        if scale == "nominal":
            return np.mean([label == other for other in others])
        return -math.sqrt(np.mean([(label - other) ** 2 for other in others]))

    found = []
    for rater in range(len(table[0])):
        its, own = [], []
        for row, said in zip(table, evaluator, strict=True):
            others = [x for place, x in enumerate(row) if place != rater and not math.isnan(x)]
            if not others or math.isnan(row[rater]) or math.isnan(said):
                continue
            gap = round(close(said, others) - close(row[rater], others), 9)
            its.append(gap >= 0)
            own.append(gap <= 0)
        apart = np.array(own, dtype=float) - its
        p = scipy_stats.ttest_1samp(apart, epsilon, alternative="less").pvalue
        found.append((np.mean(its), np.mean(own), p))
    return found


@pytest.mark.parametrize("scale", ["nominal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_the_alt_test_is_the_paper_s_written_out_item_by_item(scale, seed):
    table, evaluator = people(90, raters=3, seed=seed)
    table[generator(seed).random(table.shape) < 0.1] = NAN
    evaluator[:3] = NAN
    found = ceiling.alt_test(table, evaluator, np.arange(90), 0.15, scale)
    expected = item_by_item(table, evaluator, 0.15, scale)
    got = [(one.evaluator, one.people, one.p) for one in found.raters]
    assert np.array(got) == pytest.approx(np.array(expected))
    rejected, qs, _, _ = multipletests([p for _, _, p in expected], 0.05, "fdr_by")
    assert [one.q for one in found.raters] == pytest.approx(qs.tolist())
    assert (found.wins, found.epsilon) == (pytest.approx(rejected.mean()), 0.15)
    assert found.advantage == pytest.approx(np.mean([one[0] for one in expected]))


def test_the_alt_test_by_hand():
    # Three raters, 60 items: all agree on 30; on the others the evaluator sides with two of them.
    # Against either of these both are right or wrong together: a tie on all, d = 0 throughout:
    # passed, as 0 < 0.1. Against the second the evaluator wins 30, ties 30.
    table = np.array([[1, 1, 1]] * 30 + [[1, 2, 1]] * 30)
    found = ceiling.alt_test(table, [1] * 60, np.arange(60), epsilon=0.1)
    first, second, third = found.raters
    assert (first.evaluator, first.people, first.p) == (1, 1, 0)
    assert (third.evaluator, third.people, third.p) == (1, 1, 0)
    assert (second.evaluator, second.people) == (1, 0.5)
    # d: 30 of 0, 30 of -1: mean -.5, deviation sqrt(15 / 59), t = -.6 sqrt(60) / .50422 = -9.217
    assert second.p == pytest.approx(scipy_stats.t.cdf(-9.217, 59), rel=1e-3)
    assert (found.wins, found.advantage, found.passed) == (1, 1, True)


def test_an_evaluator_worse_than_everybody_does_not_pass():
    table, _ = people(80, noise=0.1)
    found = ceiling.alt_test(table, [1] * 80, np.arange(80), epsilon=0.1)
    assert (found.wins, found.passed) == (0, False)
    # Never as close, and alike on all items: p is 1.
    found = ceiling.alt_test([[1, 1, 1]] * 60, [2] * 60, np.arange(60), epsilon=0.1)
    assert [(one.evaluator, one.people, one.p) for one in found.raters] == [(0, 1, 1)] * 3


def test_half_of_the_raters_are_enough():
    # Two raters answer at random, two know the truth, of which the evaluator falls a third short.
    rng = generator(3)
    truth = rng.integers(1, 4, size=300).astype(float)
    noise = rng.integers(1, 4, size=300).astype(float)
    evaluator = np.where(rng.random(300) < 0.33, rng.integers(1, 4, size=300), truth)
    found = ceiling.alt_test(
        np.column_stack([noise, truth, truth, noise]), evaluator, np.arange(300), 0.01
    )
    assert (found.wins, found.passed) == (0.5, True)


def test_items_of_one_cluster_count_for_less():
    table, evaluator = people(240, noise=0.4)
    repeated = (np.repeat(table[:60], 4, axis=0), np.repeat(evaluator[:60], 4))
    alone = ceiling.alt_test(*repeated, np.arange(240), 0.2).raters[0]
    together = ceiling.alt_test(*repeated, np.repeat(np.arange(60), 4), 0.2).raters[0]
    single = ceiling.alt_test(table[:60], evaluator[:60], np.arange(60), 0.2).raters[0]
    assert alone.p < together.p == pytest.approx(single.p)


@pytest.mark.parametrize(
    ("table", "evaluator"),
    [
        (np.empty((0, 3)), []),
        ([[1, 1, 1]] * 49, [1] * 49),
        ([[1, 1]] * 60, [1] * 60),
        ([[1, 1, NAN]] * 60, [1] * 60),
        ([[1, 1, 1]] * 60, [NAN] * 60),
        ([[1]] * 60, [1] * 60),
    ],
)
def test_the_alt_test_needs_three_raters_with_fifty_items(table, evaluator):
    found = ceiling.alt_test(table, evaluator, np.arange(len(evaluator)), 0.1)
    assert (found.wins, found.advantage, found.raters, found.passed) == (None, None, (), None)
    assert found.reason == TOO_FEW


def test_beside_two_raters_who_hardly_agree_a_random_evaluator_does_not_pass():
    table, evaluator = people(150, noise=0.8, raters=2)
    at_random = generator(9).integers(1, 4, size=150)
    for said in (evaluator, at_random):
        assert ceiling.alt_test(table, said, np.arange(150), 0.2).passed is None


def test_a_rater_with_fewer_items_is_left_out():
    table, evaluator = people(80, raters=4)
    table[30:, 2] = NAN
    found = ceiling.alt_test(table, evaluator, np.arange(80), 0.1)
    assert [one.rater for one in found.raters] == [0, 1, 3]
    # Of three one is not enough.
    assert ceiling.alt_test(table[:, 1:], evaluator, np.arange(80), 0.1).reason == TOO_FEW


def test_items_of_a_single_cluster_say_nothing():
    table, evaluator = people(80)
    found = ceiling.alt_test(table, evaluator, [5] * 80, 0.1)
    assert [one.p for one in found.raters] == [None] * 3
    assert (found.wins, found.passed, found.reason) == (None, None, "one cluster")
    assert found.advantage > 0
