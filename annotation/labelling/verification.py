"""A second person confirms what the labels say of an item, or contests it (study 001, 3.3).

What is confirmed becomes the resolution; what is contested waits for a decision. Inside the
queue's transactions; to show the labels and take the answer is in `seconding`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation.labelling import adjudication, resolution, slots
from annotation.models import Label, Project, Reason, Resolution, Stage
from annotation.tasktypes import TaskType
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters


@dataclass(frozen=True)
class ContestRate:
    """Of how many verified items the labels were contested, with the interval of the share."""

    verified: int
    contested: int
    share: Estimate


def apply_verdict(label: Label, task: TaskType, now: datetime) -> None:
    """Resolve what is confirmed, and let what is contested be decided."""
    decided = resolution.aggregate_labels(label.item)
    if decided is None:  # the labels that the person saw were taken back meanwhile
        label.stop_counting()
        if label.slot:
            label.slot.close()
        return
    if is_confirmation(task, label.answers, decided):
        slots.close_open(label.item, Stage.ADJUDICATE, Reason.CONTESTED)
        source = Resolution.Source.LABELS
        resolution.set_resolution(
            label.item, decided, rule=resolution.VERIFIED, source=source, now=now
        )
        return
    _end_verified_resolution(label, now)
    adjudication.open_decision(label.item, Reason.CONTESTED)


def undo_verdict(label: Label, task: TaskType, now: datetime) -> None:
    """Neither confirmed nor contested: the item waits for a second person again."""
    _end_verified_resolution(label, now)
    slots.close_open(label.item, Stage.ADJUDICATE, Reason.CONTESTED)


def is_confirmation(task: TaskType, answers: Mapping[str, Any], decided: Mapping[str, Any]) -> bool:
    """Whether the answers say the same as the labels, in all that becomes the resolution."""
    return all(answers.get(field.name) == decided.get(field.name) for field in task.resolved)


def measure_contest_rate(project: Project) -> ContestRate:
    """How often the second person said otherwise than the labels; n counts items.

    A label that confirmed has made a resolution at the very same time, which is never deleted.
    """
    clusters: dict[str, list[bool]] = {}
    found = Label.objects.in_project(project).counted().at_stage(Stage.VERIFY)
    for cluster, confirmed in found.with_confirmed().values_list("item__cluster", "confirmed"):
        clusters.setdefault(cluster, []).append(not confirmed)
    sums = sum_clusters((len(said), sum(said)) for said in clusters.values())
    return ContestRate(sums.n, int(sums.y), clustered_wilson(sums))


def _end_verified_resolution(label: Label, now: datetime) -> None:
    current = Resolution.objects.current().of_item(label.item).first()
    if current and current.rule == resolution.VERIFIED:
        current.end(now)
