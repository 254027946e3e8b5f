"""Store labels that people gave elsewhere, in small transactions.

The raters become members without an account. Idempotent: the submission of a row is a digest of its
content, so importing the same row again changes nothing. Labels fill free slots of their items as
if they were given here. A label without a free slot is kept as extra. It counts once a slot has
been added and the file is imported again. Nothing is overwritten: a later label of a rater
supersedes the earlier one, and an earlier label that is imported later joins the history.

Items with a "not sure" answer are routed (`effects.update_route`) only after the whole file is
stored. An excluded item accepts no more labels, but the file may contain further labels that were
given before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db.models import Count, F

from annotation import tasktypes
from annotation.db import transactions
from annotation.errors import FieldError
from annotation.importing.label_rows import ParsedLabel
from annotation.items.diffing import stored
from annotation.labelling import effects, resolution
from annotation.labelling.correct_answers import PURPOSES
from annotation.models import Event, Item, Label, Membership, Project, Revision, Role, Slot, Stage
from formats.rows import BadRow


@dataclass
class LabelContext:
    """What labels refer to: items by key, members by alias, labels by submission, the rest by item
    ids.

    It grows as statements are processed. `free` are unfilled slots for labels that count, `own` the
    slots of the raters. `places` is the number of slots of an item, `extra` the number of its
    labels without a slot. In a dry run, new members, labels and uses of slots exist only here.
    """

    project: Project
    items: dict[str, Item] = field(default_factory=dict)
    members: dict[str, Membership] = field(default_factory=dict)
    revisions: dict[tuple[int, int], int] = field(default_factory=dict)
    sent: dict[str, Label] = field(default_factory=dict)
    current: dict[tuple[int, str], Label] = field(default_factory=dict)
    own: dict[tuple[int, str], Slot] = field(default_factory=dict)
    free: dict[int, list[Slot]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    extra: dict[int, int] = field(default_factory=dict)

    def under(self, imagined: "LabelContext") -> "LabelContext":
        """Return this context, overridden by the changes that the dry run has simulated so far."""
        names = set(self.__dataclass_fields__) - {"project"}
        merged = {name: getattr(self, name) | getattr(imagined, name) for name in names}
        return LabelContext(self.project, **merged)

    def same(self, one: ParsedLabel) -> Label | None:
        """Return the stored label that was made from an equal statement."""
        return self.sent.get(one.digest(self.project.slug))

    def current_label(self, one: ParsedLabel) -> Label | None:
        """Return the rater's current label of the item."""
        return self.current.get((self.items[one.item].pk, one.rater))

    def member(self, alias: str) -> Membership:
        """Return the rater's membership; if there is none, a new membership that is not stored."""
        new = Membership(project=self.project, alias=alias, role=Role.ANNOTATOR)
        return self.members.setdefault(alias, new)

    def revision(self, one: ParsedLabel) -> Revision:
        """Return the revision that the statement refers to, without its texts."""
        item = self.items[one.item]
        number = one.revision or item.revision_number
        return Revision(pk=self.revisions[item.pk, number], item=item, number=number)

    def place(self, one: ParsedLabel) -> Slot | None:
        """Find and take a slot for the label: the rater's own slot of the item, otherwise a free
        slot. Return None if no slot is free, or if the label belongs to an older revision of the
        texts."""
        item, member = self.items[one.item], self.members.get(one.rater)
        if (one.revision or item.revision_number) != item.revision_number:
            return None
        free = self.free[item.pk]
        fit = (slot for slot in free if slot.reserved_for_id in (None, member and member.pk))
        slot = self.own.get((item.pk, one.rater)) or next(fit, None)
        if slot is None:
            return None
        self.free[item.pk] = [other for other in free if other is not slot]
        self.own[item.pk, one.rater] = slot
        return slot

    def fault(self, one: ParsedLabel, *, as_members: bool) -> tuple[str, str] | None:
        """Return the reason why the statement cannot become a label of this project, as (field,
        reason); None if it can."""
        item, member = self.items.get(one.item), self.members.get(one.rater)
        if item is None or (reason := _why_closed(item)):
            return "item", reason if item else (
                "is not an item of this project. Import the item first."
            )
        if member and member.account_id and not as_members:
            return "rater", (
                "is the alias of a member with an account. Rename the rater, or use --as-members "
                "if they are the same person."
            )
        if (item.pk, one.revision or item.revision_number) not in self.revisions:
            return "revision", f"{one.revision} is not a revision of the item."
        is_new = bool(one.diff) and self.same(one) is None
        shown = stored.shown_algorithm(self.revision(one)) if is_new else one.diff
        if one.diff != shown:
            return "diff", (
                f"is {one.diff}, but the changes of this item are numbered by {shown}. Leave out "
                "the answers to single changes."
            )
        task = tasktypes.load_task_type(self.project)
        if task.marks_texts(one.answers) and self.same(one) is None:
            try:
                task.check_texts(one.answers, Revision.objects.get(pk=self.revision(one).pk).texts)
            except FieldError as error:
                return error.field, str(error)
        return self._clash(one, item)

    def _clash(self, one: ParsedLabel, item: Item) -> tuple[str, str] | None:
        """Return how the statement contradicts an existing label, as (field, reason); None if it
        does not."""
        same, said = self.same(one), self.current_label(one)
        if same:
            alike = (same.comment, same.seconds) == (one.comment, one.seconds)
            return (
                None
                if alike
                else (
                    "",
                    ("is already imported with another comment or another number of seconds."),
                )
            )
        if said and said.created_at == one.time:
            return "time", "is also the time of another label by this rater for this item."
        of_older_texts = (one.revision or item.revision_number) < item.revision_number
        if said and said.counted and of_older_texts and said.created_at < one.time:
            return "revision", "is older than the revision of an earlier label by this rater."
        return None


