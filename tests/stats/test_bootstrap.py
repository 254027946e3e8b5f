import numpy as np
import pytest
from scipy.sparse import csr_array

from stats import agreement, bootstrap, ratings
from stats.bootstrap import Figure, estimate, share_not_above


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
    return ratings.of_values(table, range(3), clusters)


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
    # Two sets of 20,000 draws place a quantile of this spread, 0.35, to about 0.01 each.
    expected = tuple(np.quantile(means, [0.025, 0.975]))
    assert (got.low, got.high) == pytest.approx(expected, abs=0.03)


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
        estimate(agreement.krippendorff(rated), rated.clusters, generator(seed))
        for seed in (1, 1, 2)
    )
    assert one == two
    assert (one.low, one.high) != (other.low, other.high)


def test_blocks_of_draws_give_what_one_block_gives(monkeypatch):
    rated = two_people(60)
    whole = estimate(agreement.gwet(rated), rated.clusters, generator(), draws=100)
    monkeypatch.setattr(bootstrap, "_AT_A_TIME", 7 * 9)
    assert estimate(agreement.gwet(rated), rated.clusters, generator(), draws=100) == whole


def test_items_of_one_cluster_make_the_interval_wider():
    table = np.repeat(two_people(40).codes, 5, axis=0)
    alone, together = (
        ratings.of_values(table, range(3), clusters)
        for clusters in (np.arange(200), np.repeat(np.arange(40), 5))
    )
    narrow, wide = (
        estimate(agreement.krippendorff(rated), rated.clusters, generator())
        for rated in (alone, together)
    )
    assert wide.value == narrow.value
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_the_interval_holds_the_value():
    rated = two_people(200)
    for figure in (agreement.cohen(rated), agreement.fleiss(rated, 2), agreement.gwet(rated)):
        got = estimate(figure, rated.clusters, generator())
        assert got.low < got.value < got.high
        assert got.reason == ""


@pytest.mark.parametrize("clusters", [1, 9])
def test_under_ten_clusters_there_is_a_value_without_interval(clusters):
    got = estimate(mean_of(np.arange(50.0)), np.arange(50) % clusters, generator())
    assert (got.value, got.low, got.high, got.n) == (24.5, None, None, 50)
    assert got.reason == "under 10 clusters"


@pytest.mark.parametrize("measure", [agreement.krippendorff, agreement.gwet])
def test_clusters_are_counted_where_items_have_a_say(measure):
    # Nine clusters with two labels, and twenty whose only label pairs with nothing, though in AC1
    # it counts for how often a class is chosen.
    table = [[i % 3, i % 2] for i in range(9)] + [[1, np.nan]] * 20
    rated = ratings.of_values(table)
    got = estimate(measure(rated), rated.clusters, generator())
    assert got.reason == "under 10 clusters"


def test_a_figure_that_most_draws_cannot_give_has_no_interval():
    # One item of twelve differs: a draw without it is constant, (11/12)^12 = 0.352 of the draws.
    rated = ratings.of_values([[1, 1]] * 11 + [[1, 2]])
    got = estimate(agreement.krippendorff(rated), rated.clusters, generator(), draws=1_000)
    undefined = int(got.reason.removeprefix("undefined in ").removesuffix(" of 1,000 draws"))
    assert (got.low, got.high) == (None, None)
    assert undefined == pytest.approx(352, abs=50)


def test_a_figure_without_value_has_no_interval():
    constant = ratings.of_values([[1, 1]] * 20, [1, 2])
    got = estimate(agreement.krippendorff(constant), constant.clusters, generator())
    assert (got.value, got.low, got.n, got.reason) == (None, None, 20, "all labels are the same")
    empty = ratings.of_values([])
    got = estimate(agreement.krippendorff(empty), empty.clusters, generator())
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
    with pytest.raises(ValueError, match="20 items need as many clusters"):
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
