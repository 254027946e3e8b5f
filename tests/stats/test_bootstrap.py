from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from stats import agreement, bootstrap, closeness, correlation, ratings
from stats.bootstrap import (
    Figure,
    combine_figures,
    estimate,
    estimates,
    share_not_above,
    subtract_figures,
)


def generator(seed=3):
    return np.random.Generator(np.random.PCG64(seed))


def mean_of(values, note=""):
    """The mean as a figure: terms value and 1."""
    terms = csr_array(np.column_stack([values, np.ones(len(values))]))

    def of(sums):
        return sums[:, 0] / sums[:, 1]

    return Figure(terms, of, np.ones(len(values), dtype=bool), "nothing", "undefined", note)


def two_people(items, clusters=None, seed=1):
    rng = generator(seed)
    truth = rng.integers(3, size=items)
    table = np.where(rng.random((items, 2)) < 0.7, truth[:, None], rng.integers(3, size=(items, 2)))
    return ratings.ratings_from_values(table, range(3), clusters)


def test_an_interval_is_that_of_samples_drawn_one_by_one():
    # Twelve clusters of one to three items: every sample written out, its mean taken as it is.
    sizes = [1, 2, 3] * 4
    clusters = np.repeat(np.arange(12), sizes)
    values = np.arange(24.0) % 7
    parts = [values[clusters == cluster] for cluster in range(12)]
    drawn = generator(8).integers(12, size=(20_000, 12))
    means = [np.concatenate([parts[one] for one in sample]).mean() for sample in drawn]
    got = estimate(mean_of(values), clusters, generator(), draws=20_000)
    assert (got.value, got.n) == (pytest.approx(values.mean()), 24)
    # Where in the draws BCa looks: the share below the mean, and the skewness of the mean without
    # each cluster; Student's quantile of 11 degrees of freedom, 2.200985, times the root of 12/11.
    without = [np.delete(values, clusters == cluster).mean() for cluster in range(12)]
    apart = np.mean(without) - without
    bend = (apart**3).sum() / 6 / (apart**2).sum() ** 1.5
    shift = ndtri(np.mean(means < values.mean()) + np.mean(np.isclose(means, values.mean())) / 2)
    sides = [shift + side * 2.200985 * (12 / 11) ** 0.5 for side in (-1, 1)]
    levels = [ndtr(shift + side / (1 - bend * side)) for side in sides]
    # Two sets of 20,000 draws place a quantile of this spread, 0.35, to about 0.02 each.
    assert (got.low, got.high) == pytest.approx(tuple(np.quantile(means, levels)), abs=0.06)
    assert got.reason == "rough: under 20 clusters"


def test_a_skewed_mean_has_the_interval_that_scipy_finds_by_the_same_method():
    values = np.exp(np.random.default_rng(2).normal(size=60))
    got = estimate(mean_of(values), np.arange(60), generator(), draws=20_000)
    # With the level at which the normal quantile is Student's of 59, 2.000995, x (60 / 59)^.5.
    level = 2 * ndtr(2.000995 * (60 / 59) ** 0.5) - 1
    found = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, confidence_level=level, method="BCa", rng=5
    ).confidence_interval
    assert (got.low, got.high) == pytest.approx((found.low, found.high), rel=0.02)
    # Longer towards the long tail.
    assert got.high - got.value > 1.15 * (got.value - got.low)


