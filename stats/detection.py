"""Scores of error detection against reference labels (study 001).

Positive is an error. As in the study (tables 4 and 8), an item without a verdict, for whatever
reason, counts as "not error" in precision, recall, F1 and MCC, and as wrong in accuracy. So
accuracy is not (tp + tn) / n of the matrix behind the other scores. All scores are fractions of 1,
except MCC, which ranges from -1 to 1.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stats import rates
from stats.bootstrap import Figure
from stats.estimates import Estimate

Measure = Literal["accuracy", "precision", "recall", "f1", "mcc"]
Floats = NDArray[np.float64]

NO_ITEMS = "no items"
NO_POSITIVE = "no positive"
ONE_CLASS = "one kind alone"


@dataclass(frozen=True, slots=True)
class ConfusionCounts:
    """Counts of items by truth and verdict.

    `tp`, `fp`, `fn` and `tn` count items with a verdict. Of the items without a verdict,
    `missing_errors` counts the errors and `missing_others` the rest.
    """

    tp: int = 0
    fp: int = 0
    fn: int = 0
    tn: int = 0
    missing_errors: int = 0
    missing_others: int = 0

    @property
    def missing(self) -> int:
        """The number of items without a verdict."""
        return self.missing_errors + self.missing_others

    @property
    def n(self) -> int:
        """The number of all items, including those without a verdict."""
        return self.tp + self.fp + self.fn + self.tn + self.missing

    def __add__(self, other: "ConfusionCounts") -> "ConfusionCounts":
        return ConfusionCounts(*(int(one) for one in np.add(_cells(self), _cells(other))))


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """The scores of a detector; `n` counts items, `invalid` those without a verdict.

    A score that does not exist is None. `reason` is "no positive" if precision, recall or F1 was
    0/0 and was set to 0, and "no items" if there are no items.
    """

    n: int
    invalid: int
    accuracy: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    mcc: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ScoreBounds:
    """The scores if all items without a verdict had been judged wrongly, and if all had been judged
    rightly."""

    lowest: DetectionScores
    highest: DetectionScores


def count_verdicts(verdicts: Iterable[tuple[bool, bool | None]]) -> ConfusionCounts:
    """Count pairs (is an error, was called an error); None means no verdict."""
    cells = dict.fromkeys(_CELLS, 0)
    for pair in verdicts:
        cells[pair] += 1
    return ConfusionCounts(*cells.values())


def compute_scores(counts: ConfusionCounts) -> DetectionScores:
    """Accuracy, precision, recall, F1 and MCC as study 001 counts them.

    Items without a verdict count as called "not error": precision tp / (tp + fp), recall tp /
    (errors), F1 2 tp / (2 tp + fp + fn), each set to 0 if it is 0/0. Accuracy is (tp + tn) / n,
    where only items with a verdict count in tn. MCC is None if all items, or all verdicts, are of
    one class.
    """
    if not counts.n:
        return DetectionScores(0, 0, None, None, None, None, None, NO_ITEMS)
    figures = {name: float(of(_to_array(counts))[0]) for name, of in _MEASURES.items()}
    mcc = figures.pop("mcc")
    # F1 is 0/0 only if precision and recall both are.
    accused, errors = counts.tp + counts.fp, counts.tp + counts.fn + counts.missing_errors
    return DetectionScores(
        n=counts.n,
        invalid=counts.missing,
        **figures,
        mcc=None if np.isnan(mcc) else mcc,
        reason="" if accused and errors else NO_POSITIVE,
    )


def score_valid(counts: ConfusionCounts) -> DetectionScores:
    """The scores on the items that have a verdict."""
    return compute_scores(ConfusionCounts(counts.tp, counts.fp, counts.fn, counts.tn))


def bound_scores(counts: ConfusionCounts) -> ScoreBounds:
    """The lowest and highest possible scores over all values of the missing verdicts."""
    tp, fp, fn, tn, errors, others = (int(cell) for cell in _cells(counts))
    return ScoreBounds(
        lowest=compute_scores(ConfusionCounts(tp, fp + others, fn + errors, tn)),
        highest=compute_scores(ConfusionCounts(tp + errors, fp, fn, tn + others)),
    )


def mean_scores(rows: Sequence[DetectionScores]) -> DetectionScores:
    """The unweighted mean of each score over rows, such as the four prompts of a detector.

    A precision, recall or F1 that was 0/0 enters as 0. If a score does not exist in a row, the mean
    of that score leaves the row out. `n` and `invalid` are sums over the rows.
    """
    if not any(row.n for row in rows):
        return DetectionScores(0, 0, None, None, None, None, None, NO_ITEMS)
    means = {name: _mean([getattr(row, name) for row in rows]) for name in _MEASURES}
    reasons = (row.reason for row in rows if row.n)
    total, invalid = sum(row.n for row in rows), sum(row.invalid for row in rows)
    return DetectionScores(total, invalid, **means, reason=next(filter(None, reasons), ""))


def score_always_error(counts: ConfusionCounts) -> DetectionScores:
    """The scores of a baseline that calls every item an error."""
    errors = counts.tp + counts.fn + counts.missing_errors
    return compute_scores(ConfusionCounts(tp=errors, fp=counts.n - errors))


def score_at_random(counts: ConfusionCounts) -> DetectionScores:
    """The scores of a baseline that calls items errors at random, as often as errors occur.

    With p the share of errors, precision, recall and F1 are p, as the study gives them (table 4);
    accuracy p^2 + (1 - p)^2 (table 8); MCC 0 unless p is 0 or 1.
    """
    if not counts.n:
        return compute_scores(ConfusionCounts())
    errors = counts.tp + counts.fn + counts.missing_errors
    p = errors / counts.n
    mcc = 0.0 if 0 < p < 1 else None
    return DetectionScores(counts.n, 0, p * p + (1 - p) * (1 - p), p, p, p, mcc)


def estimate_rate(
    measure: Literal["accuracy", "precision", "recall"],
    truths: Sequence[bool],
    verdicts: Sequence[Sequence[bool | None]],
    clusters: Sequence[str],
) -> Estimate:
    """The mean over prompts of a measure that is a rate, with the interval of
    `rates.estimate_mean_rate`.

    Accuracy is over all items, precision over items called errors, recall over errors. `verdicts`
    is items x prompts, None without a verdict. A rate of 0/0 has no interval.
    """
    is_error = np.array(truths, dtype=bool)[:, None]
    accused = np.array([[one is True for one in said] for said in verdicts], dtype=bool)
    cleared = np.array([[one is False for one in said] for said in verdicts], dtype=bool)
    hits, cases = {
        "accuracy": (np.where(is_error, accused, cleared), np.ones(accused.shape)),
        "precision": (accused & is_error, accused),
        "recall": (accused & is_error, np.broadcast_to(is_error, accused.shape)),
    }[measure]
    found = rates.estimate_mean_rate(hits, cases, clusters)
    return found if found.n else Estimate(None, None, None, 0, NO_POSITIVE)


def make_figure(
    measure: Measure, truths: Sequence[bool], verdicts: Sequence[Sequence[bool | None]]
) -> Figure:
    """The mean over prompts of a measure, as a figure for `bootstrap.estimate`.

    `verdicts` is items x prompts, None without a verdict. Every prompt covers all items. In a draw,
    a prompt whose MCC does not exist is left out, as in `mean_scores`.
    """

    def over_prompts(values: Floats) -> Floats:
        there = ~np.isnan(values)
        return _ratio(np.where(there, values, 0).sum(axis=1), there.sum(axis=1), np.nan)

    return _figure(measure, truths, verdicts, over_prompts)


def make_change_figure(
    measure: Measure, truths: Sequence[bool], verdicts: Sequence[tuple[bool | None, bool | None]]
) -> Figure:
    """The value of a measure after minus before, -1 to 1; `verdicts` has a pair (before, after) for
    each item.

    Undefined if one of the two values is undefined.
    """
    return _figure(measure, truths, verdicts, lambda values: values[:, 1] - values[:, 0])


def _figure(
    measure: Measure,
    truths: Sequence[bool],
    verdicts: Sequence[Sequence[bool | None]],
    folded: Callable[[Floats], Floats],
) -> Figure:
    """A figure that folds the measure of each column of `verdicts` into one number; `folded` takes
    draws x columns."""
    columns = len(verdicts[0]) if verdicts else 1
    places = {pair: place for place, pair in enumerate(_CELLS)}
    terms = np.zeros((len(truths), columns, len(_CELLS)))
    for item, (truth, said) in enumerate(zip(truths, verdicts, strict=True)):
        for column, verdict in enumerate(said):
            terms[item, column, places[truth, verdict]] = 1

    def of(sums: Floats) -> Floats:
        return folded(_MEASURES[measure](sums.reshape(-1, len(_CELLS))).reshape(-1, columns))

    flat = csr_array(terms.reshape(len(truths), columns * len(_CELLS)))
    return Figure(flat, of, np.ones(len(truths), dtype=bool), NO_ITEMS, ONE_CLASS)


# (is an error, was called an error), in the order of the fields of ConfusionCounts
_CELLS: tuple[tuple[bool, bool | None], ...] = (
    (True, True), (False, True), (True, False), (False, False), (True, None), (False, None),
)  # fmt: skip


def _cells(counts: ConfusionCounts) -> tuple[int, ...]:
    found = (counts.tp, counts.fp, counts.fn, counts.tn)
    return (*found, counts.missing_errors, counts.missing_others)


def _to_array(counts: ConfusionCounts) -> Floats:
    return np.array([_cells(counts)], dtype=float)


def _fold_missing(cells: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return tp, fp, fn and tn, where items without a verdict count as called "not error"."""
    tp, fp, fn, tn, errors, others = cells.T
    return tp, fp, fn + errors, tn + others


