"""What people choose as time goes by, and which items leave the final set for what reasons."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Count, Q
from django.db.models.fields.json import KeyTextTransform

from annotation import deciding, resolving
from annotation.deciding import Deciding
from annotation.leads.timing import word
from annotation.models import Label, Project, Resolution, Stage
from annotation.querysets.counting import Day, tally
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sums_of


@dataclass(frozen=True)
class Chosen:
    """How many labels of a day chose an answer."""

    day: date
    value: str
    title: str
    n: int


@dataclass(frozen=True)
class Drop:
    """An answer that takes items out, and what people said was in the way.

    `n` counts resolved items, the reasons count labels.
    """

    value: str
    title: str
    n: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Dropped:
    """Which share of the resolved items is not in the final set, and for what."""

    resolved: int
    dropped: int
    share: Estimate
    drops: tuple[Drop, ...]


def over_time(project: Project) -> tuple[Chosen, ...]:
    """Labels of the work stage that are in force, by day (UTC) and answer, oldest first."""
    decides = deciding.of(project)
    labels = Label.objects.current().at_stage(Stage.WORK).in_project(project)
    rows = tally(labels, day=Day("created_at"), said=decides.of_label())
    order = {value: place for place, (value, _) in enumerate(decides.options)}
    found = [
        Chosen(date.fromisoformat(row["day"]), value, decides.title(value), row["n"])
        for row in rows
        if (value := word(row["said"]))
    ]
    return tuple(sorted(found, key=lambda one: (one.day, order.get(one.value, 99), one.value)))


def dropped(project: Project) -> Dropped:
    """Resolved items that are not in the final set: left out for a reason, or held for something
    that takes them out.

    The reasons are those that counted labels with such an answer gave, also on items that are not
    resolved yet, so an item may have several, or none.
    """
    decides = deciding.of(project)
    found = Resolution.objects.of_live_originals().of_project(project).of_tests()
    out = _out(decides)
    rows = found.order_by().values("item__cluster")
    clusters = rows.annotate(n=Count("pk"), y=Count("pk", filter=out)).values_list("n", "y")
    share = clustered_wilson(sums_of(clusters))
    counts: dict[str, int] = defaultdict(int)
    for row in tally(found.filter(out), said=decides.of_resolution()):
        counts[word(row["said"])] += row["n"]
    reasons = _reasons(project, decides)
    named = {value for value in reasons if decides.drops(value)} | set(counts)
    drops = (
        Drop(value, decides.title(value), counts[value], tuple(reasons.get(value, {}).items()))
        for value in sorted(named, key=lambda value: (-counts[value], value))
    )
    return Dropped(share.n, sum(counts.values()), share, tuple(drops))


def _out(decides: Deciding) -> Q:
    """Resolutions of items that are not in the final set."""
    excluded = Q(rule=resolving.EXCLUDED)
    return excluded if decides.kept is None else excluded | ~Q(value__in=decides.kept)


def _reasons(project: Project, decides: Deciding) -> dict[str, dict[str, int]]:
    """What counted labels say is in the way, by their answer: titles of reasons and labels."""
    labels = Label.objects.counted().at_stage(Stage.WORK).in_project(project)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, titles in deciding.reasons(project):
        said: dict[str, Any] = {"reason": KeyTextTransform(name, "answers")}
        rows = tally(labels.answering(name), said=decides.of_label(), **said)
        for row in sorted(rows, key=lambda row: -row["n"]):
            reason = word(row["reason"])
            found[word(row["said"])][titles.get(reason, reason)] = row["n"]
    return found
