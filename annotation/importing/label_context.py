"""The project's items, members, labels and slots that imported labels refer to."""

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, F

from annotation.importing.label_rows import ParsedLabel
from annotation.labelling.correct_answers import PURPOSES
from annotation.models import Item, Label, Membership, Project, Revision, Role, Slot, Stage


@dataclass
class LabelContext:
    """Items by key, members by alias, labels by submission; the rest by item ids.

    It grows as statements are processed. `free` are unfilled slots for counted labels, `own` those
    of the raters; `places` is the number of slots of an item, `extra` its labels without a slot. In
    a dry run, members, labels and the use of slots are imagined.
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
        """This context, overridden by what was imagined before."""
        names = set(self.__dataclass_fields__) - {"project"}
        merged = {name: getattr(self, name) | getattr(imagined, name) for name in names}
        return LabelContext(self.project, **merged)

    def same(self, one: ParsedLabel) -> Label | None:
        """The label that was made from exactly this statement."""
        return self.sent.get(one.digest(self.project.slug))

    def current_label(self, one: ParsedLabel) -> Label | None:
        """The rater's current label of the item."""
        return self.current.get((self.items[one.item].pk, one.rater))

    def member(self, alias: str) -> Membership:
        """The rater's membership; a new one, not stored, if there is none."""
        new = Membership(project=self.project, alias=alias, role=Role.ANNOTATOR)
        return self.members.setdefault(alias, new)

    def revision(self, one: ParsedLabel) -> Revision:
        """The revision that the statement refers to, without its texts."""
        item = self.items[one.item]
        number = one.revision or item.revision_number
        return Revision(pk=self.revisions[item.pk, number], item=item, number=number)

    def place(self, one: ParsedLabel) -> Slot | None:
        """The rater's own slot of the item, else a free one, which is taken; None for a label of an
        older revision of the texts."""
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
        """Why the statement cannot become a label here, as (field, reason); None if it can."""
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
        return self._clash(one, item)

    def _clash(self, one: ParsedLabel, item: Item) -> tuple[str, str] | None:
        """Why the statement contradicts an existing label; None if it does not."""
        same, said = self.same(one), self.current_label(one)
        if same:
            alike = (same.comment, same.seconds) == (one.comment, one.seconds)
            return (
                None
                if alike
                else ("", ("is already imported with another comment or other seconds."))
            )
        if said and said.created_at == one.time:
            return "time", "is also the time of another label by this rater for this item."
        of_older_texts = (one.revision or item.revision_number) < item.revision_number
        if said and said.counted and of_older_texts and said.created_at < one.time:
            return "revision", "is older than that of an earlier label of this rater."
        return None


def load_context(
    project: Project, statements: list[ParsedLabel], *, now: datetime, locked: bool
) -> LabelContext:
    """Load the context for the items and raters of the statements.

    `locked`, inside a transaction, locks the members, then the items, then their slots, each in a
    fixed order, which is the same order as in labelling.
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
    """Why labels of the item are not accepted; "" if they are."""
    if item.deleted_at:
        return "is an item that was removed from the project."
    if item.duplicate_of_id:
        return "is a duplicate. Name the original."
    if item.purpose in PURPOSES:
        return f"names an item of purpose {item.purpose}; labels of such items cannot be imported."
    return ""
