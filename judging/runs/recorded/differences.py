"""Differences between the stored verdicts of recorded replies and the verdicts of our parser."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from judging.models import Outcome, Run
from judging.runs.models import OutcomeQuerySet
from judging.runs.recorded.transcripts import STORED
from judging.runs.recorded.verdicts import DIFFERS_KEY, PARSED
from judging.strategies import descriptions

MAX_SHOWN = 20
MAX_KINDS = 12


@dataclass(frozen=True)
class DifferenceKind:
    """A pair of stored and parsed verdicts, as text, that `n` items have in common; None for no
    usable verdict."""

    stored: str | None
    parsed: str | None
    n: int


@dataclass(frozen=True)
class Difference:
    """An item with two different verdicts, as in `DifferenceKind`."""

    outcome: Outcome
    stored: str | None
    parsed: str | None


@dataclass(frozen=True)
class VerdictComparison:
    """The source files of a run's replies, and a comparison of the stored with the parsed verdicts.

    `values` is the number of items with values that were recorded without a reply, `named` what
    these values are.
    `compared` is the number of items with both verdicts; for `differing` items the two verdicts
    differ. `kinds` are the most frequent differences, empty for scores; `first` are the first
    differing items, in item order.
    """

    files: list[str]
    values: int
    named: str
    decides: str
    compared: int
    differing: int
    kinds: list[DifferenceKind]
    first: list[Difference]


def compare_verdicts(run: Run) -> VerdictComparison | None:
    """Compare the verdicts of a recorded run; None for any other run."""
    if run.kind != Run.Kind.RECORDED:
        return None
    both = run.outcomes.filter(values__has_keys=[STORED, PARSED])
    without_reply = run.outcomes.exclude(result=Outcome.Result.MISSING).filter(calls=None)
    differing = both.filter(**{f"values__{DIFFERS_KEY}": True})
    return VerdictComparison(
        files=run.pinned.get("recorded", {}).get("files", []),
        values=without_reply.values("item").distinct().count(),
        named=descriptions.describe_values(run.pinned_strategy()),
        decides=STORED if run.parser == STORED else PARSED,
        compared=both.count(),
        differing=differing.count(),
        kinds=_count_kinds(differing),
        first=[
            Difference(
                one, _format_verdict(one.values[STORED]), _format_verdict(one.values[PARSED])
            )
            for one in differing.for_list()[:MAX_SHOWN]
        ],
    )


def _count_kinds(differing: OutcomeQuerySet) -> list[DifferenceKind]:
    said = (f"values__{STORED}", f"values__{PARSED}")
    counted = differing.order_by().values_list(*said).annotate(n=Count("pk")).order_by("-n", *said)
    rows = list(counted[:MAX_KINDS])
    if any(isinstance(value, dict) for row in rows for value in row):
        return []
    return [DifferenceKind(*row) for row in rows]


def _format_verdict(value: Any) -> str | None:
    """Format a verdict as text. Scores by metric are sorted, since databases do not keep the order
    of keys."""
    if not isinstance(value, dict):
        return value
    numbers = sorted((name, one) for name, one in value.items() if isinstance(one, int | float))
    return ", ".join(f"{name} {number:g}" for name, number in numbers) or None