def test_near_its_end_a_figure_is_covered_as_often_as_with_many_questions():
    # An F1 of about .95 over 40 questions: plain percentiles cover 91 %.
    covered, sets, rng = 0, 300, generator(11)
    for _ in range(sets):
        right = rng.random(120) < 0.95
        truth = rng.random(120) < 0.5
        said = truth == right
        terms = csr_array(np.column_stack([truth & said, 0.5 * truth + 0.5 * said]).astype(float))
        used = np.ones(120, dtype=bool)
        figure = Figure(terms, lambda sums: sums[:, 0] / sums[:, 1], used, "", "")
        got = estimate(figure, np.arange(120) // 3, rng, draws=400)
        # In one of thousands of sets all is right, and there is no interval.
        covered += got.low is None or got.low <= 0.95 <= got.high
    assert covered / sets > 0.93


def test_from_twenty_clusters_on_an_interval_is_not_rough():
    reasons = [
        estimate(mean_of(np.arange(40.0) % 3), np.arange(40) % clusters, generator()).reason
        for clusters in (10, 19, 20)
    ]
    assert reasons == ["rough: under 20 clusters"] * 2 + [""]


def test_clusters_with_the_same_sums_are_drawn_as_one_kind():
    # 30,000 clusters, two kinds: 0 or 1 a third of the time. Standard error sqrt(2/9 / 30,000) =
    # 0.002722, so 1/3 -+ 1.96 x 0.002722 = 0.3280 to 0.3387.
    got = estimate(mean_of(np.arange(30_000) % 3 == 0), np.arange(30_000), generator())
    assert (got.low, got.high) == pytest.approx((0.3280, 0.3387), abs=0.0006)


def test_an_interval_of_a_mean_is_about_two_standard_errors_to_each_side():
    # 400 values 0 or 1, half each: standard error 0.5 / 20 = 0.025, so 0.5 -+ 1.96 x 0.025 =
    # 0.451 to 0.549; 2,000 draws place a quantile to about 0.002.
    got = estimate(mean_of(np.arange(400) % 2), np.arange(400), generator())
    assert (got.low, got.high) == pytest.approx((0.451, 0.549), abs=0.006)


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    rated = two_people(60)
    one, two, other = (
        estimate(agreement.krippendorff_alpha(rated), rated.clusters, generator(seed))
        for seed in (1, 1, 2)
    )
    assert one == two
    assert (one.low, one.high) != (other.low, other.high)


def test_blocks_of_draws_give_what_one_block_gives(monkeypatch):
    rated = two_people(60)
    whole = estimate(agreement.gwet_ac(rated), rated.clusters, generator(), draws=100)
    monkeypatch.setattr(bootstrap, "_AT_A_TIME", 7 * 9)
    assert estimate(agreement.gwet_ac(rated), rated.clusters, generator(), draws=100) == whole


def test_items_of_one_cluster_make_the_interval_wider():
    table = np.repeat(two_people(40).codes, 5, axis=0)
    alone, together = (
        ratings.ratings_from_values(table, range(3), clusters)
        for clusters in (np.arange(200), np.repeat(np.arange(40), 5))
    )
    narrow, wide = (
        estimate(agreement.krippendorff_alpha(rated), rated.clusters, generator())
        for rated in (alone, together)
    )
    assert wide.value == narrow.value
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_the_interval_holds_the_value():
    rated = two_people(200)
    for figure in (
        agreement.cohen_kappa(rated),
        agreement.fleiss_kappa(rated, 2),
        agreement.gwet_ac(rated),
    ):
        got = estimate(figure, rated.clusters, generator())
        assert got.low < got.value < got.high
        assert got.reason == ""


@pytest.mark.parametrize("clusters", [1, 9])
def test_under_ten_clusters_there_is_a_value_without_interval(clusters):
    got = estimate(mean_of(np.arange(50.0)), np.arange(50) % clusters, generator())
    assert (got.value, got.low, got.high, got.n) == (24.5, None, None, 50)
    assert got.reason == "under 10 clusters"


@pytest.mark.parametrize("measure", [agreement.krippendorff_alpha, agreement.gwet_ac])
def test_clusters_are_counted_where_items_have_a_say(measure):
    # Nine clusters with two labels, and twenty whose only label pairs with nothing, though in AC1
    # it counts for how often a class is chosen.
    table = [[i % 3, i % 2] for i in range(9)] + [[1, np.nan]] * 20
    rated = ratings.ratings_from_values(table)
    got = estimate(measure(rated), rated.clusters, generator())
    assert got.reason == "under 10 clusters"


def test_a_figure_that_most_draws_cannot_give_has_no_interval():
    # One item of twelve differs: a draw without it is constant, (11/12)^12 = 0.352 of the draws.
    rated = ratings.ratings_from_values([[1, 1]] * 11 + [[1, 2]])
    got = estimate(agreement.krippendorff_alpha(rated), rated.clusters, generator(), draws=1_000)
    undefined = int(got.reason.removeprefix("undefined in ").removesuffix(" of 1,000 draws"))
    assert (got.low, got.high) == (None, None)
    assert undefined == pytest.approx(352, abs=50)


def test_a_figure_without_value_has_no_interval():
    constant = ratings.ratings_from_values([[1, 1]] * 20, [1, 2])
    got = estimate(agreement.krippendorff_alpha(constant), constant.clusters, generator())
    assert (got.value, got.low, got.n, got.reason) == (None, None, 20, "all labels are the same")
    empty = ratings.ratings_from_values([])
    got = estimate(agreement.krippendorff_alpha(empty), empty.clusters, generator())
    assert (got.value, got.n, got.reason) == (None, 0, "no item with two labels")


def test_what_a_value_leaves_out_is_still_said():
    got = estimate(mean_of(np.arange(20.0), "left out one"), np.arange(20), generator())
    assert got.low is not None
    assert got.reason == "left out one"
    got = estimate(mean_of(np.arange(5.0), "left out one"), np.arange(5), generator())
    assert got.reason == "left out one; under 10 clusters"


def test_a_level_is_a_fraction_and_every_item_has_a_cluster():
    with pytest.raises(ValueError, match="level"):
        estimate(mean_of(np.arange(20.0)), np.arange(20), generator(), level=95)
    with pytest.raises(ValueError, match="20 items need as many cluster entries"):
        estimate(mean_of(np.arange(20.0)), np.arange(3), generator())


def test_the_share_of_draws_that_are_not_above_nought_is_a_one_sided_p():
    # 100 values, 55 of them 1 and 45 of them -1: mean 0.1, standard error sqrt(0.99) / 10 = 0.0995.
    # P(mean <= 0) = P(z <= -1.005) = 0.157, and half of P(mean = 0) = 0.08 x 0.5 more: about 0.18.
    values = np.repeat([1.0, -1.0], [55, 45])
    p = share_not_above(mean_of(values), np.arange(100), generator(), draws=4_000)
    assert p == pytest.approx(0.18, abs=0.02)
    back = share_not_above(mean_of(-values), np.arange(100), generator(), draws=4_000)
    # A draw of exactly 0 is not above on either side.
    assert back == pytest.approx(1 - 0.157 + 0.04, abs=0.04)
    assert share_not_above(mean_of(np.zeros(20)), np.arange(20), generator(), draws=50) == 1


def test_with_few_clusters_or_without_a_value_there_is_no_p():
    ones = np.ones(20)
    assert share_not_above(mean_of(ones), np.arange(20) % 9, generator(), draws=50) is None
    assert share_not_above(mean_of(ones * np.nan), np.arange(20), generator(), draws=50) is None


# Two figures over the same items, drawn together


def test_a_difference_is_drawn_in_pairs_by_hand():
    # The first is the second plus 0 or 1 in turn: difference 1/2, error 0.5 / 20, however much
    # the two vary together.
    second = generator().normal(size=400) * 100
    paired = subtract_figures(mean_of(second + np.arange(400) % 2), mean_of(second))
    got = estimate(paired, np.arange(400), generator())
    assert (got.value, got.n) == (pytest.approx(0.5), 400)
    assert (got.low, got.high) == pytest.approx((0.451, 0.549), abs=0.006)


def test_figures_are_combined_by_any_function():
    figures = [mean_of(np.arange(20.0)), mean_of(np.ones(20), "odd"), mean_of(np.zeros(20), "odd")]
    got = combine_figures(figures, lambda values: values.sum(axis=1)).point()
    assert (got.value, got.reason) == (10.5, "odd")


def test_figures_that_share_a_figure_draw_it_once():
    first, second = (mean_of(generator(seed).normal(size=200)) for seed in (1, 2))
    lengths = list[int]()

    def count(sums):
        lengths.append(len(sums))
        return first.of(sums)

    counted = replace(first, of=count)
    apart = subtract_figures(counted, second)
    mean = combine_figures([apart, counted], lambda values: values.mean(axis=1))
    found = estimates([counted, second, apart, mean], np.arange(200), generator())
    # The draws, and the figure without each item. Single rows are points.
    assert [length for length in lengths if length > 1] == [2_000, 200]
    alone = subtract_figures(first, second)
    assert found[2] == estimate(alone, np.arange(200), generator())


def test_each_figure_of_a_difference_needs_ten_clusters():
    few, all_of = np.arange(30) < 9, np.ones(30, dtype=bool)
    terms = mean_of(np.arange(30.0))
    sparse = Figure(terms.terms, terms.of, few, "nothing", "undefined")
    wide = subtract_figures(terms, sparse)
    assert estimate(wide, np.arange(30), generator()).reason == "under 10 clusters"
    nested = subtract_figures(terms, wide)
    assert estimate(nested, np.arange(30), generator()).reason == "under 10 clusters"
    parted = Figure(terms.terms, terms.of, all_of, "nothing", "undefined", parts=(few,))
    assert estimate(parted, np.arange(30), generator()).reason == "under 10 clusters"


def test_a_difference_says_why_it_does_not_exist():
    constant = ratings.ratings_from_values([[1, 1]] * 20, [1, 2])
    missing = subtract_figures(mean_of(np.arange(20.0)), agreement.krippendorff_alpha(constant))
    assert missing.point().reason == "all labels are the same"


@pytest.mark.parametrize("values", [[0.1] * 30, [3.0] * 29 + [3.0 + 1e-12]])
def test_an_interval_of_no_width_but_for_rounding_is_none(values):
    got = estimate(mean_of(values), np.arange(30), generator())
    assert (got.value, got.low, got.high) == (pytest.approx(values[0]), None, None)
    assert got.reason == "all draws agree"
    both = estimates([mean_of(values), mean_of(np.arange(30.0))], np.arange(30), generator())
    assert [one.reason for one in both] == ["all draws agree", ""]
    assert both[1].low < both[1].high


def test_an_interval_of_no_width_is_none_where_few_draws_differ():
    # Whether any is 1, which 6 of 400 are: not so in 1 of e^6 draws, under the tail of an interval.
    terms = csr_array(np.column_stack([np.arange(400) < 6, np.ones(400)]))
    whether = Figure(terms, lambda sums: (sums[:, 0] > 0) + 0.0, np.ones(400, bool), "", "")
    got = estimate(whether, np.arange(400), generator())
    assert (got.value, got.low, got.reason) == (1, None, "nearly all draws agree")


def test_few_kinds_and_many_are_drawn_alike():
    # 12,000 clusters of two kinds, and the same values told apart by a millionth.
    values = (np.arange(12_000) % 3 == 0).astype(float)
    few = estimate(mean_of(values), np.arange(12_000), generator())
    many = estimate(mean_of(values + np.arange(12_000) / 1e10), np.arange(12_000), generator(), 500)
    assert (few.low, few.high) == pytest.approx((many.low, many.high), abs=0.002)


def test_kinds_of_unlike_numbers_are_drawn_as_often_as_they_are():
    # 60 of 100 clusters are 0 and the others 1.001 to 1.040: mean 0.408, variance 0.25, error 0.05.
    values = np.where(np.arange(100) < 60, 0.0, 1 + (np.arange(100) - 59) / 1_000)
    got = estimate(mean_of(values), np.arange(100), generator())
    assert got.value == pytest.approx(0.4082)
    assert (got.low, got.high) == pytest.approx((0.3102, 0.5062), abs=0.012)


def test_clusters_may_have_any_numbers():
    values, few = np.arange(40.0) % 7, np.arange(40) // 2
    expected = estimate(mean_of(values), few, generator())
    assert estimate(mean_of(values), few * 10**12 - 5, generator()) == expected
    assert estimate(mean_of(values), few + 0.5, generator()) == expected


def test_clusters_without_a_say_are_not_drawn():
    values = np.arange(40.0) % 7
    alone = estimate(mean_of(values), np.arange(40), generator())
    terms = csr_array(np.column_stack([np.pad(values, (360, 0)), np.arange(400) >= 360]))
    among = Figure(terms, mean_of(values).of, np.arange(400) >= 360, "nothing", "undefined")
    assert estimate(among, np.arange(400), generator()) == alone


def test_sums_that_only_rounding_makes_alike_are_told_apart():
    # Beside a 1, 1e-20 is lost in any sum of the two.
    odd = np.arange(200) % 2
    terms = csr_array(np.column_stack([np.ones(200), 1e-20 * odd]))
    figure = Figure(
        terms, lambda sums: 1e20 * sums[:, 1] / sums[:, 0], odd >= 0, "nothing", "undefined"
    )
    got = estimate(figure, np.arange(200), generator())
    assert (got.low, got.high) == pytest.approx((0.43, 0.57), abs=0.02)


def test_several_figures_from_the_same_draws_are_those_that_each_has_alone():
    rng = np.random.Generator(np.random.PCG64(5))
    one, other = rng.normal(size=90), rng.normal(size=90)
    clusters = np.arange(90) // 2
    figures = [closeness.rmse(one, other), correlation.pearson(one, other)]
    together = bootstrap.estimates(figures, clusters, np.random.Generator(np.random.PCG64(1)))
    # Every cluster is of a kind of its own, so that the draws are the same.
    alone = [
        bootstrap.estimate(figure, clusters, np.random.Generator(np.random.PCG64(1)))
        for figure in figures
    ]
    for found, expected in zip(together, alone, strict=True):
        assert found.value == expected.value
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_of_several_figures_those_that_cannot_be_drawn_say_why():
    values = np.arange(20.0)
    few = np.where(values < 5, values, np.nan)
    figures = [
        closeness.mae(values, values + 1),
        closeness.mae(values, few),
        correlation.pearson(values, np.ones(20)),
    ]
    rng = np.random.Generator(np.random.PCG64(1))
    first, second, third = bootstrap.estimates(figures, np.arange(20), rng)
    assert (first.value, first.low, first.reason) == (1, None, "all draws agree")
    assert (second.value, second.low, second.reason) == (0, None, "under 10 clusters")
    assert (third.value, third.reason) == (None, "one side is constant")
    assert bootstrap.estimates([], [], rng) == []


@pytest.mark.parametrize("undefined, words", [(5, ""), (6, "undefined in 6 of 100 draws")])
def test_one_draw_in_twenty_may_lack_a_value(undefined, words):
    values = np.arange(100.0)
    values[:undefined] = np.nan
    assert bootstrap._why_undefined(values) == words
