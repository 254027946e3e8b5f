"""The human baseline: resolved items, labelled again by annotators who have not seen them.

It gives the expert rows of study 001 (table 5): a random sample of n resolved items per group, each
labelled by k annotators. The sample has slots at a separate stage, which look like normal work to
the annotators.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from annotation import tasktypes
from annotation.db import transactions
from annotation.labelling import slots as labelling_slots
from annotation.models import (
    Event,
    Item,
    Label,
    Mark,
    Membership,
    Project,
    Resolution,
    Slot,
    Stage,
)
from stats.estimates import Estimate
from stats.lots import draw_number
from stats.rates import clustered_wilson, sum_clusters

BATCH = 50
COLUMNS = (
    "item", "cluster", "category", "ability", "annotator", "choice", "resolution", "agrees",
    "answers", "comment", "seconds", "evaluator_seen", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class BaselineGroup:
    """One group of the sample, with the number of its resolved items and of the items drawn."""

    name: str
    available: int
    drawn: int


@dataclass(frozen=True)
class SampleResult:
    """The result of drawing a sample. `short` counts drawn items that too many annotators have seen
    already."""

    groups: tuple[BaselineGroup, ...]
    items: int
    new_slots: int
    short: int


@dataclass(frozen=True)
class BaselineProgress:
    """The number of items in the sample, the number of their slots, and how many slots are
    filled."""

    items: int
    places: int
    filled: int

    @property
    def open(self) -> int:
        return self.places - self.filled


@dataclass(frozen=True)
class BaselinePerson:
    """How often a member's labels agree with the resolutions, with an interval."""

    member: Membership
    labels: int
    agreeing: int
    share: Estimate


@dataclass(frozen=True)
class _Candidate:
    pk: int
    key: str
    group: str


def draw_sample(
    lead: Membership, *, size: int, raters: int, by: Sequence[str], seed: int, now: datetime
) -> SampleResult:
    """Draw `size` resolved items of each group, without those that are left out of the data set,
    and open slots for `raters` annotators on each.

    `by` has columns and fields of items, as offered by `reports.grouping`; a group has the same
    value in all of them (study 001 takes 35 items of each task and response model). The draw
    depends only on the seed and the keys: repeating it adds nothing, and a larger size extends the
    sample. Other slots of the sample stay as they are.
    """
    groups, drawn = _draw(lead.project, size, by, seed)
    new_slots, stream = 0, iter(drawn)
    while batch := list(islice(stream, BATCH)):
        with transactions.transact():
            for item in Item.objects.locked().filter(pk__in=batch).order_by("pk"):
                new_slots += _open_slots(item, raters)
    made = SampleResult(
        tuple(groups), len(drawn), new_slots, _count_short(lead.project, drawn, raters)
    )
    Event.record(
        "baseline",
        lead.project.slug,
        project_id=lead.project_id,
        member_id=lead.pk,
        size=size,
        raters=raters,
        group=", ".join(by),
        seed=seed,
        new_slots=new_slots,
    )
    return made


def end_sample(lead: Membership) -> int:
    """Close the sample's open slots, and return their number."""
    with transactions.transact():
        closed = Slot.objects.in_project(lead.project_id).at_stage(Stage.BASELINE).close_open()
        Event.record(
            "end baseline",
            lead.project.slug,
            project_id=lead.project_id,
            member_id=lead.pk,
            slots=closed,
        )
    return closed


def load_progress(project: Project) -> BaselineProgress:
    """The progress of the sample."""
    slots = (
        Slot.objects.in_project(project.pk)
        .at_stage(Stage.BASELINE)
        .of_live_items()
        .exclude(state="closed")
    )
    return BaselineProgress(
        items=slots.values("item").distinct().count(),
        places=slots.count(),
        filled=slots.filter(state=Slot.State.FILLED).count(),
    )


