"""Where the stored verdicts of recorded replies and what our parser reads in them differ."""

from dataclasses import dataclass
from typing import Any

from judging.models import Outcome, Run
from judging.transcripts import STORED
from judging.verdicts import DIFFERS, PARSED

SHOWN = 50


@dataclass(frozen=True)
class Difference:
    """An item of which the two say different things; None where one says nothing that counts."""

    outcome: Outcome
    stored: Any
    parsed: Any


@dataclass(frozen=True)
class Recorded:
    """Where the replies of a run are from, and how its two verdicts compare.

    `compared` items have both, of them `differing` differ; `first` are some of these, in the
    order of the items.
    """

    files: list[str]
    decides: str
    compared: int
    differing: int
    first: list[Difference]


def of(run: Run) -> Recorded | None:
    """What is to be said of a recorded run; None for any other."""
    if run.kind != Run.Kind.RECORDED:
        return None
    both = run.outcomes.filter(values__has_keys=[STORED, PARSED])
    differing = both.filter(**{f"values__{DIFFERS}": True})
    return Recorded(
        files=run.pinned.get("recorded", {}).get("files", []),
        decides=STORED if run.parser == STORED else PARSED,
        compared=both.count(),
        differing=differing.count(),
        first=[
            Difference(one, one.values[STORED], one.values[PARSED])
            for one in differing.for_list()[:SHOWN]
        ],
    )
