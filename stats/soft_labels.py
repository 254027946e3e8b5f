"""Verdicts against the shares of people who said error, where people do not all agree (study 001,
section 5).

All functions take and return one number per item. `verdicts` are 1 for error, 0 for no error, or
the share of an evaluator's samples that said error, nan if missing; `shares` are the shares of
people who said error. The mean over items is a rate, see `stats.rates.estimate_rate`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def agreement_with_people(verdicts: ArrayLike, shares: ArrayLike) -> Floats:
    """The probability that a random person of the item says the same as the evaluator:
    d s + (1 - d) (1 - s), with the verdict d and the share s."""
    d, s = np.asarray(verdicts, dtype=float), np.asarray(shares, dtype=float)
    return d * s + (1 - d) * (1 - s)


def agreement_of_people(errors: ArrayLike, labels: ArrayLike) -> Floats:
    """The probability that two different people of the item say the same, if e of k people
    (`labels`) said error: (e (e - 1) + (k - e) (k - e - 1)) / (k (k - 1)) (Fleiss 1971). nan with
    fewer than two people."""
    e, k = np.asarray(errors, dtype=float), np.asarray(labels, dtype=float)
    pairs = k * (k - 1)
    same = e * (e - 1) + (k - e) * (k - e - 1)
    return np.divide(same, pairs, out=np.full(np.shape(pairs), np.nan), where=pairs > 0)


def highest_agreement(shares: ArrayLike) -> Floats:
    """The agreement of the verdict that most people of the item gave: max(s, 1 - s). No evaluator
    with one verdict an item can agree more."""
    s = np.asarray(shares, dtype=float)
    return np.maximum(s, 1 - s)
