"""The leads' reports as tables of rows. The pages, the API, the files and the command line share
them.

Shares are fractions of 1, times are in seconds, and days are in UTC. Unknown values are None.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.db.models import Count, Q
from django.db.models.fields.json import KeyTextTransform
from django.utils import timezone

from annotation.db.cache import computing, process_cache
from annotation.db.counting import Day, count_by_keys
from annotation.labelling import resolution
from annotation.models import Label, Project, Resolution, Stage
from annotation.reports import category_board, grouping, pace
from annotation.reports.category_board import DEFAULT_THRESHOLD, BoardRow
from annotation.reports.grouping import Grouping
from annotation.reports.label_times import key_as_text
from annotation.reports.pace import GroupPace, Pace, PersonPace
from annotation.tasktypes import main_field
from annotation.tasktypes.main_field import MainField
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

T = TypeVar("T")

SLOW_SECONDS = 1.0
KEEP_SECONDS = 60


@dataclass(frozen=True)
class CachedFigures(Generic[T]):
    """Figures and the time when they were computed; `again` is True if they come from the cache."""

    value: T
    at: datetime
    again: bool = False


def get_or_compute(
    key: str, make: Callable[[], T], *, now: datetime, worth: float = SLOW_SECONDS
) -> CachedFigures[T]:
    """Return the result of `make`. It is cached for a minute if it took at least `worth` seconds.

    Faster results are never cached, so that small projects show every new label at once.
    """
    kept: CachedFigures[T] | None = process_cache.get(key)
    if kept is None:
        with computing:
            kept = process_cache.get(key)
            if kept is None:
                begun = time.perf_counter()
                fresh = CachedFigures(make(), now)
                if time.perf_counter() - begun >= worth:
                    process_cache.set(key, fresh, KEEP_SECONDS)
                return fresh
    return CachedFigures(kept.value, kept.at, again=True)


@dataclass(frozen=True)
class ChoiceCount:
    """The number of labels on a day that chose an answer."""

    day: date
    value: str
    title: str
    n: int


@dataclass(frozen=True)
class DropAnswer:
    """An answer that drops items from the final set, and the reasons given for it.

    `n` counts resolved items; the counts of the reasons are numbers of labels.
    """

    value: str
    title: str
    n: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class DroppedItems:
    """The share of the resolved items that are not in the final set, and the answers that led to
    this."""

    resolved: int
    dropped: int
    share: Estimate
    drops: tuple[DropAnswer, ...]


def count_choices(project: Project) -> tuple[ChoiceCount, ...]:
    """Count the current labels of the stage label, by day (UTC) and answer, oldest first; without
    those of excluded, qualification and control items."""
    decides = main_field.load_main_field(project)
    labels = Label.objects.in_project(project).in_data_set().current().at_stage(Stage.LABEL)
    rows = count_by_keys(labels, day=Day("created_at"), said=decides.of_label())
    order = {value: place for place, (value, _) in enumerate(decides.options)}
    found = [
        ChoiceCount(date.fromisoformat(row["day"]), value, decides.title(value), row["n"])
        for row in rows
        if (value := key_as_text(row["said"]))
    ]
    return tuple(sorted(found, key=lambda one: (one.day, order.get(one.value, 99), one.value)))


def measure_dropped(project: Project) -> DroppedItems:
    """Count the resolved items that are not in the final set: they were excluded with a reason, or
    their final label drops them.

    The reasons are taken from counted labels with such an answer, including labels of items that
    are not resolved yet. So an item may have several reasons, or none.
    """
    decides = main_field.load_main_field(project)
    found = Resolution.objects.in_data_set().of_project(project)
    out = _dropped_filter(decides)
    rows = found.order_by().values("item__cluster")
    clusters = rows.annotate(n=Count("pk"), y=Count("pk", filter=out)).values_list("n", "y")
    share = clustered_wilson(sum_clusters(clusters))
    counts: dict[str, int] = defaultdict(int)
    for row in count_by_keys(found.filter(out), said=decides.of_resolution()):
        counts[key_as_text(row["said"])] += row["n"]
    reasons = _count_reasons(project, decides)
    named = {value for value in reasons if decides.drops(value)} | set(counts)
    drops = (
        DropAnswer(
            value, decides.title(value), counts[value], tuple(reasons.get(value, {}).items())
        )
        for value in sorted(named, key=lambda value: (-counts[value], value))
    )
    return DroppedItems(share.n, sum(counts.values()), share, tuple(drops))


def _dropped_filter(decides: MainField) -> Q:
    """Return a filter for the resolutions of items that are not in the final set."""
    excluded = Q(rule=resolution.EXCLUDED)
    return excluded if decides.kept is None else excluded | ~Q(value__in=decides.kept)


def _count_reasons(project: Project, decides: MainField) -> dict[str, dict[str, int]]:
    """Count the reasons given in counted labels, by answer: titles of reasons with numbers of
    labels."""
    labels = Label.objects.in_project(project).in_data_set().counted().at_stage(Stage.LABEL)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, titles in main_field.reason_fields(project):
        said: dict[str, Any] = {"reason": KeyTextTransform(name, "answers")}
        rows = count_by_keys(labels.answering(name), said=decides.of_label(), **said)
        for row in sorted(rows, key=lambda row: -row["n"]):
            reason = key_as_text(row["reason"])
            found[key_as_text(row["said"])][titles.get(reason, reason)] = row["n"]
    return found


@dataclass(frozen=True)
class ProgressReport:
    """The content of the page of progress and pace."""

    pace: Pace
    chosen: tuple[ChoiceCount, ...]
    dropped: DroppedItems


def load_progress(
    project: Project, *, by: Grouping, now: datetime
) -> CachedFigures[ProgressReport]:
    """Load progress and pace, choices by day, and dropped items."""

    def make() -> ProgressReport:
        measured = pace.measure_pace(project, by=by, now=now)
        return ProgressReport(
            measured,
            count_choices(project),
            measure_dropped(project),
        )

    return get_or_compute(f"pace:{project.pk}:{by.name}", make, now=now)


def load_board(
    project: Project, *, by: Grouping, value: str, bar: float, now: datetime
) -> CachedFigures[list[BoardRow]]:
    """Load the rows of the category board."""
    return get_or_compute(
        f"board:{project.pk}:{by.name}:{value}:{bar}",
        lambda: category_board.measure_board(project, by=by, value=value, bar=bar),
        now=now,
    )


# The columns of the tables in files and in the API, and how each is read from what a row is about.
# Times are in seconds and leave out labels that took over half an hour; `over_30_minutes` counts
# these labels.
PACE: Mapping[str, Callable[[PersonPace], Any]] = {
    "annotator": attrgetter("alias"),
    "labels": attrgetter("labels"),
    "recent": attrgetter("recent"),
    "a_day": attrgetter("a_day"),
    "last_day": attrgetter("last"),
    "seconds_median": attrgetter("seconds.median"),
    "seconds_low": attrgetter("seconds.low"),
    "seconds_high": attrgetter("seconds.high"),
    "timed": attrgetter("seconds.n"),
    "over_30_minutes": attrgetter("seconds.beyond"),
}
# If there is no forecast, `reason` says why.
FORECAST: Mapping[str, Callable[[GroupPace], Any]] = {
    "group": attrgetter("name"),
    "items": attrgetter("items"),
    "places": attrgetter("places"),
    "filled": attrgetter("filled"),
    "left": attrgetter("forecast.left"),
    "a_day": attrgetter("forecast.a_day"),
    "ends": attrgetter("forecast.ends"),
    "earliest": attrgetter("forecast.earliest"),
    "latest": attrgetter("forecast.latest"),
    "reason": lambda group: group.forecast.days.reason or None,
    "seconds_median": attrgetter("seconds.median"),
    "seconds_low": attrgetter("seconds.low"),
    "seconds_high": attrgetter("seconds.high"),
    "over_30_minutes": attrgetter("seconds.beyond"),
}
CHOICES: Mapping[str, Callable[[ChoiceCount], Any]] = {
    "day": attrgetter("day"),
    "choice": attrgetter("value"),
    "labels": attrgetter("n"),
}
DROPPED_COLUMNS = ("held_for", "items", "share", "reason", "labels")


def to_rows(
    columns: Mapping[str, Callable[[T], Any]], found: Iterable[T]
) -> Iterator[dict[str, Any]]:
    """Read a row of these columns from each of `found`."""
    for one in found:
        yield {name: read(one) for name, read in columns.items()}


def pace_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """Return the table `pace`: each person's labels, pace and labelling times."""
    return to_rows(PACE, _measure_pace(project, by).people)


