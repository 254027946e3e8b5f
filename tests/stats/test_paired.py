import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.api import OLS
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from stats import families, paired

clusters = st.lists(
    st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(-n, n))), max_size=40
)


def generator(seed=1):
    return np.random.Generator(np.random.PCG64(seed))


def spread(pairs):
    """The differences and clusters of items, from (items, sum of differences) of each cluster: as
    many whole differences as there are, or equal shares."""
    differences, clusters = [], []
    for cluster, (n, y) in enumerate(pairs):
        whole = y == int(y) and abs(y) <= n
        each = (
            [math.copysign(1, y)] * abs(int(y)) + [0] * (n - abs(int(y))) if whole else [y / n] * n
        )
        differences += each
        clusters += [cluster] * n
    return differences, clusters


def estimate(pairs, **options):
    return paired.estimate_difference(*spread(pairs), **options)


# The difference


def test_a_difference_of_clusters_by_hand():
    # Clusters of 2, 1, 1 items with sums 2, 0, -1: d = 1/4, residuals 1.5, -.25, -1.25, squares
    # 2.25 + .0625 + 1.5625 = 3.875; v = 3/2 x 3.875 / 16 = 0.36328125, error 0.602728.
    found = estimate([(2, 2), (1, 0), (1, -1)])
    assert (found.value, found.n, found.reason) == (0.25, 4, "")
    assert found.standard_error == pytest.approx(math.sqrt(0.36328125))
    # The items of the question of a random item: (4 + 1 + 1) / 4.
    assert (found.clusters, found.per_cluster, found.step) == (3, 1.5, 1)
    # Student's quantile of 2 degrees of freedom is 4.30: wider than what there is.
    assert (found.low, found.high) == (-1, 1)


def test_the_smallest_difference_by_hand():
    # 40 items, a quarter each way: e = (.5 / 39)^.5; t of 39 at .8 is 0.850935.
    found = estimate([(1, y) for y in [1, -1, 0, 0] * 10])
    error = math.sqrt(0.5 / 39)
    d = found.find_smallest()
    flipped = 1.959964 * 40 * math.sqrt(error**2 + d**2 / 40)
    assert 40 * d - 1 == pytest.approx(flipped + 0.850935 * 40 * error, abs=1e-5)
    assert d == pytest.approx(0.3713, abs=1e-4)
    # Of three tests it must be larger: the normal quantile of 1 - .05 / 6 is 2.393980.
    d = found.find_smallest(tests=3)
    flipped = 2.393980 * 40 * math.sqrt(error**2 + d**2 / 40)
    assert 40 * d - 1 == pytest.approx(flipped + 0.850935 * 40 * error, abs=1e-5)
    # Halves, as shares of two samples, can add up to sums that are nearer to each other.
    halves = estimate([(1, y / 2) for y in [1, -1, 0, 0] * 10])
    assert halves.find_smallest() == pytest.approx(found.find_smallest() / 2, abs=0.02)
    for wrong in ({"tests": 0}, {"level": 1}):
        with pytest.raises(ValueError, match=r"family|level"):
            found.find_smallest(**wrong)


def test_too_few_questions_can_show_no_difference():
    # The least p of five questions is 2 / 2^5 = .0625, of six .03125.
    values = [1, 0, 0, 0, 0, 0, 0, 0]
    assert estimate([(1, y) for y in values[:5]]).find_smallest() is None
    assert estimate([(1, y) for y in values]).find_smallest(tests=10) is None
    assert 0.5 < estimate([(1, y) for y in values]).find_smallest() <= 1
    # The difference would have to be over 100 points.
    assert estimate([(1, y) for y in [1, -1] * 4]).find_smallest() is None


def draw_pair(rng, clusters, rates, alike):
    """The differences of two runs, and their questions of one to eight items, of which a share is
    met by both with the same luck."""
    cluster = np.repeat(np.arange(clusters), rng.integers(1, 9, clusters))
    luck = rng.random((2, len(cluster)))
    luck[1] = np.where(rng.random(len(cluster)) < alike, luck[0], luck[1])
    hits = luck < np.array(rates)[:, None]
    return hits[0].astype(float) - hits[1], cluster