def _accuracy(cells: Floats) -> Floats:
    return _ratio(cells[:, 0] + cells[:, 3], cells.sum(axis=1), np.nan)


def _precision(cells: Floats) -> Floats:
    tp, fp, _, _ = _fold_missing(cells)
    return _ratio(tp, tp + fp)


def _recall(cells: Floats) -> Floats:
    tp, _, fn, _ = _fold_missing(cells)
    return _ratio(tp, tp + fn)


def _f1(cells: Floats) -> Floats:
    tp, fp, fn, _ = _fold_missing(cells)
    return _ratio(2 * tp, 2 * tp + fp + fn)


def _mcc(cells: Floats) -> Floats:
    """Matthews correlation of truth and verdict (Matthews 1975); nan if truth or verdict is
    constant."""
    tp, fp, fn, tn = _fold_missing(cells)
    # Take two roots, since a float cannot represent large products of four counts exactly.
    spread = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
    return _ratio(tp * tn - fp * fn, spread, np.nan)


_MEASURES: dict[str, Callable[[Floats], Floats]] = {
    "accuracy": _accuracy,
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "mcc": _mcc,
}


def _ratio(above: Floats, below: Floats, empty: float = 0.0) -> Floats:
    return np.divide(above, below, out=np.full(np.shape(above), empty), where=below != 0)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
