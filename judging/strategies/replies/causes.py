"""What a run says of one item, and the causes for which it says nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

DETECTED, UNDETECTED, SCORED, MISSING = "detected", "undetected", "scored", "missing"
# Of a generator: there is a text.
MADE = "made"

# What the evaluator itself did comes before what happened on the way, since asking again would
# not mend it. Of several causes in one item the first in this list is named, whichever call it
# is from; a cause that is not listed comes last, by name.
CAUSES = (
    "refused",
    "filtered",
    "truncated",
    "off_scale",
    "unparsable",
    "incomplete",
    "swapped",
    "echoed",
    "language",
    "unrelated",
    "rejected",
    "rate_limited",
    "timed_out",
    "unavailable",
)
ONE_ORDER = "one_order"
# Causes whose word was changed, as files and archives from before have them.
FORMER_CAUSES = {"rate-limited": "rate_limited"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a run says of one item, along one axis if its strategy has some.

    `detail` is "" and `cause` set when `result` is missing, the other way round when not (scores
    may have no detail). `values` is plain JSON; what it holds stands with each frame in deciding.
    `share` is the share of parsed repeats or members that detect, None where there is one alone
    or nothing to detect.
    """

    result: str
    detail: str = ""
    cause: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    share: float | None = None


def first_cause(causes: Iterable[str]) -> str:
    """The cause that stands for several; "" of none."""
    return min(causes, key=lambda cause: (_rank_cause(cause), cause), default="")


def _rank_cause(cause: str) -> int:
    return CAUSES.index(cause) if cause in CAUSES else len(CAUSES)
