"""What people and an evaluator give the same items, number by number (studies 002 and 003).

People's number is what the project holds true of the item by its rule for that field: of three
people the majority (003), or the median. Which runs see the gold answer is a matter of their
strategies, so that with and without gold are different runs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotation import tasktypes
from annotation.leads.grouping import Grouping
from annotation.models import Item, Project, Resolution, Revision
from judging.models import Outcome, Run
from judging.replies import deciding
from judging.results import aligning_metrics, counting, detecting, progress
from judging.results.aligning_metrics import FRAMES, Metric
from judging.results.detecting import Group
from judging.results.gathering import AT_A_TIME, READING, Bools, Floats, Ints
from stats.rouge import unicode_words

# A group that every item has: whether the answer that is expected is a short one.
ANSWER_LENGTH = "answer_length"
SHORT, LONG = "short", "long"
# Whether what was recorded off the scale is taken as it was given, or as missing.
KEPT, LEFT_OUT = "kept", "left out"
# What recorded runs keep in an outcome's values.
_OFF_SCALE = "off_scale"
_ARRAYS = ("key", "position", "cluster", "group", "people", "evaluator", "given", "cause")

Names = NDArray[np.object_]
# A number by the id of its item.
Said = dict[int, float]


@dataclass(frozen=True, eq=False)
class Aligned:
    """Both sides of one run and metric, an entry an item in the order of items, nan where missing.

    `evaluator` has what counts, `cause` why it is missing; `given` what was recorded off the
    scale. Clusters have numbers that all runs share; `group` is the place of an item's group in
    `groups`.
    """

    run: Run
    metric: Metric
    groups: tuple[Group, ...]
    key: Names
    position: Ints
    cluster: Ints
    group: Ints
    people: Floats
    evaluator: Floats
    given: Floats
    cause: Names

    @property
    def both(self) -> Bools:
        """Items that both sides gave a number."""
        there: Bools = ~np.isnan(self.people) & ~np.isnan(self.evaluator)
        return there

    def only(self, these: Bools) -> "Aligned":
        """Some of the items."""
        return replace(self, **{name: getattr(self, name)[these] for name in _ARRAYS})

    def ways(self) -> Iterator[tuple[str | None, "Aligned"]]:
        """The items; where something was recorded off the scale, both ways to take it."""
        there = ~np.isnan(self.given)
        if not there.any():
            yield None, self
            return
        yield KEPT, replace(self, evaluator=np.where(there, self.given, self.evaluator))
        yield LEFT_OUT, self

    def by_group(self) -> Iterator[tuple[Group, "Aligned"]]:
        """The items of each group, in the order of the groups' names."""
        for place in sorted(range(len(self.groups)), key=self.groups.__getitem__):
            part = self.only(self.group == place)
            if len(part.key):
                yield self.groups[place], part


class _Row(NamedTuple):
    """An outcome; `group` is what groups its item, without the length of its answer."""

    item: int
    key: str
    position: int
    cluster: str
    cause: str
    values: dict[str, Any]
    group: tuple[Any, ...]


class _Numbers(dict[Any, int]):
    """A number for each thing, as it comes up."""

    def __missing__(self, one: Any) -> int:
        self[one] = len(self)
        return self[one]


def gather(project: Project, runs: Iterable[Run], by: Sequence[str] = ()) -> list[Aligned]:
    """Every metric of every run that gives numbers, over the items that count and repeat no other.

    `by` names columns of items, fields of their own, or `answer_length`: short where the expected
    answer (the gold one, of several their mean; else the response) has at most the median number
    of words over all items of these runs, else long. A field of that name that items have of their
    own takes its place. A fixed number of queries. Raises `UnknownField`.
    """
    runs = list(runs)
    groupings = named(project, by)
    asked = counting.asked(runs)
    chosen = [run for run in runs if asked[run.pk].frame in FRAMES]
    if not chosen:
        return []
    rows = _rows(chosen, groupings)
    lengths = _lengths(chosen) if None in groupings else {}
    groups, clusters, task = _Numbers(), _Numbers(), tasktypes.of_project(project)
    places = {pk: _places(groupings, found, lengths, groups) for pk, found in rows.items()}
    metrics = {run.pk: aligning_metrics.of_strategy(asked[run.pk], task) for run in chosen}
    people = _people(project, chain.from_iterable(metrics.values()))
    return [
        Aligned(
            run=run,
            metric=metric,
            groups=tuple(groups),
            group=places[run.pk],
            **of_items,
            **_numbers(metric, rows[run.pk], apart, people[metric.parts]),
        )
        for run in chosen
        for of_items, apart in [(_of_items(rows[run.pk], clusters), _apart(rows[run.pk]))]
        for metric in metrics[run.pk]
    ]


