"""Outcomes of runs as arrays, item by item: for figures that need more than sums per cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Case, F, Field, Value, When
from numpy.typing import NDArray

from annotation.reports.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import counted, progress
from judging.runs.models import OutcomeQuerySet
from judging.strategies import compute_digest

# Frames whose items are error items and score-invariant items.
JUDGING_FRAMES = ("single", "pair", "reference")
AT_A_TIME = 5_000
# Rows with texts or fields, some of which have megabytes.
TEXTS_AT_A_TIME = 50
READING_STEP = "reading outcomes"
# A plain field, so that Django does not convert a million values that are already numbers.
_NUMBER: "Field[Any, Any]" = Field()
# 1, 0 or the share of repeats, null if missing.
_DETECTED = Case(
    When(result=Outcome.Result.MISSING, then=None),
    When(share__isnull=False, then=F("share")),
    When(result=Outcome.Result.DETECTED, then=Value(1.0)),
    default=Value(0.0),
    output_field=_NUMBER,
)
_INVARIANT = Case(When(invariant=True, then=Value(1)), default=Value(0), output_field=_NUMBER)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class RunArrays:
    """The items of one run, one array per column.

    `detected` is 1, 0 or the share of repeats, nan if missing; all runs share the cluster numbers;
    `fields` has the other requested columns.
    """

    run: Run
    item: Ints
    cluster: Ints
    detected: Floats
    invariant: Bools
    fields: dict[str, NDArray[Any]]

    def only(self, these: Bools | Ints) -> "RunArrays":
        """Select some of the items by a mask or by positions."""
        return RunArrays(
            self.run,
            self.item[these],
            self.cluster[these],
            self.detected[these],
            self.invariant[these],
            {name: values[these] for name, values in self.fields.items()},
        )


def select_judging(runs: Iterable[Run]) -> list[Run]:
    """Select the runs that judge error items or score-invariant items. A vote has the strategy of
    its members."""
    runs = list(runs)
    asked = counted.load_strategies(runs)
    return [run for run in runs if asked[run.pk].frame in JUDGING_FRAMES]


def load_arrays(
    runs: Iterable[Run],
    fields: Sequence[str] = (),
    groups: Sequence[Grouping] = (),
    *,
    among: OutcomeQuerySet | None = None,
) -> list[RunArrays]:
    """Load the counted items of runs that judge error items or score-invariant items.

    Duplicates are left out. `fields` are fields of outcomes and `groups` are groupings of items;
    both are returned by name. If `among` (a queryset) is given, only its outcomes are loaded, and
    its annotations can be used as fields. Makes one query for all runs, or one per run if progress
    is reported, or none if no run judges such items.
    """
    chosen = select_judging(runs)
    if not chosen:
        return []
    columns = (
        "run",
        "item",
        "cluster",
        _DETECTED,
        _INVARIANT,
        *fields,
        *(one.expression("item__") for one in groups),
    )
    names = (*fields, *(one.name for one in groups))
    every = Outcome.objects.all() if among is None else among
    found = every.counted().main().without_repeats().order_by().values_list(*columns)
    rows: dict[int, list[tuple[Any, ...]]] = {run.pk: [] for run in chosen}
    for some in progress.split_if_watched(chosen, READING_STEP):
        for row in found.filter(run__in=some).iterator(chunk_size=AT_A_TIME):
            rows[row[0]].append(row)
    return list(_build_arrays(chosen, rows, names))


def make_generator(table: str, runs: Iterable[Run], *filters: Any) -> np.random.Generator:
    """Create a random generator whose seed depends only on the request, so every machine draws the
    same numbers."""
    seed = int(compute_digest([table, [run.digest for run in runs], *filters])[:32], 16)
    return np.random.Generator(np.random.PCG64(seed))


def _build_arrays(
    runs: Sequence[Run], rows: Mapping[int, Sequence[tuple[Any, ...]]], names: Sequence[str]
) -> Iterator[RunArrays]:
    """Build the arrays of each run, sorted by item. The database may return the rows in any
    order."""
    clusters = sorted({row[2] for found in rows.values() for row in found})
    numbers = {cluster: number for number, cluster in enumerate(clusters)}
    for run in runs:
        found = list(zip(*rows[run.pk], strict=True)) or [()] * (5 + len(names))
        _, item, cluster, detected, invariant, *rest = found
        items = np.array(item, dtype=int)
        order = np.argsort(items)
        yield RunArrays(
            run,
            items[order],
            np.array([numbers[one] for one in cluster], dtype=int)[order],
            # None becomes nan.
            np.array(detected, dtype=float)[order],
            np.array(invariant, dtype=bool)[order],
            {
                name: np.array(one, dtype=object)[order]
                for name, one in zip(names, rest, strict=True)
            },
        )
