"""The decision on an item, and the causes for a missing one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

DETECTED, UNDETECTED, SCORED, MISSING = "detected", "undetected", "scored", "missing"
# For generators: a text was generated.
MADE = "made"

# Causes in the reply itself come before failed requests, since sending the request again would not
# help. An item with several causes gets the first one in this list, whichever call it is from; a
# cause that is not listed comes last, by name.
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
# Causes that were renamed, as older files and archives have them.
FORMER_CAUSES = {"rate-limited": "rate_limited"}


@dataclass(frozen=True, slots=True)
class Decision:
    """A run's decision on one item, along one axis if its strategy has axes.

    If `result` is missing, `detail` is "" and `cause` is set; otherwise the other way round (scores
    may have no detail). `values` is plain JSON; item_decisions says what it contains for each
    frame. `share` is the share of parsed repeats or members that detect, None if there is only one
    or nothing to detect.
    """

    result: str
    detail: str = ""
    cause: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    share: float | None = None


def first_cause(causes: Iterable[str]) -> str:
    """The first of several causes by the order of `CAUSES`; "" if there are none."""
    return min(causes, key=lambda cause: (_rank_cause(cause), cause), default="")


def _rank_cause(cause: str) -> int:
    return CAUSES.index(cause) if cause in CAUSES else len(CAUSES)
