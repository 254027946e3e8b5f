"""The offer of an item to a member, or the reason why there is no item; and the member's latest
labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from annotation import tasktypes
from annotation.db import project_counts
from annotation.items import readiness
from annotation.items.diffing import stored
from annotation.labelling import (
    blind_names,
    control_items,
    pair_order,
    qualification,
    slots,
    submissions,
)
from annotation.labelling.models.labels import LabelQuerySet
from annotation.labelling.submissions import Submission
from annotation.models import (
    WORK_LIKE_STAGES,
    Draft,
    Item,
    Label,
    Mark,
    Membership,
    Project,
    Resolution,
    Revision,
    Slot,
    Stage,
)

RECENT_LABELS = 10
_SEPARATE_STAGES = (Stage.VERIFY, Stage.ADJUDICATE)
_LABEL_SCREEN_STAGES = (*slots.WORKBENCH_STAGES, Stage.BLIND)


@dataclass(frozen=True)
class CategoryCount:
    """The numbers of items and of resolved items in a category, without duplicates.

    `repeats` is the number of exact duplicates in the category; they need no labels.
    """

    ability: str
    category: str
    items: int
    repeats: int
    resolved: int

    @property
    def share(self) -> float | None:
        """The share of items that are resolved, as a fraction of 1; None without items."""
        return self.resolved / self.items if self.items else None


@dataclass(frozen=True)
class Offer:
    """An item to work on, the revision to show, and the key that its submission must carry.

    previous: the member's label of the item, either the current label or a withdrawn label.
    blind: the member's blind label, given before diff, claim and rationale were shown.
    name: the item's name on pages, which is its key or, at a first look, the blind name.
    phase: "blind" if the blind label is still missing, "qualification" if an explanation follows,
        else "label".
    first: the text of a pair to show as A; "" if no order is drawn.
    """

    slot: Slot
    item: Item
    revision: Revision
    key: str
    name: str
    phase: str = "label"
    previous: Label | None = None
    blind: Label | None = None
    first: str = ""

    def submission(
        self,
        answers: Mapping[str, object] | None = None,
        comment: str = "",
        seconds: float | None = None,
    ) -> Submission:
        """What the page of this offer sends, with these answers."""
        return Submission(
            self.key, self.name, self.revision.number, answers or {}, comment, seconds
        )


@dataclass(frozen=True)
class Waiting:
    """The answer if there is no item for a member now. The work is not done while `held_by_others`
    or `awaiting` is above 0.

    awaiting: items that nobody gets yet, because they lack the text that their task type awaits.
    practising: True if the member must qualify first; on the label screen, no qualification item is
    left for the member.
    """

    held_by_others: int
    next_free: datetime | None
    done: int
    practising: bool = False
    awaiting: int = 0


@dataclass(frozen=True)
class OpenItems:
    """Counts of items without a final label, by what they wait for.

    An item that waits for several things is counted only once, under the first one.
    """

    labels: int = 0
    verification: int = 0
    adjudication: int = 0

    def __str__(self) -> str:
        """For example "1 item needs another annotator, 24 wait for verification."; "" for none."""
        parts: list[str] = []
        for number, verb, what in (
            (self.labels, "need", "another annotator"),
            (self.verification, "wait", "for verification"),
            (self.adjudication, "wait", "for adjudication"),
        ):
            if number:
                one = number == 1
                noun = "" if parts else " item" if one else " items"
                parts.append(f"{number:,}{noun} {verb}{'s' if one else ''} {what}")
        return ", ".join(parts) + "." if parts else ""


@dataclass(frozen=True)
class MemberProgress:
    """Counts of items: labelled by the member, resolved, in the project, not resolved yet.

    `awaiting` counts the unresolved items that cannot be labelled yet; `awaited` gives the reason
    in words. `todo` counts the items that this member can still label. `labels` of `labels_wanted`
    have been given, where items need several; both are 0 where they need one.
    """

    mine: int
    resolved: int
    total: int
    left: int
    awaiting: int = 0
    awaited: str = ""
    todo: int = 0
    labels: int = 0
    labels_wanted: int = 0

    @property
    def at_work(self) -> int:
        """The number of items that people can work on."""
        return max(0, self.left - self.awaiting)


def build_offer(
    member: Membership, slot: Slot, revision: Revision, *, previous: Label | None = None
) -> Offer:
    """Build the offer of the slot's item to the member."""
    slot.item.project = member.project  # saves loading the project again
    blind = None
    phase = "qualification" if slot.stage == Stage.QUALIFICATION else "label"
    if member.project.blind_first and slot.stage in WORK_LIKE_STAGES:
        blind = _label(member, slot.item, Stage.BLIND)
        phase = "label" if blind else "blind"
    if slot.state == Slot.State.FILLED and previous is None:
        previous = _label(member, slot.item, slot.stage)
    if slot.stage in _SEPARATE_STAGES and previous is None:
        previous = _withdrawn_label(member, slot, revision)
    return _build(member, slot, revision, phase, previous, blind)


