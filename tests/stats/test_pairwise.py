"""Win rates and Bradley-Terry strengths, by hand and against a logistic regression."""

from math import log

import numpy as np
import pytest
import statsmodels.api as sm

from stats import pairwise
from stats.pairwise import Comparisons, bradley_terry, fit_strengths, make_comparisons, win_rate
from stats.rates import estimate_rate


def generator(seed: int = 3) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def compare(systems: int, *said: tuple[int, int, float, int], each: int = 1) -> Comparisons:
    """Comparisons (one, other, score, times); every `each` in a row are a cluster."""
    rows = [(one, other, score) for one, other, score, times in said for _ in range(times)]
    one, other, score = zip(*rows, strict=True) if rows else ((), (), ())
    clusters = [number // each for number in range(len(rows))]
    return make_comparisons(systems, one, other, score, clusters)


def test_a_tie_is_half_a_win_for_both() -> None:
    # 0 wins 5, ties 2 and loses 3 of 10: (5 + 1) / 10.
    found = compare(2, (0, 1, 1, 5), (1, 0, 0.5, 2), (1, 0, 1, 3))
    for scores, clusters in (found.of_system(0), found.of_pair(0, 1)):
        got = win_rate(scores, clusters)
        assert (got.value, got.n) == (pytest.approx(0.6), 10)
        # Wilson's interval of 6 in 10: centre (0.6 + 3.8415 / 20) / 1.38415 = 0.57225, half
        # 1.95996 / 1.38415 x sqrt(0.024 + 3.8415 / 400) = 0.25956.
        assert (got.low, got.high) == pytest.approx((0.31267, 0.83182), abs=2e-5)
    assert win_rate(*found.of_system(1)).value == pytest.approx(0.4)


def test_a_win_rate_takes_clusters_into_account() -> None:
    found = compare(2, (0, 1, 1, 12), (0, 1, 0, 8), each=4)
    alone = compare(2, (0, 1, 1, 12), (0, 1, 0, 8))
    got, single = win_rate(*found.of_system(0)), win_rate(*alone.of_system(0))
    assert got == estimate_rate([1] * 12 + [0] * 8, np.repeat(range(5), 4))
    assert None not in (got.low, single.low)
    assert got.high - got.low > 1.5 * (single.high - single.low)


def test_without_comparisons_there_is_no_win_rate() -> None:
    got = win_rate(*compare(2).of_system(0))
    assert (got.value, got.n, got.reason) == (None, 0, pairwise.NO_COMPARISONS)
    one = win_rate(*compare(2, (0, 1, 1, 3), each=3).of_system(0))
    assert (one.value, one.low, one.reason) == (1.0, None, "one cluster")


def test_two_systems_differ_by_the_log_odds_of_their_wins() -> None:
    # 15 wins, 5 losses: odds 3, so log 3 apart, log(3) / 2 from the mean. Two of the wins as four
    # ties change nothing: they are two wins and two losses.
    found = compare(2, (0, 1, 1, 15), (0, 1, 0, 5))
    first, second = bradley_terry(found, generator())
    assert (first.value, second.value) == pytest.approx((log(3) / 2, -log(3) / 2))
    assert first.n == second.n == 20
    ties = compare(2, (0, 1, 1, 13), (0, 1, 0, 3), (1, 0, 0.5, 4))
    assert bradley_terry(ties, generator())[0].value == pytest.approx(log(3) / 2)


def test_strengths_that_fit_exactly_are_found() -> None:
    # Odds of 2 to 1 between neighbours and 4 to 1 between the ends: strengths log 2, 0, -log 2.
    wins = np.array([[[0, 20, 32], [10, 0, 20], [8, 10, 0]]], dtype=float)
    assert fit_strengths(wins)[0] == pytest.approx([log(2), 0, -log(2)])


def test_strengths_are_those_of_a_logistic_regression() -> None:
    rng, systems = generator(5), 5
    true = np.array([1.5, 0.6, 0.0, -0.4, -1.7])
    one = rng.integers(systems, size=300)
    other = (one + rng.integers(1, systems, size=300)) % systems
    score = np.where(
        rng.random(300) < 0.2, 0.5, rng.random(300) < 1 / (1 + np.exp(true[other] - true[one]))
    ).astype(float)
    found = make_comparisons(systems, one, other, score, list(range(300)))
    got = [estimate.value for estimate in bradley_terry(found, generator(), draws=20)]

    design = np.zeros((300, systems))
    design[np.arange(300), one] = 1
    design[np.arange(300), other] = -1
    fitted = sm.GLM(score, design[:, 1:], family=sm.families.Binomial()).fit(tol=1e-12)
    expected = np.array([0, *fitted.params])
    assert got == pytest.approx(expected - expected.mean(), abs=1e-7)


def test_the_interval_is_about_two_standard_errors_of_independent_comparisons() -> None:
    # The log odds of 300 in 400 have the standard error sqrt(1 / 300 + 1 / 100) = 0.1155; a
    # strength is half of it, so 0.5493 -+ 1.96 x 0.0577 = 0.436 to 0.662.
    found = compare(2, (0, 1, 1, 300), (0, 1, 0, 100))
    got, _ = bradley_terry(found, generator())
    assert (got.low, got.high) == pytest.approx((0.436, 0.662), abs=0.012)
    # Four equal comparisons in each cluster: as if there were a quarter, so twice as wide.
    wide, _ = bradley_terry(compare(2, (0, 1, 1, 300), (0, 1, 0, 100), each=4), generator())
    assert wide.high - wide.low == pytest.approx(2 * (got.high - got.low), rel=0.1)


def test_equal_seeds_give_equal_intervals() -> None:
    found = compare(3, (0, 1, 1, 20), (1, 2, 1, 20), (2, 0, 1, 9), (1, 0, 0.5, 4))
    assert bradley_terry(found, generator(1)) == bradley_terry(found, generator(1))
    assert bradley_terry(found, generator(1)) != bradley_terry(found, generator(2))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([(0, 1, 1, 9), (2, 3, 1, 5), (3, 2, 1, 5), (1, 0, 1, 2)], pairwise.NOT_CONNECTED),
        ([(0, 1, 1, 9), (2, 3, 1, 5), (3, 1, 1, 4)], pairwise.ALWAYS_WINS),
        # 0 and 1 win all against 2 and 3, though each loses to somebody.
        (
            [(0, 1, 1, 9), (1, 0, 1, 9), (2, 3, 0.5, 9), (0, 2, 1, 9), (3, 1, 0, 9)],
            pairwise.ALWAYS_WINS,
        ),
    ],
)
def test_without_a_maximum_no_system_has_a_strength(
    said: list[tuple[int, int, float, int]], reason: str
) -> None:
    for got in bradley_terry(compare(4, *said), generator()):
        assert (got.value, got.low, got.high, got.reason) == (None, None, None, reason)