@pytest.mark.parametrize("tests", [1, 45])
@pytest.mark.parametrize(
    ("rates", "alike"), [((0.5, 0.3), 0), ((0.8, 0.7), 0), ((0.95, 0.75), 0.7)]
)
def test_a_difference_of_that_size_is_found_four_times_of_five(rates, alike, tests):
    rng, sets = np.random.default_rng(5), 200
    much = paired.estimate_difference(*draw_pair(rng, 4_000, rates, alike))
    # So many questions that their smallest difference is the true one.
    true = rates[0] - rates[1]
    clusters = next(
        m for m in range(6, 2_000) if (much.find_smallest(tests, times=m / 4_000) or 1) <= true
    )
    found = [
        paired.test_difference(*draw_pair(rng, clusters, rates, alike), rng).p <= 0.05 / tests
        for _ in range(sets)
    ]
    # Two standard errors of 200 sets are 5.7 points.
    assert 0.8 - 0.057 < np.mean(found) <= 1


def test_with_one_item_a_cluster_it_is_bonett_and_price_by_hand():
    # 16 and 8 of 40 differ: (17 - 9) / 42, variance (26 / 42 - (8 / 42)^2) / 42 where 40 items
    # are as good as 40 x 39 / 40 independent ones; t of 39: 2.022691.
    values = [1, 0, 0, -1, 1, 1, 0, 0, 1, -1] * 4
    found = estimate([(1, value) for value in values])
    n = 39
    more, fewer = ((n * share + 1) / (n + 2) for share in (0.4, 0.2))
    half = 2.022691 * math.sqrt((more + fewer - (more - fewer) ** 2) / (n + 2))
    assert (found.low, found.high) == pytest.approx(
        (more - fewer - half, more - fewer + half), abs=1e-6
    )
    assert found.standard_error == pytest.approx(scipy_stats.sem(values))
    # Near the plain t interval where there is much.
    many = estimate([(1, value) for value in values * 50])
    low, high = scipy_stats.ttest_1samp(values * 50, 0).confidence_interval(0.95)
    assert (many.low, many.high) == pytest.approx((low, high), abs=5e-4)


def test_shares_of_repeats_count_for_more_than_whole_differences_of_that_size():
    values = [0.1, -0.1] * 50
    found = estimate([(1, value) for value in values])
    low, high = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.05)


@pytest.mark.parametrize(
    ("rate", "other", "clusters"), [(0.98, 0.9, 40), (0.5, 0.5, 20), (0.9, 0.7, 10)]
)
def test_intervals_cover_near_the_ends_and_with_few_questions(rate, other, clusters):
    rng, covered, sets = np.random.default_rng(8), 0, 300
    at = [math.log(one / (1 - one)) for one in (rate, other)]
    often = np.random.default_rng(9).normal(0, 0.5, size=10**6)
    truth = float(np.subtract(*(np.mean(1 / (1 + np.exp(-(one + often)))) for one in at)))
    for _ in range(sets):
        sizes = rng.integers(1, 7, size=clusters)
        cluster = np.repeat(np.arange(clusters), sizes)
        # Some questions are easier than others, for both.
        ease = rng.normal(0, 0.5, size=clusters)[cluster]
        chances = [1 / (1 + np.exp(-(one + ease))) for one in at]
        hits = [rng.random(len(cluster)) < chance for chance in chances]
        found = paired.estimate_difference(hits[0].astype(float) - hits[1], cluster)
        covered += found.low <= truth <= found.high
    assert covered / sets > 0.92


@given(st.lists(st.lists(st.integers(-1, 1), min_size=1, max_size=4), min_size=2, max_size=15))
def test_the_standard_error_is_the_clustered_one_of_statsmodels(parts):
    found = paired.estimate_difference(
        np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    )
    values = np.concatenate(parts)
    groups = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    fit = OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert found.value == pytest.approx(fit.params[0], abs=1e-12)
    assert (found.standard_error or 0) == pytest.approx(fit.bse[0], abs=1e-9)


@pytest.mark.parametrize(
    ("pairs", "value", "reason"),
    [
        ([], None, "no item that both parsed"),
        ([(5, 2)], 0.4, "one cluster"),
    ],
)
def test_without_two_clusters_there_is_no_interval(pairs, value, reason):
    found = estimate(pairs)
    assert found.value == (None if value is None else pytest.approx(value))
    assert (found.low, found.high, found.standard_error) == (None,) * 3
    assert found.find_smallest() is None
    assert found.reason == reason


