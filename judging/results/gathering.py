"""What counts of runs, item by item as arrays: for figures that no sum over clusters gives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.leads.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import counting
from judging.strategies import digest

# Frames whose items are error items and score-invariant ones.
FRAMES = ("single", "pair", "reference")
AT_A_TIME = 5_000

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class Gathered:
    """The items of one run, an array each: `detected` 1, 0 or the share of repeats, nan where
    missing; clusters have numbers that all runs share; `fields` hold what else was asked for."""

    run: Run
    item: Ints
    cluster: Ints
    detected: Floats
    invariant: Bools
    fields: dict[str, NDArray[Any]]

    def only(self, these: Bools) -> "Gathered":
        """Some of the items."""
        return Gathered(
            self.run,
            self.item[these],
            self.cluster[these],
            self.detected[these],
            self.invariant[these],
            {name: values[these] for name, values in self.fields.items()},
        )


def gather(
    runs: Iterable[Run], fields: Sequence[str] = (), groups: Sequence[Grouping] = ()
) -> list[Gathered]:
    """The counted items of runs that judge error items or score-invariant ones, repeats of other
    items left out, with fields of outcomes and what items are grouped by, by name. One query for
    all, and none without such a run."""
    runs = list(runs)
    asked = counting.asked(runs)
    chosen = [run for run in runs if asked[run.pk].frame in FRAMES]
    if not chosen:
        return []
    said = ("run", "item", "cluster", "result", "share", "invariant")
    columns = (*said, *fields, *(one.of("item__") for one in groups))
    names = (*fields, *(one.name for one in groups))
    found = Outcome.objects.counted().main().filter(run__in=chosen).exclude(ability="")
    rows: dict[int, list[tuple[Any, ...]]] = {run.pk: [] for run in chosen}
    numbers: dict[str, int] = {}
    for pk, item, cluster, result, share, *rest in (
        found.order_by().values_list(*columns).iterator(chunk_size=AT_A_TIME)
    ):
        number = numbers.setdefault(cluster, len(numbers))
        rows[pk].append((item, number, _detected(result, share), *rest))
    return [_gathered(run, rows[run.pk], names) for run in chosen]


def generator(table: str, runs: Iterable[Run], *filters: Any) -> np.random.Generator:
    """Random numbers that follow from what is asked alone, so that every machine draws the same."""
    seed = int(digest([table, [run.digest for run in runs], *filters])[:32], 16)
    return np.random.Generator(np.random.PCG64(seed))


def _detected(result: str, share: float | None) -> float:
    if result == Outcome.Result.MISSING:
        return np.nan
    if share is not None:
        return share
    return float(result == Outcome.Result.DETECTED)


def _gathered(run: Run, rows: list[tuple[Any, ...]], names: Sequence[str]) -> Gathered:
    rows.sort(key=itemgetter(0))
    columns = list(zip(*rows, strict=True)) or [()] * (4 + len(names))
    item, cluster, detected, invariant, *rest = columns
    return Gathered(
        run,
        np.array(item, dtype=int),
        np.array(cluster, dtype=int),
        np.array(detected, dtype=float),
        np.array(invariant, dtype=bool),
        {name: np.array(one, dtype=object) for name, one in zip(names, rest, strict=True)},
    )