def load_context(
    project: Project, statements: list[ParsedLabel], *, now: datetime, locked: bool
) -> LabelContext:
    """Load the context for the items and raters of the statements.

    `locked`, inside a transaction, locks the members, then the items, then their slots, each in a
    fixed order. Labelling uses the same order.
    """
    background = LabelContext(project)
    members = Membership.objects.in_project(project).called({one.rater for one in statements})
    items = Item.objects.filter(project=project).with_keys({one.item for one in statements})
    if locked:
        members, items = members.locked(), items.locked()
    background.members = {one.alias: one for one in members.order_by("pk")}
    for item in items.order_by("pk"):
        item.project = project
        background.items[item.key] = item
    _load_labels(background, [one.digest(project.slug) for one in statements])
    _load_slots(background, now, locked)
    return background


def _load_labels(background: LabelContext, digests: list[str]) -> None:
    items = [item.pk for item in background.items.values()]
    aliases = {member.pk: alias for alias, member in background.members.items()}
    sent = Label.objects.filter(submission__in=digests)
    background.sent = {label.submission: label for label in sent}
    revisions = Revision.objects.filter(item__in=items).values_list("item", "number", "pk")
    background.revisions = {(item, number): pk for item, number, pk in revisions}
    said = Label.objects.current().at_stage(Stage.LABEL).filter(item__in=items)
    for label in said.filter(member__in=aliases):
        background.current[label.item_id, aliases[label.member_id]] = label
    extra = said.filter(counted=False, revision__number=F("item__revision_number"))
    background.extra = dict(extra.order_by().values_list("item").annotate(Count("pk")))


def _load_slots(background: LabelContext, now: datetime, locked: bool) -> None:
    items = [item.pk for item in background.items.values()]
    aliases = {member.pk: alias for alias, member in background.members.items()}
    background.free = {item: [] for item in items}
    background.places = dict.fromkeys(items, 0)
    slots = (
        Slot.objects.in_project(background.project.pk).at_stage(Stage.LABEL).filter(item__in=items)
    )
    slots = slots.exclude(state=Slot.State.CLOSED).order_by("item", "number")
    for slot in slots.locked() if locked else slots:
        background.places[slot.item_id] += 1
        if slot.member_id in aliases:
            background.own[slot.item_id, aliases[slot.member_id]] = slot
        expired = slot.held_until is not None and slot.held_until <= now
        if slot.state == Slot.State.OPEN or expired:
            background.free[slot.item_id].append(slot)