@pytest.mark.parametrize(
    ("pairs", "value", "low", "high"),
    [
        # One pair is added to either side: 1/12 - 1/12, variance (2/12) / 12, t of 9: 2.262157.
        ([(1, 0)] * 10, 0, -2.262157 / math.sqrt(72), 2.262157 / math.sqrt(72)),
        # As many questions of four items say no more: each counts once.
        ([(4, 0)] * 10, 0, -2.262157 / math.sqrt(72), 2.262157 / math.sqrt(72)),
        # All of ten differ: 11/12 - 1/12, variance (1 - 100/144) / 12.
        ([(1, 1)] * 10, 1, 10 / 12 - 2.262157 * math.sqrt(44 / 144 / 12), 1),
        # Half of each: 6/12 - 1/12, variance (7/12 - 25/144) / 12.
        (
            [(2, -1)] * 10,
            -0.5,
            -5 / 12 - 2.262157 * math.sqrt(59 / 144 / 12),
            -5 / 12 + 2.262157 * math.sqrt(59 / 144 / 12),
        ),
        ([(3, 0.1)] * 3, 0.1 / 3, -1, 1),
    ],
)
def test_runs_that_differ_alike_everywhere_have_an_interval_all_the_same(pairs, value, low, high):
    found = estimate(pairs)
    assert found.value == pytest.approx(value)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    assert (found.standard_error, found.find_smallest()) == (None, None)
    assert found.reason == "all clusters differ alike"


def test_a_level_is_a_fraction():
    with pytest.raises(ValueError, match="level"):
        estimate([(1, 0), (1, 1)], level=95)


@given(clusters)
def test_turning_the_runs_round_turns_the_difference_round(pairs):
    one = estimate(pairs)
    other = estimate([(n, -y) for n, y in pairs])
    assert one.standard_error == other.standard_error
    if one.low is not None:
        assert (one.value, one.low, one.high) == pytest.approx(
            (-other.value, -other.high, -other.low)
        )
        assert -1 <= one.low <= one.value <= one.high <= 1


# McNemar


def test_mcnemar_by_hand():
    # 1 and 5: 2 (C(6,0) + C(6,1)) / 2^6 = 14/64.
    found = paired.mcnemar_test(1, 5)
    assert (found.p, found.n) == (pytest.approx(14 / 64), 6)
    assert paired.mcnemar_test(3, 3).p == 1
    assert paired.mcnemar_test(0, 0) == paired.PValue(1.0, 0, test="exact")
    with pytest.raises(ValueError, match="not counts"):
        paired.mcnemar_test(-1, 3)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_equals_statsmodels_and_scipy(one, other):
    found = paired.mcnemar_test(one, other).p
    assert found == pytest.approx(statsmodels_mcnemar([[7, one], [other, 9]], exact=True).pvalue)
    if one + other:
        assert found == pytest.approx(scipy_stats.binomtest(one, one + other).pvalue)


# Signs flipped


def every_pattern(values):
    """The share of sign patterns whose sum is as far from 0, each written out."""
    apart = np.abs([value for value in values if value])
    patterns = np.array(list(itertools.product([1, -1], repeat=len(apart)))).reshape(
        2 ** len(apart), len(apart)
    )
    return (np.abs(patterns @ apart) >= abs(sum(values)) - 1e-9).mean()


def test_signs_of_three_clusters_by_hand():
    # 3, 2, -1: sum 4. Of the eight patterns +-3 +-2 +-1 those with 4 or more: 6, 4 and their
    # mirrors: 4 of 8.
    found = paired.sign_flip_test([3, 0, 2, -1], generator())
    assert (found.p, found.n, found.test) == (pytest.approx(0.5), 3, "exact")


def test_where_nothing_differs_p_is_one():
    assert paired.sign_flip_test([0, 0], generator()).p == 1
    assert paired.test_difference([0, 0], [1, 2], generator()) == paired.PValue(
        1.0, 0, test="exact"
    )
    assert paired.test_difference([], [], generator()) == paired.PValue(
        None, 0, "no item that both parsed"
    )


def test_one_cluster_can_never_show():
    assert paired.test_difference([1] * 9, [1] * 9, generator()).p == 1


@given(st.lists(st.integers(-4, 4), max_size=12), st.sampled_from([1, 3, 7, 60]))
def test_p_is_the_share_of_all_sign_patterns(values, repeats):
    # Sums of whole items, or of shares of so many repeats.
    sums = [value / repeats for value in values]
    found = paired.sign_flip_test(sums, generator())
    assert found.p == pytest.approx(every_pattern(sums), rel=1e-12)
    assert (found.n, found.test) == (sum(value != 0 for value in values), "exact")


def test_shares_of_unlike_numbers_of_repeats_tie_in_spite_of_rounding():
    sums = [1 / 3, 2 / 3 - 1 / 2, 1 / 5, -1 / 2, 1 / 6 + 2 / 3, 0.1 + 0.2, -0.3]
    found = paired.sign_flip_test(sums, generator())
    assert found.p == pytest.approx(every_pattern(sums), rel=1e-12)
    # 0.1 + 0.2 is not 0.3: every pattern but those that cancel is as far.
    assert paired.sign_flip_test([0.1, 0.2, -0.3], generator()).p == 1
    assert paired.sign_flip_test([0.1, 0.2, 0.3], generator()).p == pytest.approx(0.25)
    # As far as 0.5, among 0.9, 0.5, 0.5 and 0.1: three of four.
    assert paired.sign_flip_test([-0.5, 0.2, -0.2], generator()).p == pytest.approx(0.75)


