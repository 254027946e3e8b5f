"""Cached counts of runs. Pages need them often, so they are stored until the run changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from annotation.db import transactions
from judging.models import Call, Outcome, Reply, Run, Tally
from judging.results import change_counters

Kind = Tally.Kind
Counts = dict[str, Any]


@dataclass(frozen=True)
class PaidReplies:
    """What is known about the prices of `replies`, where each reply counts once. `unknown` replies
    have no known price and used `tokens` in and out, as far as reported; `charged` replies cost
    something."""

    replies: int = 0
    unknown: int = 0
    tokens: int = 0
    charged: int = 0

    @property
    def is_unknown(self) -> bool:
        """True if there are replies but no reply has a known price."""
        return 0 < self.replies == self.unknown


@dataclass(frozen=True)
class ItemCounts:
    """The numbers of all, pending and missing items of a run; an item with several axes counts
    once. `paid` covers the run's replies, even if another run requested them."""

    items: int = 0
    pending: int = 0
    missing: int = 0
    paid: PaidReplies = PaidReplies()


def load_states(runs: Iterable[Run]) -> dict[int, str]:
    """Load a state string for each run, by run id, in one short query. The string changes whenever
    the counts change. Load it before you count, so that changes during the count belong to a later
    state."""
    listed = list(runs)
    changes = change_counters.load_counts(change_counters.run_subject(run.pk) for run in listed)
    everything = changes.get(change_counters.ALL_SUBJECTS, 0)
    counts = {run.pk: changes.get(change_counters.run_subject(run.pk), 0) for run in listed}
    return {run.pk: f"{everything}.{counts[run.pk]} {run.state} {run.parser}" for run in listed}


def load_counts(kind: str, states: Mapping[int, str], now: datetime) -> dict[int, Counts]:
    """Load the valid counts by run id: counts stored for the current state, and counts that a
    worker keeps up to date."""
    found = Tally.objects.filter(kind=kind, run__in=states)
    rows = found.values_list("run_id", "state", "shown_until", "counts")
    return {
        pk: counts
        for pk, state, until, counts in rows
        if state == states[pk]
        or (_only_grew(state, states[pk]) and until is not None and until > now)
    }


def _only_grew(state: str, other: str) -> bool:
    """True if only replies were added between the two states; the run's state and parser are the
    same."""
    return state.partition(" ")[2] == other.partition(" ")[2]


def store_counts(
    kind: str,
    states: Mapping[int, str],
    counted: Mapping[int, Counts],
    until: datetime | None = None,
) -> None:
    """Store the counts for these states. With `until`, they are shown until that time even if more
    replies arrive.

    While a run is being planned, only counts with `until` are stored: each batch changes the state,
    and a page would wait for the planner's write lock only to store counts that are outdated
    immediately.
    """
    rows = [
        Tally(run_id=pk, kind=kind, state=states[pk], counts=counts, shown_until=until)
        for pk, counts in sorted(counted.items())
        if until or Run.State.PLANNING not in states[pk].split()
    ]
    if not rows:
        return
    with transactions.transact():
        Tally.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["run", "kind"],
            update_fields=["state", "counts", "shown_until"],
        )


def release_counts(run: Run) -> None:
    """Limit the stored counts of the run to their exact state from now on."""
    with transactions.transact():
        Tally.objects.filter(run=run).update(shown_until=None)


def with_item_counts(runs: Iterable[Run], now: datetime) -> list[Run]:
    """Set `counted` on the runs, in at most four queries and one write."""
    listed = list(runs)
    states_ = load_states(listed)
    known = load_counts(Kind.ITEMS, states_, now)
    if lacking := sorted(set(states_) - set(known)):
        counted = count_items(lacking)
        store_counts(Kind.ITEMS, states_, counted)
        known |= counted
    for run in listed:
        counts = known[run.pk]
        run.counted = ItemCounts(**{**counts, "paid": PaidReplies(**counts["paid"])})
    return listed


def count_items(runs: Sequence[int]) -> dict[int, Counts]:
    """Count the fields of `ItemCounts` by run id, from outcomes and replies, in two queries."""
    found = {row.pop("run"): row for row in Outcome.objects.filter(run__in=runs).count_items()}
    paid = count_paid_by_run(runs)
    nothing = ItemCounts()
    return {
        pk: {**asdict(nothing), **found.get(pk, {}), "paid": asdict(paid.get(pk, nothing.paid))}
        for pk in runs
    }


def count_paid_by_run(runs: Sequence[int]) -> dict[int, PaidReplies]:
    """Count what is known about reply prices, by run id, for each run with replies. A reply shared
    by several runs counts in each of these runs."""
    return _paid("run_id", runs)


def count_paid(runs: Sequence[int]) -> PaidReplies:
    """Count what is known about reply prices for all of these runs together. A reply shared by
    several runs counts once."""
    return _paid("0", runs).get(0, PaidReplies())


def _paid(whose: str, runs: Sequence[int]) -> dict[int, PaidReplies]:
    if not runs:
        return {}
    tokens = "COALESCE(p.tokens_in, 0) + COALESCE(p.tokens_out, 0)"
    with connection.cursor() as cursor:
        cursor.execute(f"""
            SELECT u.whose, COUNT(*), SUM(CASE WHEN p.cost IS NULL THEN 1 ELSE 0 END),
                SUM(CASE WHEN p.cost IS NULL THEN {tokens} ELSE 0 END),
                SUM(CASE WHEN p.cost > 0 THEN 1 ELSE 0 END)
            FROM (
                SELECT DISTINCT {whose} AS whose, request_id FROM {Call._meta.db_table}
                WHERE run_id IN ({", ".join(str(int(pk)) for pk in runs)})
            ) AS u JOIN {Reply._meta.db_table} AS p ON p.request_id = u.request_id
            GROUP BY u.whose
        """)
        return {
            pk: PaidReplies(*(int(count) for count in counts)) for pk, *counts in cursor.fetchall()
        }
