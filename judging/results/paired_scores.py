"""Scores of people and of an evaluator on the same items (studies 002 and 003).

People's score is the final value of the item by the project's rule for that field: with three
people the majority (003) or the median. The strategy decides whether an evaluator sees the gold
answer, so each run judges either with or without gold.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import nan
from operator import itemgetter
from typing import Any

import numpy as np
from django.db.models import Q, TextField
from django.db.models.functions import Cast
from numpy.typing import NDArray

from annotation import tasktypes
from annotation.models import (
    Item,
    Label,
    Project,
    Resolution,
    Revision,
    Stage,
    TaskTypeVersion,
)
from annotation.reports.grouping import Grouping
from judging.models import Outcome, Run
from judging.results import counted, detectors, metric_scales, progress
from judging.results.arrays import (
    AT_A_TIME,
    READING_STEP,
    TEXTS_AT_A_TIME,
    Bools,
    Floats,
    Ints,
)
from judging.results.detectors import GroupKey
from judging.results.metric_scales import SCORING_FRAMES, ScoredMetric
from judging.runs.models import OutcomeQuerySet
from judging.strategies.replies import item_decisions
from stats.rouge import unicode_words

# A grouping that always exists: whether the expected answer is short or long.
ANSWER_LENGTH = "answer_length"
SHORT, LONG = "short", "long"
# Whether recorded numbers off the scale are used as given, or count as missing.
KEPT, LEFT_OUT = "kept", "left out"
# A key in the values of outcomes of recorded runs.
_OFF_SCALE = "off_scale"
_ARRAYS = ("key", "position", "cluster", "group", "people", "evaluator", "given", "cause")

Objects = NDArray[np.object_]
# As JSON text, so that equal values are parsed only once.
_AS_TEXT = Cast("values", TextField())


@dataclass(frozen=True, eq=False)
class PairedScores:
    """Both sides of one run and metric; one entry per item, sorted by item, nan where missing.

    `evaluator` has the numbers that count, `cause` the reason for a missing one, `given` recorded
    numbers off the scale. Cluster numbers are shared by all runs; `group` is the index of an item's
    group in `groups`.
    """

    run: Run
    metric: ScoredMetric
    groups: tuple[GroupKey, ...]
    key: Objects
    position: Ints
    cluster: Ints
    group: Ints
    people: Floats
    evaluator: Floats
    given: Floats
    cause: Objects

    @property
    def both(self) -> Bools:
        """Items with a number from both sides."""
        there: Bools = ~np.isnan(self.people) & ~np.isnan(self.evaluator)
        return there

    def only(self, these: Bools | Ints) -> "PairedScores":
        """The items selected by a mask, or by their places in order."""
        return replace(self, **{name: getattr(self, name)[these] for name in _ARRAYS})

    def ways(self) -> Iterator[tuple[str | None, "PairedScores"]]:
        """Return the items once. If recorded numbers are off the scale, return them twice: with
        these numbers kept, and with them left out."""
        there = ~np.isnan(self.given)
        if not there.any():
            yield None, self
            return
        yield KEPT, replace(self, evaluator=np.where(there, self.given, self.evaluator))
        yield LEFT_OUT, self

    def by_group(self) -> Iterator[tuple[GroupKey, "PairedScores"]]:
        """The items of each group, sorted by the names of the groups."""
        # Sorted once: a mask for each group would look at all items as often as there are groups.
        order = np.argsort(self.group, kind="stable")
        ends = np.cumsum(np.bincount(self.group, minlength=len(self.groups)))
        of_group = np.split(order, ends[:-1])
        for place in sorted(range(len(self.groups)), key=self.groups.__getitem__):
            if len(of_group[place]):
                yield self.groups[place], self.only(of_group[place])


@dataclass(frozen=True, eq=False)
class _RunOutcomes:
    """The counted outcomes of a run; one entry per item, sorted by item.

    `said` holds each distinct dict of values once, and `which` has the index into `said` for each
    item: a scale has few numbers, and a million outcomes repeat them. `grouped` has one sequence
    per grouping of items, except for the length of their answers.
    """

    item: Ints
    key: Objects
    position: Ints
    cluster: Sequence[str]
    cause: Objects
    said: Sequence[Mapping[str, Any]]
    which: Ints
    grouped: Sequence[Sequence[Any]]


@dataclass(frozen=True, eq=False)
class _PeopleScores:
    """People's numbers on these items, in order, by the parts of each metric."""

    item: Ints
    numbers: Mapping[tuple[str, ...], Floats]

    def numbers_of(self, metric: ScoredMetric, items: Ints) -> Floats:
        """People's number for each of the items, nan without one."""
        if not len(self.item):
            return np.full(len(items), nan)
        place = np.searchsorted(self.item, items).clip(max=len(self.item) - 1)
        there = self.item[place] == items
        numbers: Floats = np.where(there, self.numbers[metric.parts][place], nan)
        return numbers