@given(st.integers(0, 400), st.integers(0, 400))
def test_flipping_single_items_is_the_exact_mcnemar_test(one, other):
    sums = [1] * one + [-1] * other + [0] * 5
    expected = paired.mcnemar_test(one, other)
    assert paired.test_difference(sums, range(len(sums)), generator()) == expected
    assert paired.sign_flip_test(sums, generator()).p == pytest.approx(expected.p, rel=1e-9)
    assert paired.sign_flip_test([2.5 * one for one in sums], generator()).p == pytest.approx(
        expected.p, rel=1e-9
    )


def test_p_falls_as_far_as_the_clusters_allow():
    # Every one of 40 clusters differs the same way: one pattern and its mirror of 2^40.
    assert paired.sign_flip_test([2] * 40, generator()).p == pytest.approx(2**-39)
    # 190 pairs of twenty runs: Holm still tells such a pair apart, and 1,000 others with it.
    assert max(families.holm([2**-39] * 1_190)) < 1e-6


def test_long_distributions_are_transformed_and_stay_exact():
    # Sizes 1 to 4 of 30 clusters each: multiplied out one cluster after the other.
    values = np.repeat([1, -1, 2, -2, 3, -3, 4, -4], [20, 10, 22, 8, 18, 12, 25, 5])
    exact = np.ones(1)
    for size in np.abs(values):
        exact = (np.pad(exact, (0, size)) + np.pad(exact, (size, 0))) / 2
    least = (np.abs(values).sum() - values.sum()) // 2
    found = paired.sign_flip_test(values, generator())
    assert found.p == pytest.approx(2 * exact[: least + 1].sum(), rel=1e-10)
    assert found.p < 1e-5


def test_without_a_grid_patterns_are_drawn_and_with_many_clusters_t_has_the_tail():
    values = np.random.default_rng(4).normal(0.3, size=14)
    drawn = paired.sign_flip_test(values, generator())
    assert (drawn.test, drawn.n) == ("drawn", 14)
    exact = every_pattern(values.tolist())
    # Five standard errors of a million draws.
    assert drawn.p == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 10**6))
    whole = np.random.default_rng(5).integers(-3, 4, size=400) + 0.25
    exact = paired.sign_flip_test(whole, generator())
    tail = paired.sign_flip_test(whole, generator(), most_points=100)
    assert (exact.test, tail.test) == ("exact", "t")
    assert tail.p == pytest.approx(exact.p, rel=0.02)


# J


def test_the_difference_of_j_by_hand():
    # Ten errors, of which a alone detects three, and five score-invariant items without any
    # difference, each in its own cluster. Bonett and Price: ten are as good as nine independent
    # ones: centre (3.7 - 1) / 11, variance (4.7 / 11 - .2455^2) / 11, t of 9; five: centre 0,
    # variance (2 / 7) / 7, t of 4.
    differences, invariant = [1] * 3 + [0] * 12, [False] * 10 + [True] * 5
    found = paired.estimate_j_difference(differences, invariant, range(15))
    below = math.hypot(0.3 + 0.16776, 2.776445 * (2 / 49) ** 0.5)
    above = math.hypot(0.65867 - 0.3, 2.776445 * (2 / 49) ** 0.5)
    assert (found.value, found.n) == (pytest.approx(0.3), 15)
    assert (found.low, found.high) == pytest.approx((0.3 - below, 0.3 + above), abs=1e-4)


def test_opposite_differences_in_the_same_questions_widen_the_interval_of_j():
    # Two errors and one score-invariant item in each of twenty questions.
    invariant, questions = [False, False, True] * 20, np.repeat(np.arange(20), 3)
    opposite = [1, 1, -1, -1, -1, 1] * 9 + [0] * 6
    together = [1, 1, 1, -1, -1, -1] * 9 + [0] * 6
    wide, narrow = (
        paired.estimate_j_difference(one, invariant, questions) for one in (opposite, together)
    )
    # Their correlation is -1, so the distances add up; at 1 they are taken for independent.
    assert wide.high == pytest.approx(2**0.5 * narrow.high, rel=1e-9)


