import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from stats import paired, planning
from stats.rates import (
    ClusterSums,
    clustered_wilson,
    design_effect,
    repeat_clusters,
    sum_clusters,
)


def single_items(n, y):
    return ClusterSums(n, n, y, n, y, y)


def test_a_width_of_single_items_is_that_of_wilson():
    # Half of the items, 10 points to either side: Wilson's interval of n items is that wide first
    # at n = 93: 1.96 (.25 / n + .96 / n^2)^.5 / (1 + 3.84 / n) = .1.
    found = planning.items_for_width(single_items(40, 20), 0.2)
    assert 92 <= found <= 94
    widths = [np.diff(proportion_confint(n / 2, n, method="wilson"))[0] for n in (90, 96)]
    assert widths[0] > 0.2 > widths[1]


def test_items_of_alike_questions_are_needed_in_larger_numbers():
    # Ten questions of four items, all of a question alike: a fourth as much is known.
    alike = sum_clusters([(4, 4)] * 5 + [(4, 0)] * 5)
    single = planning.items_for_width(single_items(40, 20), 0.2)
    assert planning.items_for_width(alike, 0.2) == pytest.approx(4 * single, rel=0.08)


def test_fewer_items_than_there_are_may_be_enough():
    assert planning.items_for_width(single_items(4_000, 2_000), 0.2) == pytest.approx(93, abs=1)


@pytest.mark.parametrize(
    ("rate", "per_cluster", "correlation"), [(0.5, 4, 0.3), (0.9, 2.5, 0), (0.2, 1, 0.5)]
)
def test_supposed_clusters_have_the_supposed_rate_and_design_effect(rate, per_cluster, correlation):
    sums = planning.suppose_clusters(rate, per_cluster, correlation)
    assert sums.y / sums.n == pytest.approx(rate)
    assert design_effect(sums) == pytest.approx(1 + (per_cluster - 1) * correlation)


def test_an_uncertain_rate_is_planned_with_another_one_in_its_interval():
    # 0 of 4: Wilson's interval ends at z^2 / (4 + z^2) = .4899; 0 of 10 at .2775.
    assert planning.choose_rate(single_items(4, 0)) == pytest.approx(0.4899, abs=1e-4)
    assert planning.choose_rate(single_items(10, 0)) == pytest.approx(0.2775, abs=1e-4)
    assert planning.choose_rate(single_items(10, 10)) == pytest.approx(1 - 0.2775, abs=1e-4)
    # 2 of 6 is .097 to .700, which contains one half.
    assert planning.choose_rate(single_items(6, 2)) == 0.5
    # Ten hits and ten misses are enough, nine are not.
    assert planning.choose_rate(single_items(100, 10)) == 0.1
    assert planning.choose_rate(single_items(100, 9)) > 0.15
    assert planning.choose_rate(single_items(100, 91)) < 0.85
    assert planning.choose_rate(single_items(1, 1)) is None


def test_hits_of_alike_questions_count_as_few():
    # Twelve hits, but those of a question are alike: design effect 4 x 30 / 29, so worth three.
    alike = sum_clusters([(4, 4)] * 3 + [(4, 0)] * 27)
    assert planning.choose_rate(alike) == clustered_wilson(alike).high
    assert planning.choose_rate(sum_clusters([(4, 4)] * 15 + [(4, 0)] * 15)) == 0.5


def test_another_rate_keeps_the_clusters_and_their_design_effect():
    for sums in (sum_clusters([(4, 3), (2, 0), (1, 1), (5, 2)]), sum_clusters([(4, 0)] * 3)):
        other = planning.suppose_rate(sums, 0.3)
        assert (other.m, other.n, other.nn) == (sums.m, sums.n, sums.nn)
        assert other.y / other.n == pytest.approx(0.3)
        many = repeat_clusters(other, 10_000)
        assert design_effect(many) == pytest.approx(design_effect(sums), rel=1e-3)


@pytest.mark.parametrize("rate", [0, 1])
def test_a_rate_of_all_or_nothing_is_not_supposed(rate):
    with pytest.raises(ValueError, match="a rate of"):
        planning.suppose_rate(single_items(4, 2), rate)


@pytest.mark.parametrize("wrong", [(0, 2, 0.1), (0.5, 0.5, 0.1), (0.5, 2, 1.1)])
def test_what_cannot_be_supposed_is_refused(wrong):
    with pytest.raises(ValueError, match="items a cluster"):
        planning.suppose_clusters(*wrong)


def test_the_spread_of_samples_is_split_between_items_and_within():
    rng = np.random.Generator(np.random.PCG64(5))
    # Items detect with probability 0.2 or 0.8: 0.09 between, 0.16 within.
    each = rng.choice([0.2, 0.8], 40_000)
    between, within = planning.estimate_spread_of_samples(rng.binomial(4, each) / 4, 4)
    assert (between, within) == pytest.approx((0.09, 0.16), abs=0.003)
    tens = rng.binomial(10, each) / 10
    assert between + within / 10 == pytest.approx(tens.var(), abs=0.003)


def test_samples_that_always_agree_vary_between_items_alone():
    assert planning.estimate_spread_of_samples([1, 0, 1, 0], 3) == pytest.approx((1 / 3, 0))
    with pytest.raises(ValueError, match="no two variances"):
        planning.estimate_spread_of_samples([1, 0], 1)