class _Numbering(dict[Any, int]):
    """Gives each thing a number, in the order of their first lookup."""

    def __missing__(self, one: Any) -> int:
        self[one] = len(self)
        return self[one]


def load_paired_scores(
    project: Project, runs: Iterable[Run], by: Sequence[str] = ()
) -> list[PairedScores]:
    """Every metric of every run that gives numbers, over the items that count, without duplicates.

    `by` names columns of items, own fields, or `answer_length`. The group `answer_length` is short
    if the expected answer has at most the median number of words over all these items, else long.
    With several gold answers, the mean length counts; without gold, the response. An own field
    named `answer_length` replaces it. Makes a fixed number of queries. Raises `UnknownField`.
    """
    runs = list(runs)
    groupings = check_groupings(project, by)
    asked = counted.load_strategies(runs)
    chosen = [run for run in runs if asked[run.pk].frame in SCORING_FRAMES]
    if not chosen:
        return []
    read = _load_outcomes(chosen, groupings)
    lengths = _classify_lengths(chosen) if None in groupings else {}
    groups, clusters, task = _Numbering(), _Numbering(), tasktypes.load_task_type(project)
    places = {pk: _group_numbers(groupings, one, lengths, groups) for pk, one in read.items()}
    cluster = {run.pk: _to_numbers(read[run.pk].cluster, clusters) for run in chosen}
    given = _load_given_task_types(project)
    metrics = {run.pk: metric_scales.rated_metrics(asked[run.pk], task, given) for run in chosen}
    people = _load_people(project, chain.from_iterable(metrics.values()))
    return [
        PairedScores(
            run=run,
            metric=metric,
            groups=tuple(groups),
            key=read[run.pk].key,
            position=read[run.pk].position,
            cluster=cluster[run.pk],
            group=places[run.pk],
            people=people.numbers_of(metric, read[run.pk].item),
            **_evaluator_arrays(metric, read[run.pk]),
        )
        for run in chosen
        for metric in metrics[run.pk]
    ]


def _load_given_task_types(project: Project) -> list[tasktypes.TaskType]:
    """The versions of the task type that people's labels were given under, or final labels imported
    under; their scales may differ from those of today."""
    labels = Label.objects.in_project(project).in_data_set().counted()
    labels = labels.at_stages([Stage.LABEL, Stage.ADJUDICATE]).order_by()
    held = Resolution.objects.in_data_set().of_project(project).order_by()
    given = Q(pk__in=labels.values("task_type").distinct())
    given |= Q(pk__in=held.exclude(task_type=None).values("task_type").distinct())
    found = TaskTypeVersion.objects.filter(given)
    return [tasktypes.load_version(one) for one in found.order_by("pk")]


def check_groupings(project: Project, by: Sequence[str]) -> list[Grouping | None]:
    """The groupings of items, None for the length of the answer. Raises `UnknownField`."""
    items = Item.objects.in_project(project)
    own = ANSWER_LENGTH in by and items.filter(fields__has_key=ANSWER_LENGTH).exists()
    names = [name for name in by if own or name != ANSWER_LENGTH]
    found = {one.name: one for one in detectors.check_groupings(project, names)}
    return [found.get(name) for name in by]


BY_ITEM_FIELDS_AND_LENGTH = counted.GroupBy(
    f"{detectors.ANY_FIELD}, {ANSWER_LENGTH} (short or long, split at the median number of words "
    "of the expected answer), or empty",
    check_groupings,
)


def _counted_outcomes() -> OutcomeQuerySet:
    return Outcome.objects.counted().main().originals()


def _load_outcomes(
    runs: Sequence[Run], named: Sequence[Grouping | None]
) -> dict[int, _RunOutcomes]:
    """The counted outcomes of each run, by run id."""
    said = ("run", "item__position", "item", "item__key", "cluster", "cause", _AS_TEXT)
    columns = (*said, *(one.expression("item__") for one in named if one))
    # Sort here, since the database would sort whole rows.
    rows = _counted_outcomes().order_by().values_list(*columns)
    found: dict[int, _RunOutcomes] = {}
    for some in progress.split_if_watched(runs, READING_STEP):
        by_run: dict[int, list[tuple[Any, ...]]] = {run.pk: [] for run in some}
        for row in rows.filter(run__in=some).iterator(AT_A_TIME):
            by_run[row[0]].append(row)
        found |= {pk: _to_columns(of_run, len(columns)) for pk, of_run in by_run.items()}
    return found