def _why_closed(item: Item) -> str:
    """Return the reason why the item accepts no labels; "" if it accepts labels."""
    if item.deleted_at:
        return "is an item that was removed from the project."
    if item.duplicate_of_id:
        return "is a duplicate. Use the key of the original."
    if item.purpose in PURPOSES:
        return f"is an item with the purpose {item.purpose}; labels for it cannot be imported."
    return ""


# Small enough that a batch commits well within 200 ms, so that people can label meanwhile.
BATCH = 25


@dataclass
class LabelImportReport:
    """Counts of the rows of one import by result.

    `older` counts the new labels that a later label supersedes, `extra` all rows whose label fills
    no slot. `overlap` is the number of slots that an item would need for all its labels to count; 0
    if all labels count already. `promoted` counts the unchanged labels that were extra before and
    have a slot now. `off_scale` lists the answers that are missing because they are off their
    scale, by row.
    """

    new: int = 0
    unchanged: int = 0
    older: int = 0
    extra: int = 0
    overlap: int = 0
    promoted: int = 0
    raters: int = 0
    bad: list[BadRow] = field(default_factory=list)
    off_scale: list[BadRow] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of all rows that were read, including bad rows."""
        return self.new + self.unchanged + len(self.bad)


@dataclass
class _AffectedItems:
    """Keys of items whose resolution needs an update (`said`), and of items that their labels route
    (`sent`)."""

    said: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)


def store_labels(
    project: Project,
    statements: Iterable[ParsedLabel | BadRow],
    *,
    now: datetime,
    dry_run: bool = False,
    as_members: bool = False,
    member: Membership | None = None,
) -> LabelImportReport:
    """Store the new statements, batch by batch, and report the results.

    A rater whose alias belongs to a member with an account is refused, unless `as_members` states
    that they are the same person. A dry run stores nothing, but keeps the state of every row in
    memory. `member` is the person who imports the labels, for the audit log.
    """
    report, imagined, sent = LabelImportReport(), LabelContext(project), set[str]()
    stream = iter(statements)
    while batch := list(islice(stream, BATCH)):
        report.bad += [row for row in batch if isinstance(row, BadRow)]
        good = [row for row in batch if isinstance(row, ParsedLabel)]
        if dry_run:
            seen = load_context(project, good, now=now, locked=False)
            imagined = seen.under(imagined)
            _take_labels(good, imagined, report, as_members=as_members, store=False)
            continue
        with transactions.transact():
            # Imports take turns; otherwise two imports could create the same new member.
            Project.objects.select_for_update(no_key=True).only("pk").get(pk=project.pk)
            background = load_context(project, good, now=now, locked=True)
            touched = _take_labels(good, background, report, as_members=as_members, store=True)
            for key in sorted(touched.said, key=lambda key: background.items[key].pk):
                resolution.update_resolution(background.items[key], now=now)
        sent |= touched.sent
    if not dry_run:
        _apply_effects(project, sent, now)
        _record(project, report, member)
    return report


def _take_labels(
    statements: list[ParsedLabel],
    background: LabelContext,
    report: LabelImportReport,
    *,
    as_members: bool,
    store: bool,
) -> _AffectedItems:
    """Process the statements one by one."""
    touched, task = _AffectedItems(), tasktypes.load_task_type(background.project)
    for one in statements:
        if fault := background.fault(one, as_members=as_members):
            report.bad.append(one.bad(*fault))
            continue
        report.off_scale += one.off_scale()
        same = background.same(one)
        if same and same.current and (same.supersedes_id or task.route_of(same.answers)):
            touched.sent.add(one.item)  # an earlier import may have stopped before routing it
        label = (
            _match_stored(one, same, background, report)
            if same
            else _new_label(one, background, report)
        )
        if label is None:
            continue
        if store:
            _save(label, one.diff)
        if label.current:
            touched.said.add(one.item)
            before = label.supersedes
            if task.route_of(label.answers) or (before and task.route_of(before.answers)):
                touched.sent.add(one.item)
    return touched


def _apply_effects(project: Project, keys: set[str], now: datetime) -> None:
    """Route the items according to their labels, as after labelling on screen."""
    stream = iter(sorted(keys))
    while batch := list(islice(stream, BATCH)):
        with transactions.transact():
            items = Item.objects.locked().in_project(project).with_keys(batch)
            for item in items.order_by("pk"):
                item.project = project
                effects.update_route(item, now=now)


def _match_stored(
    one: ParsedLabel, same: Label, background: LabelContext, report: LabelImportReport
) -> Label | None:
    """Return the stored label of a statement if the label gets its slot only now; otherwise
    None."""
    report.unchanged += 1
    if same.counted or not same.current or same.revision_id != background.revision(one).pk:
        return None
    same.slot = background.place(one)
    same.counted = same.slot is not None
    if same.slot is None:
        _note_extra(one, 0, background, report)
        return None
    background.extra[same.item_id] -= 1
    report.promoted += 1
    return same


def _new_label(one: ParsedLabel, background: LabelContext, report: LabelImportReport) -> Label:
    """Create the label of a new statement without storing it."""
    report.new += 1
    report.raters += one.rater not in background.members
    earlier, item = background.current_label(one), background.items[one.item]
    if earlier is not None and earlier.created_at > one.time:
        slot = _find_former_slot(one, earlier, background)
        label = _build_label(one, background, slot, None, current=False)
        background.sent[label.submission] = label
        report.older += 1
        return label
    slot = background.place(one)
    label = _build_label(one, background, slot, earlier, current=True)
    background.sent[label.submission] = label
    background.current[item.pk, one.rater] = label
    was_extra = earlier is not None and not earlier.counted
    if slot is None and label.revision.number == item.revision_number:
        _note_extra(one, 1 - was_extra, background, report)
    elif was_extra:
        background.extra[item.pk] = background.extra.get(item.pk, 1) - 1
    return label


def _find_former_slot(one: ParsedLabel, later: Label, background: LabelContext) -> Slot | None:
    """The slot that a label filled until the later label of the same texts replaced it, as if it
    had been imported first."""
    is_same = later.counted and later.revision_id == background.revision(one).pk
    return later.slot if is_same else None


def _note_extra(
    one: ParsedLabel, more: int, background: LabelContext, report: LabelImportReport
) -> None:
    pk = background.items[one.item].pk
    background.extra[pk] = background.extra.get(pk, 0) + more
    report.extra += 1
    report.overlap = max(report.overlap, background.places[pk] + background.extra[pk])


def _build_label(
    one: ParsedLabel,
    background: LabelContext,
    slot: Slot | None,
    supersedes: Label | None,
    *,
    current: bool,
) -> Label:
    item = background.items[one.item]
    return Label(
        project=background.project,
        item=item,
        revision=background.revision(one),
        slot=slot,
        stage=Stage.LABEL,
        member=background.member(one.rater),
        choice=one.choice,
        answers=one.answers,
        missing=one.missing,
        comment=one.comment,
        submission=one.digest(background.project.slug),
        task_type=background.project.task_type,
        taxonomy_id=background.project.taxonomy_id,
        supersedes=supersedes,
        current=current,
        counted=slot is not None,
        seconds=one.seconds,
        evaluator_seen=item.first_reply_at is not None,
        informed=one.informed,
        first_shown=one.first_shown,
        created_at=one.time,
    )


def _save(label: Label, diff: str) -> None:
    """Store a new label, or the new slot of a label that is already stored; `diff` is the algorithm
    of the diff by which its answers number the changes."""
    if label.member.pk is None:
        label.member.save()
    label.member = label.member  # copies the new id to the foreign key
    if label.slot:
        label.slot.fill(label.member.pk)
    if label.pk:
        label.save(update_fields=["slot", "counted"])
        return
    if label.supersedes:
        label.supersedes.give_way()
    label.save(force_insert=True)
    if diff:
        stored.pin_shown(label.revision, diff)
    if label.current and not label.supersedes:
        own = Membership.objects.filter(pk=label.member.pk)
        own.update(labelled=F("labelled") + 1)


def _record(project: Project, report: LabelImportReport, member: Membership | None) -> None:
    Event.record(
        "import-labels",
        project.slug,
        project_id=project.pk,
        member_id=member.pk if member else None,
        new=report.new,
        unchanged=report.unchanged,
        extra=report.extra,
        promoted=report.promoted,
        raters=report.raters,
        bad=len(report.bad),
        off_scale=len(report.off_scale),
    )
