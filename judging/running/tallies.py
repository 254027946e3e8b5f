"""Counts of runs, kept until what they count changes: pages ask for them again and again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from annotation import writing
from judging import touches
from judging.models import Outcome, Run, Tally

Kind = Tally.Kind
Counts = dict[str, Any]


@dataclass(frozen=True)
class Items:
    """How many items a run has, and how many of them are not decided yet, or missing; along
    several axes each counts once."""

    items: int = 0
    pending: int = 0
    missing: int = 0


def states(runs: Iterable[Run]) -> dict[int, str]:
    """What there is to count of each run, by its id, in one short query. To be taken before
    anything is counted: what comes meanwhile then belongs to a later state."""
    listed = list(runs)
    changes = touches.counts(touches.of_run(run.pk) for run in listed)
    everything = changes.get(touches.EVERYTHING, 0)
    return {
        run.pk: f"{everything}.{changes.get(touches.of_run(run.pk), 0)} {run.state} {run.parser}"
        for run in listed
    }


def kept(kind: str, states: Mapping[int, str], now: datetime) -> dict[int, Counts]:
    """Counts that hold, by the id of the run: those of its state, and those that a worker keeps."""
    found = Tally.objects.filter(kind=kind, run__in=states)
    rows = found.values_list("run_id", "state", "shown_until", "counts")
    return {
        pk: counts
        for pk, state, until, counts in rows
        if state == states[pk] or (_alike(state, states[pk]) and until is not None and until > now)
    }


def _alike(state: str, other: str) -> bool:
    """Whether only more was counted: a run that was paused meanwhile is another matter."""
    return state.partition(" ")[2] == other.partition(" ")[2]


def keep(
    kind: str,
    states: Mapping[int, str],
    counted: Mapping[int, Counts],
    until: datetime | None = None,
) -> None:
    """Keep what was counted of these states; `until` a time whatever comes meanwhile.

    Of a run that is being planned only what is shown for a while: it changes with each batch, and
    who looks would wait for the planner to write what nobody could use.
    """
    rows = [
        Tally(run_id=pk, kind=kind, state=states[pk], counts=counts, shown_until=until)
        for pk, counts in sorted(counted.items())
        if until or Run.State.PLANNING not in states[pk].split()
    ]
    if not rows:
        return
    with writing.transact():
        Tally.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["run", "kind"],
            update_fields=["state", "counts", "shown_until"],
        )


def let_go(run: Run) -> None:
    """What was counted of the run holds for its state alone from now on."""
    with writing.transact():
        Tally.objects.filter(run=run).update(shown_until=None)


def with_items(runs: Iterable[Run], now: datetime) -> list[Run]:
    """The runs with `counted`, in three queries at most and a write."""
    listed = list(runs)
    states_ = states(listed)
    known = kept(Kind.ITEMS, states_, now)
    if lacking := sorted(set(states_) - set(known)):
        counted = count_items(lacking)
        keep(Kind.ITEMS, states_, counted)
        known |= counted
    for run in listed:
        run.counted = Items(**known[run.pk])
    return listed


def count_items(runs: Sequence[int]) -> dict[int, Counts]:
    """The counts of `Items` by the id of the run, from its outcomes, in one query."""
    found = Outcome.objects.filter(run__in=runs).count_items()
    return {pk: asdict(Items()) for pk in runs} | {row.pop("run"): row for row in found}
