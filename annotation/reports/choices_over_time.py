"""Choices over time, and the items that are dropped from the final set, with the reasons."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Count, Q
from django.db.models.fields.json import KeyTextTransform

from annotation.db.counting import Day, count_by_keys
from annotation.labelling import resolution
from annotation.models import Label, Project, Resolution, Stage
from annotation.reports.label_times import key_as_text
from annotation.tasktypes import main_field
from annotation.tasktypes.main_field import MainField
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters


@dataclass(frozen=True)
class ChoiceCount:
    """How many labels on a day chose an answer."""

    day: date
    value: str
    title: str
    n: int


@dataclass(frozen=True)
class DropAnswer:
    """An answer that drops items from the final set, and the reasons given for it.

    `n` counts resolved items, the reasons count labels.
    """

    value: str
    title: str
    n: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class DroppedItems:
    """The share of the resolved items that is not in the final set, and the answers behind it."""

    resolved: int
    dropped: int
    share: Estimate
    drops: tuple[DropAnswer, ...]


def count_choices(project: Project) -> tuple[ChoiceCount, ...]:
    """Current labels of the stage label, by day (UTC) and answer, oldest first."""
    decides = main_field.load_main_field(project)
    labels = Label.objects.current().at_stage(Stage.LABEL).in_project(project)
    rows = count_by_keys(labels, day=Day("created_at"), said=decides.of_label())
    order = {value: place for place, (value, _) in enumerate(decides.options)}
    found = [
        ChoiceCount(date.fromisoformat(row["day"]), value, decides.title(value), row["n"])
        for row in rows
        if (value := key_as_text(row["said"]))
    ]
    return tuple(sorted(found, key=lambda one: (one.day, order.get(one.value, 99), one.value)))


def measure_dropped(project: Project) -> DroppedItems:
    """Resolved items that are not in the final set: excluded with a reason, or with a final label
    that drops them.

    The reasons are those that counted labels with such an answer gave, also on items that are not
    resolved yet, so an item may have several reasons, or none.
    """
    decides = main_field.load_main_field(project)
    found = Resolution.objects.of_live_originals().of_project(project).of_tests()
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
    """A filter for resolutions of items that are not in the final set."""
    excluded = Q(rule=resolution.EXCLUDED)
    return excluded if decides.kept is None else excluded | ~Q(value__in=decides.kept)


def _count_reasons(project: Project, decides: MainField) -> dict[str, dict[str, int]]:
    """The reasons given by counted labels, by answer: titles of reasons with numbers of labels."""
    labels = Label.objects.counted().at_stage(Stage.LABEL).in_project(project)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for name, titles in main_field.reason_fields(project):
        said: dict[str, Any] = {"reason": KeyTextTransform(name, "answers")}
        rows = count_by_keys(labels.answering(name), said=decides.of_label(), **said)
        for row in sorted(rows, key=lambda row: -row["n"]):
            reason = key_as_text(row["reason"])
            found[key_as_text(row["said"])][titles.get(reason, reason)] = row["n"]
    return found
