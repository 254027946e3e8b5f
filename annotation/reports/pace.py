"""Labelling pace for leads: how fast the work is done, by whom, and when it will be finished.

Annotators are credited with all their current labels of the stage label. The forecast uses only
labels that fill a slot, since extra labels do not bring an item closer to completion. Days are in
UTC. The database does all the counting in a fixed number of queries, and no texts are read.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import F

from annotation.db.counting import Day, count_by_keys
from annotation.labelling.models.labels import LabelQuerySet
from annotation.models import Item, Label, Membership, Project, Slot, Stage
from annotation.reports import label_times
from annotation.reports.grouping import Grouping
from annotation.reports.label_times import Times, key_as_text
from stats.estimates import Estimate
from stats.forecast import days_left
from stats.spread import Quartiles

# The pace is computed from up to this many full days before today.
WINDOW_DAYS = 14


@dataclass(frozen=True)
class Forecast:
    """The number of labels that are left, and when they will be done at the pace of the last days.

    `ends`, `earliest` and `latest` are None if `days` (stats.forecast.days_left) has no such value.
    """

    left: int
    a_day: float | None
    days: Estimate
    ends: date | None
    earliest: date | None
    latest: date | None


@dataclass(frozen=True)
class PersonPace:
    """The work of one member. `a_day` is the mean over the last full days; None if there are no
    full days."""

    alias: str
    labels: int
    recent: int
    a_day: float | None
    last: date | None
    seconds: Quartiles


@dataclass(frozen=True)
class GroupPace:
    """A group of items: the number of label slots, how many are filled, and when all will be
    filled."""

    name: str
    title: str
    items: int
    places: int
    filled: int
    forecast: Forecast
    seconds: Quartiles


@dataclass(frozen=True)
class Pace:
    """The pace of a project. `done` has the labels by day; `window` has the days that the pace is
    computed from.

    `waiting` has the number of open slots at the stages after labelling, by stage.
    """

    today: date
    window: tuple[date, ...]
    whole: GroupPace
    people: tuple[PersonPace, ...]
    groups: tuple[GroupPace, ...]
    done: tuple[tuple[date, int], ...]
    waiting: dict[str, int]


def measure_pace(project: Project, *, by: Grouping, now: datetime) -> Pace:
    """Measure the pace of a project, by person and by group, in eight queries."""
    labels = Label.objects.current().at_stage(Stage.LABEL).in_project(project)
    today = now.date()
    rows = count_by_keys(
        labels, alias=F("member__alias"), day=Day("created_at"), fills=F("counted")
    )
    done = _sums([row for row in rows if row["fills"]], "day")
    window = _window((date.fromisoformat(day) for day in done), today)
    live = labels.in_data_set()
    seconds = label_times.count_times(live, by.expression("item__"))
    groups = _groups(
        project, by, _recent_labels(labels.counted(), by, window), seconds, window, today
    )
    return Pace(
        today=today,
        window=window,
        whole=_total_pace(groups, seconds, done, window, today),
        people=_people(project, labels, rows, window),
        groups=groups,
        done=tuple((date.fromisoformat(day), n) for day, n in sorted(done.items())),
        waiting=_count_waiting_slots(project),
    )


def forecast_end(
    left: int, counts: Mapping[str, int], window: tuple[date, ...], today: date
) -> Forecast:
    """Forecast the end for `left` labels, from the numbers of labels on the days of the window."""
    daily = [counts.get(day.isoformat(), 0) for day in window]
    days = days_left(daily, left)

    def on(number: float | None) -> date | None:
        return None if number is None else today + timedelta(days=int(number))

    a_day = sum(daily) / len(daily) if daily else None
    return Forecast(left, a_day, days, on(days.value), on(days.low), on(days.high))


def _window(days: Iterable[date], today: date) -> tuple[date, ...]:
    """Return the last full days, from the first label on; today is left out, since it is not
    over."""
    first = max(min(days, default=today), today - timedelta(days=WINDOW_DAYS))
    return tuple(first + timedelta(days=n) for n in range((today - first).days))


def _sums(rows: Iterable[Mapping[str, Any]], key: str) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for row in rows:
        found[key_as_text(row[key])] += row["n"]
    return found


def _people(
    project: Project, labels: LabelQuerySet, rows: list[dict[str, Any]], window: tuple[date, ...]
) -> tuple[PersonPace, ...]:
    """Return all members with labels, and all active members who may label."""
    by_person: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        by_person[row["alias"]][row["day"]] += row["n"]
    seconds = label_times.count_times(labels, F("member__alias"))
    members = Membership.objects.in_project(project).order_by("alias")
    shown = [one for one in members if one.alias in by_person or one.can("label")]
    recent = {day.isoformat() for day in window}
    return tuple(
        _person(one.alias, by_person[one.alias], seconds[one.alias], recent) for one in shown
    )


def _person(alias: str, days: Mapping[str, int], seconds: Times, recent: set[str]) -> PersonPace:
    lately = sum(n for day, n in days.items() if day in recent)
    return PersonPace(
        alias=alias,
        labels=sum(days.values()),
        recent=lately,
        a_day=lately / len(recent) if recent else None,
        last=date.fromisoformat(max(days)) if days else None,
        seconds=label_times.measure_spread(seconds),
    )


def _groups(
    project: Project,
    by: Grouping,
    lately: Mapping[str, Mapping[str, int]],
    seconds: Mapping[str, Times],
    window: tuple[date, ...],
    today: date,
) -> tuple[GroupPace, ...]:
    tests = Item.objects.in_project(project).originals().of_tests()
    items = _sums(count_by_keys(tests, group=by.expression()), "group")
    slots = Slot.objects.in_project(project.pk).at_stage(Stage.LABEL).in_data_set()
    places = count_by_keys(slots.not_closed(), group=by.expression("item__"), now=F("state"))
    every = _sums(places, "group")
    filled = _sums([row for row in places if row["now"] == Slot.State.FILLED], "group")

    def group(name: str) -> GroupPace:
        left = every.get(name, 0) - filled.get(name, 0)
        return GroupPace(
            name=name,
            title=by.title_of(name),
            items=items[name],
            places=every.get(name, 0),
            filled=filled.get(name, 0),
            forecast=forecast_end(left, lately.get(name, {}), window, today),
            seconds=label_times.measure_spread(seconds.get(name, {})),
        )

    return tuple(group(name) for name in sorted(items, key=by.place_of))


def _total_pace(
    groups: tuple[GroupPace, ...],
    seconds: Mapping[str, Times],
    done: Mapping[str, int],
    window: tuple[date, ...],
    today: date,
) -> GroupPace:
    places, filled = (sum(getattr(one, name) for one in groups) for name in ("places", "filled"))
    return GroupPace(
        name="",
        title="All",
        items=sum(one.items for one in groups),
        places=places,
        filled=filled,
        forecast=forecast_end(places - filled, done, window, today),
        seconds=label_times.measure_spread(label_times.merge_times(seconds)),
    )


def _recent_labels(
    labels: LabelQuerySet, by: Grouping, window: tuple[date, ...]
) -> dict[str, dict[str, int]]:
    """Count the labels on the days of the window, by group and day."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    if window:
        since = labels.since(datetime.combine(window[0], time(), UTC))
        for row in count_by_keys(since, group=by.expression("item__"), day=Day("created_at")):
            found[key_as_text(row["group"])][row["day"]] = row["n"]
    return found


def _count_waiting_slots(project: Project) -> dict[str, int]:
    later = (Stage.VERIFY, Stage.ADJUDICATE, Stage.BASELINE)
    slots = Slot.objects.in_project(project.pk).at_any(later).of_live_items().in_use()
    counts = {row["at"]: row["n"] for row in count_by_keys(slots, at=F("stage"))}
    return {stage.value: counts[stage] for stage in later if stage in counts}
