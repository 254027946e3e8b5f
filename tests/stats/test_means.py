import numpy as np
import pytest
from scipy import stats as scipy_stats

from stats import bootstrap
from stats.means import clustered_mean, mean_of_sums, student_mean
from stats.rates import ClusterSums


def test_the_interval_is_student_s() -> None:
    found = student_mean([1.0, 2.0, 3.0, 4.0])
    # s = sqrt(5/3) = 1.290994; t of 3 degrees of freedom at 0.975 = 3.182446; / sqrt(4)
    assert (found.value, found.n, found.reason) == (2.5, 4, "")
    assert found.low == pytest.approx(2.5 - 3.182446 * 1.290994 / 2, abs=1e-5)
    assert found.high == pytest.approx(2.5 + 3.182446 * 1.290994 / 2, abs=1e-5)


def test_values_that_are_all_alike_leave_no_width() -> None:
    found = student_mean([0.5] * 30)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("values", "value", "reason"), [([], None, "no values"), ([3.0], 3.0, "one value")]
)
def test_too_few_values_have_no_interval(
    values: list[float], value: float | None, reason: str
) -> None:
    found = student_mean(values)
    assert (found.value, found.low, found.high, found.reason) == (value, None, None, reason)


def test_a_mean_of_sums_has_the_clustered_interval() -> None:
    # Twelve clusters of (1, 3), (5,) and (2, 2, 8), four of each: mean 21 / 6; sums less mean x
    # items -3, 1.5, 1.5.
    sums = ClusterSums(12, 24, 84, 4 * 14, 4 * (8 + 5 + 36), 4 * (16 + 25 + 144))
    found = mean_of_sums(sums)
    assert (found.value, found.reason) == (3.5, "rough: under 20 clusters")
    width = scipy_stats.t.ppf(0.975, 24**2 / 56 - 1)
    width *= (12 / 11 * 4 * (9 + 2.25 + 2.25)) ** 0.5 / 24
    assert (found.low, found.high) == pytest.approx((3.5 - width, 3.5 + width))


@pytest.mark.parametrize("clusters", [10, 40])
def test_intervals_of_mean_scores_cover_the_mean(clusters: int) -> None:
    generator, covered = np.random.Generator(np.random.PCG64(2)), 0
    for _ in range(1_000):
        # Scores 1 to 10, mostly high, in questions that are easy or hard.
        sizes = generator.integers(1, 6, clusters)
        ease = np.repeat(generator.normal(0, 1, clusters), sizes)
        values = np.clip(np.round(8 + ease + generator.normal(0, 1.5, len(ease))), 1, 10)
        cluster = np.repeat(np.arange(clusters), sizes)
        y = np.bincount(cluster, weights=values)
        found = mean_of_sums(
            ClusterSums(
                clusters, len(values), y.sum(), int(sizes @ sizes), float(sizes @ y), float(y @ y)
            )
        )
        covered += found.low <= 7.925 <= found.high
    assert covered >= 920


def test_a_mean_of_sums_says_why_it_has_no_interval() -> None:
    assert mean_of_sums(ClusterSums(0, 0, 0, 0, 0, 0)).reason == "no values"
    assert mean_of_sums(ClusterSums(9, 18, 72, 36, 144, 576)).reason == "under 10 clusters"
    alike = mean_of_sums(ClusterSums(20, 30, 120, 50, 200, 800))
    assert (alike.value, alike.low, alike.reason) == (4, None, "all clusters have the same mean")


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(1))


def test_a_mean_of_items_leaves_out_what_is_missing() -> None:
    found = clustered_mean([4.0, np.nan, 0.0, -1.0]).point()
    assert (found.value, found.n) == (1.0, 3)


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_without_values_there_is_no_mean_of_items(values: list[float]) -> None:
    found = bootstrap.estimate(clustered_mean(values), np.arange(len(values)), rng())
    assert (found.value, found.n, found.reason) == (None, 0, "no values")


def test_the_interval_of_a_mean_knows_that_items_of_a_cluster_are_alike() -> None:
    values = np.repeat([0.0, 1.0] * 10, 4)
    alone = bootstrap.estimate(clustered_mean(values), np.arange(80), rng())
    alike = bootstrap.estimate(clustered_mean(values), np.repeat(np.arange(20), 4), rng())
    # sqrt(.25 / 80) = .056 for items of their own, sqrt(.25 / 20) = .112 for clusters of four, with
    # Student's quantile and m / (m - 1): 1.990 x (80/79)^.5 and 2.093 x (20/19)^.5.
    assert alone.value == alike.value == 0.5
    assert alone.high is not None
    assert alike.high is not None
    assert alone.high - 0.5 == pytest.approx(2.003 * 0.0559, abs=0.02)
    assert alike.high - 0.5 == pytest.approx(2.148 * 0.1118, abs=0.03)


def test_a_mean_over_few_clusters_has_no_interval() -> None:
    found = bootstrap.estimate(clustered_mean([1.0] * 9), np.arange(9), rng())
    assert (found.value, found.low, found.reason) == (1.0, None, "under 10 clusters")