def forecast_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """Return the table `forecast`: labels left and end date for each group. The first row is about
    all items."""
    measured = _measure_pace(project, by)
    return to_rows(FORECAST, (measured.whole, *measured.groups))


def choices_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """Return the table `choices`: labels by day and answer."""
    return to_rows(CHOICES, _progress(project, by).chosen)


def dropped_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """Return the table `dropped`: resolved items that are not in the final set, by final label,
    with the reasons given in labels."""
    return dropped_rows(_progress(project, by).dropped)


def board_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """Return the table `board`: share valid and other figures of each group, with uncertainty."""
    kept = load_board(project, by=by, value="", bar=DEFAULT_THRESHOLD, now=timezone.now())
    return to_rows(category_board.IN_FILES, kept.value)


def dropped_rows(found: DroppedItems) -> Iterator[dict[str, Any]]:
    """Return a row for each final label that drops items, followed by a row for each reason
    given."""
    for drop in found.drops:
        share = drop.n / found.resolved
        yield dict(zip(DROPPED_COLUMNS, (drop.value, drop.n, share, None, None), strict=True))
        for reason, labels in drop.reasons:
            yield dict(zip(DROPPED_COLUMNS, (drop.value, None, None, reason, labels), strict=True))


def _progress(project: Project, by: Grouping) -> ProgressReport:
    return load_progress(project, by=by, now=timezone.now()).value


def _measure_pace(project: Project, by: Grouping) -> Pace:
    """The pace alone: what else the page of progress counts takes several times as long."""
    now = timezone.now()
    key = f"pace-alone:{project.pk}:{by.name}"
    return get_or_compute(key, lambda: pace.measure_pace(project, by=by, now=now), now=now).value


def find_grouping(project: Project, names: list[str]) -> Grouping:
    """Return the grouping for a table: the last of the names that exists in the project."""
    known = {one.name: one for one in grouping.list_groupings(project)}
    fit = [known[name] for name in names if name in known]
    return fit[-1] if fit else next(iter(known.values()))