def named(project: Project, by: Sequence[str]) -> list[Grouping | None]:
    """What items are grouped by, None for the length of the answer. Raises `UnknownField`."""
    items = Item.objects.in_project(project)
    own = ANSWER_LENGTH in by and items.filter(fields__has_key=ANSWER_LENGTH).exists()
    names = [name for name in by if own or name != ANSWER_LENGTH]
    found = {one.name: one for one in detecting.groupings(project, names)}
    return [found.get(name) for name in by]


def _rows(runs: Sequence[Run], named: Sequence[Grouping | None]) -> dict[int, list[_Row]]:
    """What counts of each run, by its id."""
    counted = Outcome.objects.counted().main().filter(item__duplicate_of=None)
    said = ("run", "item", "item__key", "item__position", "cluster", "cause", "values")
    columns = (*said, *(one.of("item__") for one in named if one))
    found: dict[int, list[_Row]] = {run.pk: [] for run in runs}
    ordered = counted.order_by("item__position").values_list(*columns)
    for some in progress.apart(runs, READING):
        for run, item, key, position, cluster, cause, values, *group in ordered.filter(
            run__in=some
        ).iterator(AT_A_TIME):
            found[run].append(_Row(item, key, position, cluster, cause, values, tuple(group)))
    return found


def _places(
    named: Sequence[Grouping | None],
    rows: Sequence[_Row],
    lengths: Mapping[int, str],
    groups: _Numbers,
) -> Ints:
    """The number of each item's group."""
    if not named:
        return np.full(len(rows), groups[()])
    return np.array([groups[_group(named, row, lengths)] for row in rows], dtype=int)


def _group(named: Sequence[Grouping | None], row: _Row, lengths: Mapping[int, str]) -> Group:
    fields = iter(row.group)
    return detecting.group_of(next(fields) if one else lengths[row.item] for one in named)


def _lengths(runs: Sequence[Run]) -> dict[int, str]:
    """Whether the answer that is expected of each item is short or long, by the item's id."""
    judged = Outcome.objects.filter(run__in=runs).values("revision")
    texts = Revision.objects.filter(pk__in=judged).order_by().values_list("item", "texts")
    words = {item: _words(one) for item, one in texts.iterator(AT_A_TIME)}
    middle = float(np.median(list(words.values()))) if words else 0.0
    return {item: SHORT if n <= middle else LONG for item, n in words.items()}


def _words(texts: Mapping[str, Any]) -> float:
    answer = texts.get("gold") or texts.get("response") or ""
    several = answer if isinstance(answer, list) else [answer]
    return sum(len(unicode_words(str(one))) for one in several) / len(several)


def _people(project: Project, metrics: Iterable[Metric]) -> dict[tuple[str, ...], Said]:
    """The number that people hold of each item, by the parts of what is scored."""
    current = Resolution.objects.current().of_project(project)
    held = dict(current.values_list("item", "values"))
    parted = {metric.parts: metric for metric in metrics}
    return {
        parts: {item: metric.of_people(values) for item, values in held.items()}
        for parts, metric in parted.items()
    }


def _of_items(rows: Sequence[_Row], clusters: _Numbers) -> dict[str, NDArray[Any]]:
    return {
        "key": np.array([row.key for row in rows], dtype=object),
        "position": np.array([row.position for row in rows], dtype=int),
        "cluster": np.array([clusters[row.cluster] for row in rows], dtype=int),
    }


def _apart(rows: Sequence[_Row]) -> list[tuple[int, _Row]]:
    """Those of which not all numbers are there, with their places."""
    names = {_OFF_SCALE, deciding.PARTS_MISSING}
    return [(place, row) for place, row in enumerate(rows) if not names.isdisjoint(row.values)]


def _numbers(
    metric: Metric, rows: Sequence[_Row], apart: Iterable[tuple[int, _Row]], people: Said
) -> dict[str, NDArray[Any]]:
    evaluator = np.array([metric.of_evaluator(row.values) for row in rows], dtype=float)
    given = np.full(len(rows), nan)
    cause = np.array([row.cause for row in rows], dtype=object)
    for place, row in apart:
        given[place], cause[place] = _given(metric, row.values), _cause(metric, row)
    return {
        "people": np.array([people.get(row.item, nan) for row in rows], dtype=float),
        "evaluator": evaluator,
        "given": np.where(np.isnan(evaluator), given, nan),
        "cause": cause,
    }


def _given(metric: Metric, values: Mapping[str, Any]) -> float:
    """What was recorded off the scale, if by one reply: of repeats those on it make the mean."""
    off_scale = values.get(_OFF_SCALE, [])
    if len(off_scale) != 1:
        return nan
    return metric.of_given(off_scale[0]["said"])


def _cause(metric: Metric, row: _Row) -> str:
    """Why there is no number; a total says so of the first of its parts."""
    causes = row.values.get(deciding.PARTS_MISSING, {})
    return next((causes[part] for part in metric.parts if part in causes), row.cause)