def agreement_by_person(project: Project) -> list[BaselinePerson]:
    """Each member's agreement with the resolutions, sorted by alias; n counts items.

    Only labels of the resolution's revision are compared. The interval accounts for clusters.
    """
    hits: dict[Membership, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for label, resolution in _labels_with_resolutions(project):
        if resolution:
            hits[label.member][label.item.cluster].append(label.choice == resolution.value)
    return [
        _person(member, hits[member]) for member in sorted(hits, key=lambda member: member.alias)
    ]


def label_rows(project: Project) -> Iterator[dict[str, Any]]:
    """Each counted label of the sample with the item's resolution, oldest first."""
    for label, resolution in _labels_with_resolutions(project):
        yield {
            "item": label.item.key,
            "cluster": label.item.cluster,
            "category": label.item.category,
            "ability": label.item.ability,
            "annotator": label.member.alias,
            "choice": label.choice,
            "resolution": resolution.value if resolution else None,
            "agrees": label.choice == resolution.value if resolution else None,
            "answers": label.answers,
            "comment": label.comment,
            "seconds": label.seconds,
            "evaluator_seen": label.evaluator_seen,
            "created_at": label.created_at,
        }


def _draw(
    project: Project, size: int, by: Sequence[str], seed: int
) -> tuple[list[BaselineGroup], list[int]]:
    by_group: dict[str, list[_Candidate]] = defaultdict(list)
    for candidate in _candidates(project, by):
        by_group[candidate.group].append(candidate)
    groups, drawn = [], []
    for name, found in sorted(by_group.items()):
        first = sorted(found, key=lambda one: draw_number(f"baseline\0{seed}\0{one.key}"))[:size]
        groups.append(BaselineGroup(name, len(found), len(first)))
        drawn += [candidate.pk for candidate in first]
    return groups, drawn


def _candidates(project: Project, by: Sequence[str]) -> Iterator[_Candidate]:
    resolved = Resolution.objects.in_data_set().of_project(project)
    # Evaluators do not get items that their final label takes out of the data set.
    options = tasktypes.load_task_type(project).deciding.options
    resolved = resolved.exclude(value__in=[str(one.value) for one in options if one.drops])
    for item in Item.objects.filter(pk__in=resolved.values("item")).iterator(chunk_size=500):
        values = [item.value_of(name) for name in by]
        group = " · ".join("—" if value is None else str(value) for value in values)
        yield _Candidate(item.pk, item.key, group)


def _open_slots(item: Item, raters: int) -> int:
    """Open slots until the item has `raters` slots; return the number of slots added."""
    slots = Slot.objects.of_item(item).at_stage(Stage.BASELINE)
    missing = raters - slots.exclude(state=Slot.State.CLOSED).count()
    closed = list(slots.filter(state=Slot.State.CLOSED).in_order()[: max(0, missing)])
    for slot in closed:
        slot.reopen()
    labelling_slots.add_slots(item, Stage.BASELINE, max(0, missing - len(closed)))
    return max(0, missing)


def _count_short(project: Project, drawn: list[int], raters: int) -> int:
    """Count the items for which fewer than `raters` active annotators are left who have not seen
    them."""
    able = {member.pk for member in Membership.objects.in_project(project) if member.can("label")}
    labels = Label.objects.filter(item__in=drawn, current=True).exclude(stage=Stage.BASELINE)
    marks = Mark.objects.in_force().filter(item__in=drawn, kind=Mark.Kind.SEEN)
    told = set(labels.values_list("item", "member")) | set(marks.values_list("item", "member"))
    spoilt = Counter(item for item, member in told if member in able)
    return sum(len(able) - spoilt[item] < raters for item in drawn)


def _labels_with_resolutions(project: Project) -> Iterator[tuple[Label, Resolution | None]]:
    labels = Label.objects.in_project(project).in_data_set().at_stage(Stage.BASELINE)
    labels = labels.counted().for_export()
    current = Resolution.objects.current().of_project(project)
    held_true = {
        (one.item_id, one.revision_id): one
        for one in current.filter(item__slots__stage=Stage.BASELINE).distinct()
    }
    for label in labels.iterator(chunk_size=500):
        yield label, held_true.get((label.item_id, label.revision_id))


def _person(member: Membership, clusters: dict[str, list[bool]]) -> BaselinePerson:
    sums = sum_clusters((len(said), sum(said)) for said in clusters.values())
    return BaselinePerson(member, sums.n, int(sums.y), clustered_wilson(sums))