def build_ahead(member: Membership, revision: Revision) -> Offer:
    """Build the offer of an item that nobody holds for the member.

    Its slot is not stored: it looks the same for a control item and for any other.
    """
    item = revision.item
    item.project = member.project  # saves loading the project again
    blind = _label(member, item, Stage.BLIND) if member.project.blind_first else None
    phase = "blind" if member.project.blind_first and blind is None else "label"
    held = Slot(item=item, project=item.project, state=Slot.State.HELD, member=member)
    return _build(member, held, revision, phase, None, blind)


def _build(
    member: Membership,
    slot: Slot,
    revision: Revision,
    phase: str,
    previous: Label | None,
    blind: Label | None,
) -> Offer:
    task = tasktypes.load_task_type(member.project)
    ticket = submissions.SubmissionToken(
        slot.pk or 0,
        member.pk,
        revision.number,
        blind=phase == "blind",
        diff=stored.shown_algorithm(revision) if task.diff else "",
        first=pair_order.draw_first(task, member, slot),
        item_id=0 if slot.pk else slot.item_id,
        task_type=member.project.task_type_id,
    )
    key, item = submissions.issue_token(ticket), slot.item
    name = blind_names.blind_name(member, item) if phase == "blind" else item.key
    return Offer(slot, item, revision, key, name, phase, previous, blind, ticket.first)


def explain_waiting(member: Membership, stage: str, now: datetime) -> Waiting:
    """Find out why there is no item; only slots that the member could take are counted."""
    held = Slot.objects.in_project(member.project_id).at_stage(stage).of_live_items().held(now)
    others = held.untouched_by(member.pk).order_by("held_until")
    first = others.first()
    return Waiting(
        held_by_others=others.count() if first else 0,
        next_free=first.held_until if first else None,
        done=count_labels(member, stage),
        practising=qualification.is_due(member),
        awaiting=readiness.count_waiting(member.project, member.role)
        if stage == Stage.LABEL
        else 0,
    )


def count_labels(member: Membership, stage: str) -> int:
    """Count the member's current labels at a stage; Stage.LABEL includes all stages that look like
    normal work."""
    if stage == Stage.LABEL:
        return member.labelled
    return Label.objects.current().by_member(member.pk, stage).count()


def load_progress(
    member: Membership, counted: Sequence[CategoryCount] | None = None
) -> MemberProgress:
    """The progress of the project and the member, in items. `counted` are the project's counts by
    category, if the caller has them.

    Counting a large project takes a while, so its counts may be some seconds old, and older for
    members who must not be able to identify control items. The count of the member's own labels is
    always exact. Items with a known answer are not counted.
    """
    project = member.project
    counts = count_by_category(project, member.role) if counted is None else counted
    total, resolved = sum(one.items for one in counts), sum(one.resolved for one in counts)
    waiting = (
        readiness.count_waiting(project, member.role)
        if readiness.projects_with_waiting([project])
        else 0
    )
    labels = (0, 0)
    # Of annotators, who could tell control items by a number that stays, nobody sees it.
    is_hidden = project.probe_every and not member.can("items")
    if (project.overlap > 1 or project.share_percent) and not is_hidden:
        labels = project_counts.get_cached_count(
            project, "labels", member.role, lambda: Slot.objects.count_labels(project.pk)
        )
    return MemberProgress(
        mine=member.labelled,
        resolved=resolved,
        total=total,
        left=total - resolved,
        awaiting=waiting,
        awaited=readiness.describe_waiting(project, waiting, member.role),
        todo=_count_todo(member),
        labels=labels[0],
        labels_wanted=labels[1],
    )


def _count_todo(member: Membership) -> int:
    if not member.can("label") or member.pk is None:
        return 0

    def count() -> int:
        left = Slot.objects.count_items_for(member, timezone.now())
        hidden = member.project.probe_every and not member.is_in_pilot
        if left and hidden and not member.can("items"):
            # Control items count too: a number that only other items make less would tell them.
            left += len(control_items.items_left(member))
        if not member.is_in_pilot:
            # These come last, so somebody who is told that nothing is left would never get them.
            left += Slot.objects.count_baseline_items_for(member, timezone.now())
        # A label that is given while the count is kept makes one item less.
        return left + member.labelled

    kept = project_counts.get_cached_count(member.project, f"todo-{member.pk}", member.role, count)
    return max(0, kept - member.labelled)


