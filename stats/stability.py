"""How much the order of two answers and repeated calls change the outcome."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stats.estimates import Estimate
from stats.rates import estimate_rate

FIRST_TWICE = "first_twice"
SECOND_TWICE = "second_twice"
HALF_TIE = "half_tie"


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """Shares of parsed pairs, fractions of 1, where the position of the answers decided."""

    first_twice: Estimate
    second_twice: Estimate
    half_tie: Estimate


def order_effect(effects: Sequence[str | None], clusters: ArrayLike) -> OrderEffect:
    """How often the position of an answer decided (study 000, section 5.4).

    `effects` says for each pair what its two orders did: chose the first position twice, chose the
    second twice, or tied in only one order; "" if the orders agree on an answer or both tie; None
    if an order is missing. Rates with their interval; `n` counts parsed pairs.
    """

    def share(kind: str) -> Estimate:
        hits = [np.nan if effect is None else float(effect == kind) for effect in effects]
        return estimate_rate(hits, clusters)

    return OrderEffect(*(share(kind) for kind in (FIRST_TWICE, SECOND_TWICE, HALF_TIE)))


def changing_rate(outcomes: ArrayLike, clusters: ArrayLike) -> Estimate:
    """Share of items whose outcome differs between repeats, as a rate.

    `outcomes` is items x repeats, any number for each outcome, nan if a repeat is missing. An item
    changes if two of its parsed repeats differ, which is more likely with more repeats. `n` counts
    items with two parsed repeats or more.
    """
    table = np.asarray(outcomes, dtype=float)
    if table.ndim != 2:
        table = table.reshape(0, 0)
    there = ~np.isnan(table)
    low = np.where(there, table, np.inf).min(axis=1, initial=np.inf)
    high = np.where(there, table, -np.inf).max(axis=1, initial=-np.inf)
    return estimate_rate(np.where(there.sum(axis=1) >= 2, low != high, np.nan), clusters)