def _to_columns(rows: list[tuple[Any, ...]], width: int) -> _RunOutcomes:
    rows.sort(key=itemgetter(1))
    _, position, item, key, cluster, cause, values, *grouped = (
        zip(*rows, strict=True) if rows else [()] * width
    )
    said = _Numbering()
    return _RunOutcomes(
        which=_to_numbers(values, said),
        said=[json.loads(text) for text in said],
        item=np.array(item, dtype=int),
        key=np.array(key, dtype=object),
        position=np.array(position, dtype=int),
        cluster=cluster,
        cause=np.array(cause, dtype=object),
        grouped=grouped,
    )


def _to_numbers(names: Iterable[Any], numbers: _Numbering) -> Ints:
    return np.array([numbers[name] for name in names], dtype=int)


def _group_numbers(
    named: Sequence[Grouping | None],
    read: _RunOutcomes,
    lengths: Mapping[int, str],
    groups: _Numbering,
) -> Ints:
    """The number of each item's group."""
    if not named:
        return np.full(len(read.item), groups[()])
    fields = iter(read.grouped)
    parts = [
        next(fields) if one else [lengths[item] for item in read.item.tolist()] for one in named
    ]
    alike = _Numbering()
    which = _to_numbers(zip(*parts, strict=True), alike)
    return _to_numbers(map(detectors.make_group_key, alike), groups)[which]


def _classify_lengths(runs: Sequence[Run]) -> dict[int, str]:
    """Find out by item id whether the expected answer is short or long."""
    judged = _counted_outcomes().filter(run__in=runs).order_by().values("revision")
    texts = Revision.objects.filter(pk__in=judged).order_by().values_list("item", "texts")
    words = {item: mean_words(one) for item, one in texts.iterator(TEXTS_AT_A_TIME)}
    middle = float(np.median(list(words.values()))) if words else 0.0
    return {item: SHORT if n <= middle else LONG for item, n in words.items()}


def mean_words(texts: Mapping[str, Any]) -> float:
    """The number of words of the expected answer, as a mean over several; of the response without
    one."""
    answer = texts.get("gold") or texts.get("response") or ""
    several = answer if isinstance(answer, list) else [answer]
    return sum(len(unicode_words(str(one))) for one in several) / len(several)


def _load_people(project: Project, metrics: Iterable[ScoredMetric]) -> _PeopleScores:
    """People's final numbers for each item."""
    current = Resolution.objects.current().of_project(project).order_by()
    rows = sorted(current.values_list("item", _AS_TEXT).iterator(AT_A_TIME))
    said = _Numbering()
    which = _to_numbers((text for _, text in rows), said)
    held = [json.loads(text) for text in said]
    return _PeopleScores(
        np.array([item for item, _ in rows], dtype=int),
        {
            metric.parts: np.array([metric.of_people(values) for values in held])[which]
            for metric in metrics
            if held
        },
    )


def _evaluator_arrays(metric: ScoredMetric, read: _RunOutcomes) -> dict[str, NDArray[Any]]:
    """The evaluator's number for each item, the off-scale numbers, and the causes of missing
    numbers."""
    given = np.array([_off_scale_number(metric, values) for values in read.said])[read.which]
    evaluator = np.array([metric.of_evaluator(values) for values in read.said])[read.which]
    causes = np.array([_cause(metric, values) for values in read.said], dtype=object)[read.which]
    return {
        "evaluator": evaluator,
        "given": np.where(np.isnan(evaluator), given, nan),
        "cause": np.where(causes == "", read.cause, causes),
    }


def _off_scale_number(metric: ScoredMetric, values: Mapping[str, Any]) -> float:
    """Return a recorded number off the scale if it comes from a single reply. With several replies,
    the mean of the numbers on the scale counts instead."""
    off_scale = values.get(_OFF_SCALE, [])
    if len(off_scale) != 1:
        return nan
    return metric.of_given(off_scale[0]["said"])


def _cause(metric: ScoredMetric, values: Mapping[str, Any]) -> str:
    """Return the cause of a missing number if the causes differ between parts. A total has the
    cause of its first missing part."""
    causes = values.get(item_decisions.MISSING_KEY, {})
    return next((causes[part] for part in metric.parts if part in causes), "")