def load_open_items(member: Membership) -> OpenItems:
    """Count the items without a final label by what they wait for; as old as the counts of
    `load_progress`."""
    project = member.project

    def count() -> OpenItems:
        items = Item.objects.in_project(project).originals().of_tests().unresolved()
        found = items.count_by_stage((Stage.LABEL, *_SEPARATE_STAGES))
        return OpenItems(*(found.get(stage, 0) for stage in (Stage.LABEL, *_SEPARATE_STAGES)))

    return project_counts.get_cached_count(project, "open", member.role, count)


def recent_labels(member: Membership, number: int = RECENT_LABELS) -> list[Label]:
    """The member's latest current labels, the latest first, with their items."""
    found = [
        label
        for stage in WORK_LIKE_STAGES
        for label in Label.objects.current().by_member(member.pk, stage).for_strip()[:number]
    ]
    return sorted(found, key=lambda label: (label.created_at, label.pk), reverse=True)[:number]


def last_label(member: Membership, stages: tuple[str, ...]) -> Label | None:
    """The member's latest current label at any of the stages; None if there is none. At
    verification and adjudication, only labels that count are searched."""
    # One query per stage: each reads the first row of an index; one query for all stages would need
    # a sort.
    found = [_labels_in_force(stage).by_member(member.pk, stage).first() for stage in stages]
    return max(
        (label for label in found if label),
        key=lambda label: (label.created_at, label.pk),
        default=None,
    )


def find_undone(member: Membership, stages: tuple[str, ...], shown: str) -> Label | None:
    """The member's label with this `submission`, or from the page with this key, if it was
    withdrawn; otherwise None."""
    if not shown or "\0" in shown:  # PostgreSQL refuses to search for it
        return None
    names = (shown, submissions.digest_token(shown))
    labels = Label.objects.of_member(member.pk).at_stages(stages).filter(submission__in=names)
    return labels.filter(withdrawn_at__isnull=False).select_related("item").first()


def _labels_in_force(stage: str) -> LabelQuerySet:
    """The labels at the stage that can be undone. Extra labels are included; decisions and
    verifications that no longer count are not."""
    labels = Label.objects
    return labels.counted() if stage in _SEPARATE_STAGES else labels.current()


def has_met_item(member: Membership, item: Item) -> bool:
    """True if the label screen ever showed the member the item: they labelled, held, skipped or
    drafted it. Who verifies or decides it has met it elsewhere: a label of theirs would open the
    comments of those whom they check."""
    own = Slot.objects.in_project(member.project_id).of_member(member.pk).of_item(item)
    labels = Label.objects.of_member(member.pk).of_item(item)
    return (
        own.at_any(_LABEL_SCREEN_STAGES).exists()
        or labels.at_stages(_LABEL_SCREEN_STAGES).exists()
        or Mark.objects.of_member(member.pk, Mark.Kind.SKIP).filter(item=item).exists()
        or Draft.objects.of_member(member.pk).filter(item=item).exists()
    )


def _label(member: Membership, item: Item, stage: str) -> Label | None:
    return Label.objects.current().filter(member=member, item=item, stage=stage).first()


def _withdrawn_label(member: Membership, slot: Slot, revision: Revision) -> Label | None:
    """The latest label of the item at the stage if it is the member's own and was undone; otherwise
    None."""
    said = Label.objects.of_item(slot.item).at_stage(slot.stage).of_revision(revision)
    last = said.latest_first().first()
    return last if last and last.withdrawn_at and last.member_id == member.pk else None


def count_by_category(project: Project, role: str) -> list[CategoryCount]:
    """Count items and resolved items by ability and category, in two queries; qualification and
    control items are left out.

    The counts may be some seconds old, or older for this role, see `project_counts`.
    """
    return project_counts.get_cached_count(
        project, "categories", role, lambda: _count_by_category(project)
    )


def _count_by_category(project: Project) -> list[CategoryCount]:
    found = Resolution.objects.in_data_set().per_category(project)
    rows = Item.objects.in_project(project).of_tests().by_category_and_repeats()
    return [
        CategoryCount(**row, resolved=found.get((row["ability"], row["category"]), 0))
        for row in rows
    ]
