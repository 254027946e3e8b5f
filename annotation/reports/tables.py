"""The leads' reports as tables of rows: the same for pages, API, files and command line.

Shares are fractions of 1, times are in seconds, days are UTC; None where a value is unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotation.models import Project
from annotation.reports import cache, category_board, choices_over_time, grouping, pace
from annotation.reports.cache import CachedFigures
from annotation.reports.category_board import DEFAULT_THRESHOLD, BoardRow
from annotation.reports.choices_over_time import ChoiceCount, DroppedItems
from annotation.reports.grouping import Grouping
from annotation.reports.pace import GroupPace, Pace, PersonPace
from stats.estimates import Estimate


@dataclass(frozen=True)
class ProgressReport:
    """The content of the page of progress and pace."""

    pace: Pace
    chosen: tuple[ChoiceCount, ...]
    dropped: DroppedItems


def load_progress(
    project: Project, *, by: Grouping, now: datetime
) -> CachedFigures[ProgressReport]:
    """Progress and pace, choices by day and dropped items."""

    def make() -> ProgressReport:
        measured = pace.measure_pace(project, by=by, now=now)
        return ProgressReport(
            measured,
            choices_over_time.count_choices(project),
            choices_over_time.measure_dropped(project),
        )

    return cache.get_or_compute(f"pace:{project.pk}:{by.name}", make, now=now)


def load_board(
    project: Project, *, by: Grouping, value: str, bar: float, now: datetime
) -> CachedFigures[list[BoardRow]]:
    """The rows of the category board."""
    return cache.get_or_compute(
        f"board:{project.pk}:{by.name}:{value}:{bar}",
        lambda: category_board.measure_board(project, by=by, value=value, bar=bar),
        now=now,
    )


def pace_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """The table `pace`: each person's labels, pace and labelling times."""
    for person in _progress(project, by).pace.people:
        yield person_row(person)


def forecast_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """The table `forecast`: labels left and end date for each group; all items first."""
    measured = _progress(project, by).pace
    for group in (measured.whole, *measured.groups):
        yield group_row(group)


def choices_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """The table `choices`: labels by day and answer."""
    for one in _progress(project, by).chosen:
        yield choice_row(one)


def dropped_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """The table `dropped`: resolved items that leave the final set, by final label, and the reasons
    given in labels."""
    yield from dropped_rows(_progress(project, by).dropped)


def board_table(project: Project, by: Grouping) -> Iterator[dict[str, Any]]:
    """The table `board`: share valid and other figures of each group, with uncertainty."""
    kept = load_board(project, by=by, value="", bar=DEFAULT_THRESHOLD, now=timezone.now())
    for row in kept.value:
        yield board_row(row)


def person_row(person: PersonPace) -> dict[str, Any]:
    return {
        "annotator": person.alias,
        "labels": person.labels,
        "recent": person.recent,
        "a_day": person.a_day,
        "last_day": person.last,
        "seconds_median": person.seconds.median,
        "seconds_low": person.seconds.low,
        "seconds_high": person.seconds.high,
        "timed": person.seconds.n,
        "over_30_minutes": person.seconds.beyond,
    }


def group_row(group: GroupPace) -> dict[str, Any]:
    return {
        "group": group.name,
        "items": group.items,
        "places": group.places,
        "filled": group.filled,
        "left": group.forecast.left,
        "a_day": group.forecast.a_day,
        "ends": group.forecast.ends,
        "earliest": group.forecast.earliest,
        "latest": group.forecast.latest,
        "reason": group.forecast.days.reason or None,
        "seconds_median": group.seconds.median,
        "seconds_low": group.seconds.low,
        "seconds_high": group.seconds.high,
        "over_30_minutes": group.seconds.beyond,
    }


def choice_row(one: ChoiceCount) -> dict[str, Any]:
    return {"day": one.day, "choice": one.value, "labels": one.n}


def dropped_rows(found: DroppedItems) -> Iterator[dict[str, Any]]:
    """A row for each final label that drops items, followed by one for each reason given."""
    for drop in found.drops:
        share = drop.n / found.resolved
        yield dict(zip(DROPPED_COLUMNS, (drop.value, drop.n, share, None, None), strict=True))
        for reason, labels in drop.reasons:
            yield dict(zip(DROPPED_COLUMNS, (drop.value, None, None, reason, labels), strict=True))


def board_row(row: BoardRow) -> dict[str, Any]:
    return {
        "group": row.name,
        "items": row.items,
        "resolved": row.resolved,
        "share_of": row.answer,
        **_estimate("share", row.share),
        **_estimate("corrected", row.corrected),
        **_estimate("surgicality", row.surgicality),
        "surgicality_items": row.surgicality.n,
        "alpha": row.alpha.value,
        "alpha_items": row.alpha.n,
        "seconds_median": row.seconds.median,
        **_estimate("detectability", row.detectability),
        "detectability_items": row.detectability.n,
        "more": row.more,
        "reasons": dict(row.reasons),
    }


def _estimate(name: str, estimate: Estimate) -> dict[str, Any]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _progress(project: Project, by: Grouping) -> ProgressReport:
    return load_progress(project, by=by, now=timezone.now()).value


def find_grouping(project: Project, names: list[str]) -> Grouping:
    """The grouping for a table: the last of the names that exists in the project."""
    known = {one.name: one for one in grouping.list_groupings(project)}
    fit = [known[name] for name in names if name in known]
    return fit[-1] if fit else next(iter(known.values()))


PACE_COLUMNS = (
    "annotator", "labels", "recent", "a_day", "last_day", "seconds_median", "seconds_low",
    "seconds_high", "timed", "over_30_minutes",
)  # fmt: skip
FORECAST_COLUMNS = (
    "group", "items", "places", "filled", "left", "a_day", "ends", "earliest", "latest", "reason",
    "seconds_median", "seconds_low", "seconds_high", "over_30_minutes",
)  # fmt: skip
CHOICES_COLUMNS = ("day", "choice", "labels")
DROPPED_COLUMNS = ("held_for", "items", "share", "reason", "labels")
BOARD_COLUMNS = (
    "group", "items", "resolved", "share_of", "share", "share_low", "share_high", "corrected",
    "corrected_low", "corrected_high", "surgicality", "surgicality_low", "surgicality_high",
    "surgicality_items", "alpha", "alpha_items", "seconds_median", "detectability",
    "detectability_low", "detectability_high", "detectability_items", "more", "reasons",
)  # fmt: skip
