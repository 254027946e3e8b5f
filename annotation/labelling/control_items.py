"""Control items: hidden items with a known answer; only leads see the results.

A control item looks like any other item to the annotator. Nobody gets a control item twice, or one
that they had before as a normal item at any stage. Members who may see all items get no control
items, since they could look up the known answers.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.core.cache import cache
from django.db.models import Exists, OuterRef, Q
from django.utils.crypto import salted_hmac

from annotation.labelling import answer_key, correct_answers
from annotation.labelling.correct_answers import PROBE
from annotation.models import Item, Label, Membership, Project, Resolution, Slot, Stage
from stats.estimates import Estimate
from stats.rates import clustered_wilson, sum_clusters

_SALT = "annotation.control-items"
# Seconds that the items sent ahead are remembered.
_REMEMBERED = 24 * 60 * 60
COLUMNS = (
    "annotator", "checks", "right", "share", "low", "high", "reason", "corrected", "wrong",
)  # fmt: skip


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer to a control item."""

    item: Item
    said: dict[str, Any]
    known: dict[str, Any]
    said_at: datetime


@dataclass(frozen=True)
class ControlResult:
    """A member's results on control items; `share` is the share of right answers among those
    compared.

    `corrected` counts control items whose text the member corrected before labelling. The known
    answer is about the texts before the correction, so these labels are not compared.
    """

    member: Membership
    right: int
    share: Estimate
    wrong: tuple[WrongAnswer, ...]
    corrected: int


def draw_after(member: Membership, item_id: int) -> float:
    """The draw, uniform in [0, 1), that decides whether the item after this item is a control item.

    It never changes, so that the items sent ahead contain control items where the queue will have
    them. Otherwise an item that was not among those sent ahead would be known as a control item.
    What was sent keeps its place, whatever the item before it is then (`sent_ahead`).
    """
    digest = salted_hmac(_SALT, f"{member.pk}:{item_id}", algorithm="sha256").digest()
    return (int.from_bytes(digest[:8]) >> 11) / 2**53


def is_due(member: Membership, draw: float) -> bool:
    """True if a control item is due after this random draw; makes no query.

    In a pilot none is: what is not among the items of everybody would be known as a control item.
    """
    every = 0 if member.is_in_pilot else member.project.probe_every
    return every > 0 and draw * every < 1 and not member.can("items")


def sent_ahead(member: Membership) -> list[int]:
    """The ids of the items that the member held when items were sent ahead last, and of those sent,
    in order; empty if they had had all control items.

    They keep their places. A draw depends on the item before, and the member chooses that by
    labelling or skipping items out of order: control items would move among the others, or vanish.
    """
    return cast("list[int]", cache.get(_sent_key(member), []))


def remember_sent(member: Membership, items: Sequence[int]) -> None:
    """Remember the ids of the items that the member holds and that are sent ahead now, in order.

    They are in the default cache, which processes share. Without them, the draws alone decide.
    """
    cache.set(_sent_key(member), list(items), _REMEMBERED)


def _sent_key(member: Membership) -> str:
    return f"sent-ahead-{member.pk}-{member.project.created_at.timestamp()}"


def first_sent(member: Membership, now: datetime) -> Item | None:
    """The first of the items sent ahead that the member can still get, with its purpose only; None
    if there is none. Makes one query if items were sent ahead."""
    sent = sent_ahead(member)
    if not sent:
        return None
    there = Item.objects.in_project(member.project).filter(pk__in=sent)
    free = Slot.objects.at_work().filter(item=OuterRef("pk")).free_for(member.pk, now)
    known = there.with_known_answer(PROBE).order_by().values("pk")
    left = there.filter(Exists(free) | Q(pk__in=known)).untouched_by(member.pk)
    return min(left.only("purpose"), key=lambda item: sent.index(item.pk), default=None)


def take_slot(member: Membership, draw: float, now: datetime) -> Slot | None:
    """Hold and return a slot of a control item if the draw asks for one; otherwise return None.

    Called inside the queue's transaction, with the member's row locked. `draw` is uniform in [0,
    1): about one item in `probe_every` is a control item, until the member has had all control
    items. Makes no query if no control item is due.
    """
    if not is_due(member, draw):
        return None
    left = items_left(member)
    return answer_key.hold_new_slot(left[0], Stage.CONTROL, member, now) if left else None


def items_left(member: Membership) -> list[Item]:
    """The control items that the member has not had, in the order in which they come."""
    there = Item.objects.in_project(member.project).with_known_answer(PROBE)
    return answer_key.order_for_member(member, there.untouched_by(member.pk))


def load_results(project: Project) -> list[ControlResult]:
    """The results of each member who has answered control items, without withdrawn labels.

    Answers are compared with the latest known answers, since a lead may have corrected a wrong
    known answer.
    """
    found = Label.objects.in_project(project).current().of_live_items().at_stage(Stage.CONTROL)
    bulky = ("item__fields", "task_type__definition", "task_type__source")
    labels = found.select_related("item", "member", "task_type").defer(*bulky)
    labels = labels.order_by("member__alias", "created_at", "pk")
    truth = answer_key.latest_answers({label.revision_id for label in labels})
    by_member: dict[Membership, list[Label]] = defaultdict(list)
    for label in labels:
        by_member[label.member].append(label)
    return [_build_result(project, member, said, truth) for member, said in by_member.items()]


def result_rows(project: Project) -> Iterator[dict[str, Any]]:
    """The results by member; `share`, `low` and `high` are fractions of 1, with a 95 % interval."""
    for result in load_results(project):
        yield {
            "annotator": result.member.alias,
            "checks": result.share.n,
            "right": result.right,
            "share": result.share.value,
            "low": result.share.low,
            "high": result.share.high,
            "reason": result.share.reason,
            "corrected": result.corrected,
            "wrong": [wrong.item.key for wrong in result.wrong],
        }


def _build_result(
    project: Project, member: Membership, labels: list[Label], truth: dict[int, Resolution]
) -> ControlResult:
    known = {
        label: answer_key.compared_values(label, truth[label.revision_id], project)
        for label in labels
        if label.revision_id in truth
    }
    compared = {label: values for label, values in known.items() if values}
    clusters: dict[str, list[bool]] = defaultdict(list)
    wrong = []
    for label, values in compared.items():
        right = correct_answers.matches_answer(label.answers, values)
        clusters[label.item.cluster].append(right)
        if not right:
            wrong.append(WrongAnswer(label.item, label.answers, values, label.created_at))
    share = clustered_wilson(sum_clusters((len(hits), sum(hits)) for hits in clusters.values()))
    return ControlResult(
        member=member,
        right=len(compared) - len(wrong),
        share=share,
        wrong=tuple(wrong),
        corrected=len(labels) - len(compared),
    )
