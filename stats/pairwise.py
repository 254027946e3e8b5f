"""Which of several systems is preferred, from comparisons of two at a time: win rates and the
Bradley-Terry model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from stats import bootstrap
from stats.bootstrap import Figure
from stats.estimates import Estimate
from stats.rates import estimate_rate

NO_COMPARISONS = "no comparisons"
NOT_CONNECTED = "the comparisons do not connect all systems"
ALWAYS_WINS = "one system or group of systems won every comparison with the others"
# The fit ends once no step changes a difference of strengths by more than this.
_TOLERANCE = 1e-10
_MOST_STEPS = 200

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Comparisons of two different systems each, by the numbers of the systems from 0 to
    `systems` - 1.

    `score` is what the system in `one` got: 1 for a win, 0.5 for a tie, 0 for a loss; the system in
    `other` got the rest. `cluster` says which comparisons are not independent.
    """

    systems: int
    one: Ints
    other: Ints
    score: Floats
    cluster: Ints

    def __post_init__(self) -> None:
        if bool((self.one == self.other).any()):
            raise ValueError("a system cannot be compared with itself")

    def of_system(self, system: int) -> tuple[Floats, Ints]:
        """The scores of a system in its comparisons, and their clusters."""
        mine, theirs = self.one == system, self.other == system
        scores = np.concatenate([self.score[mine], 1 - self.score[theirs]])
        return scores, np.concatenate([self.cluster[mine], self.cluster[theirs]])

    def of_pair(self, one: int, other: int) -> tuple[Floats, Ints]:
        """The scores of one system in its comparisons with another, and their clusters."""
        mine = (self.one == one) & (self.other == other)
        theirs = (self.one == other) & (self.other == one)
        scores = np.concatenate([self.score[mine], 1 - self.score[theirs]])
        return scores, np.concatenate([self.cluster[mine], self.cluster[theirs]])


def make_comparisons(
    systems: int, one: ArrayLike, other: ArrayLike, score: ArrayLike, cluster: Sequence[object]
) -> Comparisons:
    """Build comparisons from sequences of equal length; clusters may be of any kind. Raises
    ValueError for a system that is compared with itself."""
    numbers = np.unique(np.asarray(cluster, dtype=str), return_inverse=True)[1]
    return Comparisons(
        systems,
        np.asarray(one, dtype=int),
        np.asarray(other, dtype=int),
        np.asarray(score, dtype=float),
        numbers.astype(int).reshape(-1),
    )


def win_rate(scores: Floats, clusters: Ints) -> Estimate:
    """The mean score (0 to 1): the share of comparisons won, with a tie as half a win.

    The interval is the clustered Wilson interval of `rates.estimate_rate`, with ties as halves. `n`
    counts comparisons. Without comparisons there is no value, with one cluster no interval.
    """
    found = estimate_rate(scores, clusters)
    return found if found.n else Estimate(None, None, None, 0, NO_COMPARISONS)


def bradley_terry(
    found: Comparisons, rng: np.random.Generator, draws: int = bootstrap.DRAWS
) -> list[Estimate]:
    """The strength of each system by the Bradley-Terry model, with its cluster bootstrap interval.

    P(i beats j) = 1 / (1 + exp(s_j - s_i)) (Bradley and Terry 1952), with a tie as half a win and
    half a loss. Strengths are natural log-odds with mean 0 over the systems: a difference of 0 is
    an even match, of 1.1 one of 3 to 1. The values maximise the likelihood; `n` counts the
    comparisons of the system. Intervals sample clusters, as in `bootstrap.estimate`.

    The maximum exists only if no group of systems won (or lost) every comparison with the others
    (Ford 1957). Otherwise no system has a value, and `reason` says so; there is a reason of its own
    for systems that are not connected by comparisons at all. Draws without a maximum count as
    undefined.
    """
    wins = _wins_of(found)
    total = np.asarray(wins.sum(axis=0), dtype=float).reshape(1, found.systems, found.systems)
    empty = NO_COMPARISONS
    undefined = NOT_CONNECTED if not _is_connected(total + total.mT)[0] else ALWAYS_WINS
    fit = _remember_last(lambda sums: fit_strengths(sums.reshape(-1, *total.shape[1:])))

    def strength_of(system: int) -> Figure:
        return Figure(wins, lambda sums: fit(sums)[:, system], everything, empty, undefined)

    everything = np.ones(len(found.score), dtype=bool)
    figures = [strength_of(system) for system in range(found.systems)]
    made = bootstrap.estimates(figures, found.cluster, rng, draws)
    counts = [len(found.of_system(system)[0]) for system in range(found.systems)]
    return [
        Estimate(one.value, one.low, one.high, n, one.reason)
        for one, n in zip(made, counts, strict=True)
    ]


def fit_strengths(wins: Floats) -> Floats:
    """The strengths that maximise the Bradley-Terry likelihood, for each of several tables.

    `wins` is tables x systems x systems: how often the system of the row beat that of the column,
    with halves for ties. Returns tables x systems, with mean 0 in each row, or nan in a row without
    a maximum. By Newton's method, damped so that it converges from any start (Sun and Tran-Dinh
    2019, for logistic losses).
    """
    tables, systems, _ = wins.shape
    found = np.full((tables, systems), np.nan)
    exists = _is_connected(wins)
    won = wins[exists]
    played = won + won.mT
    scores, strengths = won.sum(axis=2), np.zeros(won.shape[:2])
    for _ in range(_MOST_STEPS):
        expected = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
        gradient = scores - (played * expected).sum(axis=2)
        weight = played * expected * (1 - expected)
        # The likelihood does not change if all strengths rise alike; the constant fixes their sum.
        curvature = np.eye(systems) * weight.sum(axis=2)[:, :, None] - weight + 1 / systems
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        width = np.ptp(step, axis=1, keepdims=True) if systems else step
        damp = np.divide(np.log1p(width), width, out=np.ones_like(width), where=width > 0)
        strengths += damp * step
        if not len(width) or width.max() < _TOLERANCE:
            break
    found[exists] = strengths - strengths.mean(axis=1, keepdims=True)
    return found


def _is_connected(wins: Floats) -> NDArray[np.bool_]:
    """For each table, True if every system beats every other one directly or through others: then
    the likelihood has a maximum (Ford 1957)."""
    systems = wins.shape[-1]
    reach = ((wins > 0) | np.eye(systems, dtype=bool)).astype(float)
    for _ in range(max(1, systems - 1).bit_length()):
        reach = ((reach @ reach) > 0).astype(float)
    return np.asarray((reach > 0).all(axis=(1, 2)))


def _wins_of(found: Comparisons) -> csr_array:
    """Comparisons x (systems squared): the score of each side, at row and column of the two."""
    number = np.arange(len(found.score))
    places = (
        np.concatenate([number, number]),
        np.concatenate(
            [found.one * found.systems + found.other, found.other * found.systems + found.one]
        ),
    )
    scores = np.concatenate([found.score, 1 - found.score])
    return csr_array(coo_array((scores, places), shape=(len(number), found.systems**2)))


def _remember_last(fit: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Fit the same sums only once: the figures of all systems have the same terms, so each sample
    would be fitted once for each system."""
    last: list[tuple[Floats, Floats]] = []

    def remembered(sums: Floats) -> Floats:
        if not (last and np.array_equal(last[0][0], sums)):
            last[:] = [(sums, fit(sums))]
        return last[0][1]

    return remembered