@pytest.mark.parametrize("sums", [single_items(0, 0), single_items(1, 1)])
def test_from_one_question_nothing_can_be_planned(sums):
    assert planning.items_for_width(sums, 0.2) is None


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=3, max_size=20),
    st.sampled_from([0.05, 0.1, 0.3]),
)
def test_as_many_items_as_it_says_are_wide_enough_and_fewer_are_not(clusters, width):
    sums = sum_clusters((n, min(n, y)) for n, y in clusters)
    found = planning.items_for_width(sums, width)
    # It is rounded up, and up to half a per cent too large.
    fewer = (0.99 * found - 1.5) / sums.n if found else 0
    if fewer <= 2 / sums.m:
        return
    for times, enough in ((1.001 * found / sums.n, True), (fewer, False)):
        made = clustered_wilson(repeat_clusters(sums, times))
        assert (made.high - made.low <= width) is enough


def test_a_difference_that_shows_now_needs_the_items_that_are_there():
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(60), 3)
    found = paired.estimate_difference(rng.integers(-1, 2, size=180), cluster)
    shows = found.find_smallest(tests=6)
    assert planning.items_for_difference(found, shows, tests=6) == pytest.approx(180, abs=1)
    # Half as large a difference needs about four times as many, and fewer the smaller it is: then
    # the exact test loses less by its steps.
    half = planning.items_for_difference(found, shows / 2, tests=6)
    assert 0.8 * 720 < half < 720


def test_a_difference_cannot_be_planned_from_questions_that_all_differ_alike():
    alike = paired.estimate_difference([1, 1, 1], [1, 2, 3])
    assert planning.items_for_difference(alike, 0.1) is None
    with pytest.raises(ValueError, match="needs no items"):
        planning.items_for_difference(alike, 0)


@pytest.mark.parametrize("width", [0, 1, 20])
def test_a_width_is_a_fraction(width):
    with pytest.raises(ValueError, match="width"):
        planning.items_for_width(single_items(40, 20), width)


def test_what_no_number_reaches_is_none():
    assert planning.find_times(lambda times: False) is None
    assert planning.find_times(lambda times: True) == 1
    assert planning.find_times(lambda times: times >= 7) == pytest.approx(7, rel=0.006)


def exact_power(n, rate, other):
    """The power of the exact McNemar test at 5 % over n items, for two independent runs: over all
    numbers of items that differ, and of those, over the ones that only the first detects."""
    only_first, only_second = rate * (1 - other), other * (1 - rate)
    apart = np.arange(n + 1)
    found = 0.0
    for k, weight in zip(apart, binom.pmf(apart, n, only_first + only_second), strict=True):
        if weight > 1e-9:
            split = np.arange(k + 1)
            p = 2 * binom.cdf(np.minimum(split, k - split), k, 0.5)
            chance = binom.pmf(split, k, only_first / (only_first + only_second))
            found += weight * chance[p < 0.05].sum()
    return found


@pytest.mark.parametrize("points", [0.2, 0.1, 0.05])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_two_supposed_runs_are_told_apart_with_the_power_that_is_promised(rate, points):
    n = planning.items_for_two_rates(rate, rate - points)
    assert 0.78 <= exact_power(n, rate, rate - points) < 0.87


def test_the_power_holds_for_questions_of_several_alike_items():
    rng = np.random.default_rng(23)
    n = planning.items_for_two_rates(0.8, 0.6, per_cluster=4, correlation=0.3)
    cluster = np.repeat(np.arange(round(n / 4)), 4)

    def draw(rate):
        # A beta distribution with this mean and a variance of .3 rate (1 - rate).
        each = rng.beta(rate * 7 / 3, (1 - rate) * 7 / 3, len(cluster) // 4)
        return (rng.random(len(cluster)) < np.repeat(each, 4)).astype(float)

    tests = [paired.test_difference(draw(0.8) - draw(0.6), cluster, rng) for _ in range(400)]
    assert np.mean([one.p < 0.05 for one in tests]) >= 0.78


def test_two_rates_need_as_many_items_as_the_formula_for_pairs_and_a_few_more():
    # Miettinen: ((1.96 x .38^.5 + .8416 x (.38 - .01)^.5) / .1)^2 = 296 for 80 against 70 %. The
    # exact test asks for about 2 / .1 more.
    found = planning.items_for_two_rates(0.8, 0.7)
    assert found == pytest.approx(296 + 20, abs=1)
    assert found == planning.items_for_two_rates(0.2, 0.3)


@pytest.mark.parametrize(
    "wrong", [(0.5, 0.5), (1.1, 0.5), (0.5, 0.4, 0.5), (0.5, 0.4, 2, 1.1), (0.5, 0.4, 1, 0, 1)]
)
def test_two_rates_that_cannot_be_planned_for_are_refused(wrong):
    with pytest.raises(ValueError, match=r"rates of|items a cluster"):
        planning.items_for_two_rates(*wrong)


def test_items_without_a_usable_reply_are_asked_on_top():
    # 403 / (318 / 473) = 599.4.
    assert planning.items_to_ask(403, 318, 473) == 600
    assert planning.items_to_ask(403, 473, 473) == 403
    assert planning.items_to_ask(10, 1, 2) == 20
    assert planning.items_to_ask(None, 318, 473) is planning.items_to_ask(403, 0, 473) is None
    with pytest.raises(ValueError, match="4 of 3 items"):
        planning.items_to_ask(1, 4, 3)