@given(
    st.lists(
        st.tuples(st.sampled_from([-1, -0.5, 0, 0.5, 1]), st.booleans(), st.integers(0, 9)),
        max_size=30,
    )
)
def test_p_of_j_is_where_its_interval_ends_at_0(items):
    differences, invariant, cluster = ([one[place] for one in items] for place in range(3))
    found = paired.test_j_difference(differences, invariant, cluster)
    kinds = [
        {c for c, calm in zip(cluster, invariant, strict=True) if calm is k} for k in (False, True)
    ]
    if not all(kinds):
        assert (found.p, found.reason) == (None, "no item that both parsed")
    elif min(map(len, kinds)) < 2:
        assert (found.p, found.reason) == (None, "one cluster")
    elif found.p == 1:
        least = paired.estimate_j_difference(differences, invariant, cluster, 1e-6)
        assert least.low <= 1e-6
        assert least.high >= -1e-6
    else:
        ends = paired.estimate_j_difference(differences, invariant, cluster, 1 - found.p)
        assert min(abs(ends.low), abs(ends.high)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("errors", "calm"), [(52, 5), (200, 10), (200, 60)])
@pytest.mark.parametrize("points", [((0.7, 0.2), (0.5, 0)), ((0.95, 0.25), (0.75, 0.05))])
def test_runs_with_the_same_j_at_other_rates_do_not_differ(errors, calm, points):
    # By flips of signs, 7 to 19 per cent with 5 or 10 score-invariant items.
    rng, found, invariant = generator(), [], np.arange(errors + calm) >= errors
    for _ in range(200):
        a, b = (rng.random(errors + calm) < np.where(invariant, *one[::-1]) for one in points)
        apart = a.astype(float) - b
        found.append(paired.test_j_difference(apart, invariant, np.arange(errors + calm)).p)
    # Two standard errors of 200 above 5 per cent.
    assert np.mean(np.array(found) < 0.05) <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5


def test_a_large_difference_of_j_is_found():
    invariant = np.arange(260) >= 200
    differences = np.where(invariant, 0, np.arange(260) % 2)
    found = paired.test_j_difference(differences, invariant, np.arange(260))
    assert (found.p < 1e-9, found.n, found.test) == (True, 260, "t")
    assert paired.test_j_difference(-differences, invariant, np.arange(260)).p == found.p


class CountingGenerator(np.random.Generator):
    """Counts how many whole numbers are drawn from it."""

    drawn = 0

    def integers(self, *args: Any, size: Any, **options: Any) -> Any:
        self.drawn += int(np.prod(size))
        return super().integers(*args, size=size, **options)


def test_the_signs_of_sixteen_clusters_are_drawn_at_once() -> None:
    # Shares of a hundred samples, some of them missing, have no common denominator of use.
    samples = np.arange(60, 100)
    values = np.round((samples // 3) / samples, 9) * np.where(samples % 3, 1, -1)
    rng = CountingGenerator(np.random.PCG64(1))
    found = paired.sign_flip_test(values, rng)
    assert (found.test, found.n) == ("drawn", 40)
    # Forty of about the same size are nearly a binomial distribution.
    alike = paired.sign_flip_test(np.sign(values), rng)
    assert found.p == pytest.approx(alike.p, rel=0.2)
    assert rng.drawn == 3 * paired.DRAWS


def test_nothing_is_drawn_from_where_p_is_counted() -> None:
    def make() -> np.random.Generator:
        raise AssertionError("nothing is to be drawn")

    assert paired.test_difference([1, 1, -1, 1], [1, 1, 2, 3], make).test == paired.EXACT
    drawn = [0.1 * math.sqrt(2), 0.2 * math.sqrt(3), 0.3 * math.sqrt(5)]
    assert paired.sign_flip_test(drawn, generator) == paired.sign_flip_test(drawn, generator())


@pytest.mark.parametrize("tilt", [0.0, -0.05, -30.0])
@pytest.mark.parametrize("most", [0, 3, 40, 200])
def test_the_sum_up_to_a_point_is_that_of_the_whole_convolution(tilt: float, most: int) -> None:
    one, other = generator().random(60), generator().random(90)
    wanted = sum(
        math.exp(tilt * (most - i - j)) * one[i] * other[j]
        for i in range(60)
        for j in range(90)
        if i + j <= most
    )
    assert paired._sum_up_to(most, one, other, tilt) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("scale", [1, 10**6, -1, 0.5])
def test_the_numbers_of_clusters_may_be_any(scale: float) -> None:
    differences, clusters = np.array([1, 0, -1, 1, 1, 0.5]), np.array([7, 3, 3, 9, 7, 12])
    wanted = paired.estimate_difference(differences, ["c", "b", "b", "d", "c", "e"])
    assert paired.estimate_difference(differences, scale * clusters) == wanted
