import numpy as np
import pytest

from stats.mixes import NO_WEIGHTED_ITEM, estimate_groups, weigh
from stats.rates import estimate_rate


@pytest.fixture
def drawn():
    """Three groups in 60 questions of one to four items, alike within a question."""
    rng = np.random.Generator(np.random.PCG64(3))
    clusters = np.repeat(np.arange(60), rng.integers(1, 5, 60))
    groups = rng.choice(["a", "b", "c"], len(clusters), p=[0.5, 0.3, 0.2])
    chance = {"a": 0.8, "b": 0.5, "c": 0.2}
    hits = rng.random(len(clusters)) < [chance[one] for one in groups]
    return hits.astype(float), groups, clusters


def test_the_rates_are_those_of_each_group(drawn):
    hits, groups, clusters = drawn
    found = estimate_groups(hits, groups, clusters)
    assert found.groups == ["a", "b", "c"]
    for place, name in enumerate(found.groups):
        mine = groups == name
        assert found.n[place] == mine.sum()
        assert found.rate[place] == pytest.approx(hits[mine].mean())
        alone = weigh(found, {name: 7})
        wanted = estimate_rate(hits[mine], clusters[mine])
        # Clusters differ a little in size.
        assert (alone.value, alone.n) == (pytest.approx(wanted.value), wanted.n)
        assert (alone.low, alone.high) == pytest.approx((wanted.low, wanted.high), abs=0.005)


def test_the_covariance_is_that_of_the_jackknife(drawn):
    hits, groups, clusters = drawn
    found = estimate_groups(hits, groups, clusters)
    m = 60
    left = np.array(
        [
            estimate_groups(*(one[clusters != c] for one in (hits, groups, clusters))).rate
            for c in range(m)
        ]
    )
    apart = left - left.mean(axis=0)
    assert found.covariance == pytest.approx((m - 1) / m * apart.T @ apart, rel=0.1, abs=2e-4)


def test_the_interval_of_a_mix_as_in_the_data_is_that_of_all_items():
    rng = np.random.Generator(np.random.PCG64(4))
    clusters, groups = np.repeat(np.arange(30), 4), np.tile(list("aabc"), 30)
    hits = (rng.random(120) < np.repeat(rng.random(30), 4)).astype(float)
    got = weigh(estimate_groups(hits, groups, clusters), {"a": 2, "b": 1, "c": 1})
    # Residuals are those within groups, which explain a little of the variance.
    wanted = estimate_rate(hits, clusters)
    assert (got.value, got.low, got.high) == pytest.approx(
        (wanted.value, wanted.low, wanted.high), abs=0.01
    )
    # All items of a question in one group, of three questions: that group's own interval.
    few = estimate_groups([1, 0, 0, 1, 1, 1], list("aaabbb"), [1, 1, 2, 3, 4, 5])
    alone = estimate_rate([1, 0, 0], [1, 1, 2])
    one = weigh(few, {"a": 1})
    assert (one.low, one.high) == pytest.approx((alone.low, alone.high), abs=0.03)


def test_a_mix_as_in_the_data_has_the_rate_of_all_items(drawn):
    hits, groups, clusters = drawn
    found = estimate_groups(hits, groups, clusters)
    mix = weigh(found, dict(zip(found.groups, found.n.tolist(), strict=True)))
    assert mix.value == pytest.approx(hits.mean())


def test_another_mix_has_the_weighted_mean_and_covers_it():
    rng = np.random.Generator(np.random.PCG64(8))
    chance, weights = {"a": 0.9, "b": 0.5, "c": 0.2}, {"a": 1, "b": 1, "c": 8}
    truth = (0.9 + 0.5 + 8 * 0.2) / 10
    covered = 0
    for _ in range(400):
        clusters = np.repeat(np.arange(40), 4)
        groups = rng.choice(["a", "b", "c"], 160, p=[0.6, 0.3, 0.1])
        # A question shifts all of its items, so that their groups go together.
        shift = np.repeat(rng.uniform(-0.1, 0.1, 40), 4)
        hits = rng.random(160) < np.array([chance[one] for one in groups]) + shift
        one = weigh(estimate_groups(hits, groups, clusters), weights)
        covered += one.low <= truth <= one.high
    # 95 % less two standard errors of 400 draws.
    assert covered / 400 >= 0.93


def test_single_items_have_the_plain_interval():
    hits = np.array([1, 1, 0, 0, 1, 0, 1, 1], dtype=float)
    found = estimate_groups(hits, ["a"] * 8, range(8))
    wanted = estimate_rate(hits, range(8))
    got = weigh(found, {"a": 1})
    assert got.value == pytest.approx(wanted.value)
    assert (got.low, got.high) == pytest.approx((wanted.low, wanted.high))


def test_missing_items_and_groups_without_weight_do_not_count():
    hits = [1, np.nan, 0, 1, 0]
    found = estimate_groups(hits, list("abbcc"), [1, 2, 3, 4, 5])
    assert weigh(found, {"a": 1, "b": 1, "z": 5}).value == 0.5
    assert weigh(found, {"z": 5}).reason == NO_WEIGHTED_ITEM
    assert weigh(estimate_groups([], [], []), {"a": 1}).reason == NO_WEIGHTED_ITEM
    assert weigh(estimate_groups([1, 0], ["a", "a"], [1, 1]), {"a": 1}).reason == "one cluster"
    with pytest.raises(ValueError, match="negative"):
        weigh(found, {"a": -1})