def test_no_comparisons_are_no_strengths() -> None:
    got = bradley_terry(compare(2), generator())
    assert [(one.value, one.n, one.reason) for one in got] == [(None, 0, "no comparisons")] * 2
    assert bradley_terry(compare(0), generator()) == []


def test_a_tie_connects_and_keeps_strengths_finite() -> None:
    # 9 wins and a tie: 9.5 to 0.5, odds 19.
    got, _ = bradley_terry(compare(2, (0, 1, 1, 9), (0, 1, 0.5, 1)), generator())
    assert got.value == pytest.approx(log(19) / 2)
    # Draws without the tie have no maximum; that is every third draw, too many.
    assert got.low is None
    assert "undefined in" in got.reason


def test_few_clusters_are_no_interval() -> None:
    got, _ = bradley_terry(compare(2, (0, 1, 1, 20), (1, 0, 1, 16), each=4), generator())
    assert got.value == pytest.approx(log(20 / 16) / 2)
    assert (got.low, got.reason) == (None, "under 10 clusters")


def test_many_tables_are_fitted_as_one_by_one() -> None:
    rng = generator(8)
    tables = rng.poisson(3, size=(50, 4, 4)) * ~np.eye(4, dtype=bool) * 1.0
    tables[7] = 0
    tables[8, 0] = 9
    tables[8, :, 0] = 0
    got = fit_strengths(tables)
    alone = np.concatenate([fit_strengths(table[None]) for table in tables])
    assert np.isnan(got[[7, 8]]).all()
    assert got == pytest.approx(alone, nan_ok=True, abs=1e-9)


def test_extreme_tables_converge() -> None:
    # Odds of 100,000 to 1 along a chain: strengths log(1e5) apart.
    wins = np.zeros((1, 4, 4))
    for one in range(3):
        wins[0, one, one + 1], wins[0, one + 1, one] = 1e5, 1
    assert np.diff(fit_strengths(wins)[0]) == pytest.approx([-log(1e5)] * 3)


def test_a_system_is_not_compared_with_itself() -> None:
    with pytest.raises(ValueError, match="with itself"):
        compare(2, (1, 1, 1, 1))
