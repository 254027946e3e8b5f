"""What a project holds already that labels made elsewhere speak of, and what they may add to it."""

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, F

from annotation.importing.label_rows import ParsedLabel
from annotation.labelling.correct_answers import PURPOSES
from annotation.models import Item, Label, Membership, Project, Revision, Role, Slot, Stage


@dataclass
class LabelContext:
    """Items by key, members by alias, labels by submission; the rest by the ids of items.

    It grows as statements are taken in. `free` are places for counted labels that nobody has,
    `own` those of the raters; `places` counts all of an item, `extra` its labels without one.
    In a dry run members, labels and what becomes of places are imagined.
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
        """The same, where something was imagined before as it was imagined."""
        names = set(self.__dataclass_fields__) - {"project"}
        merged = {name: getattr(self, name) | getattr(imagined, name) for name in names}
        return LabelContext(self.project, **merged)

    def same(self, one: ParsedLabel) -> Label | None:
        """The label that this very statement made before."""
        return self.sent.get(one.digest(self.project.slug))

    def said(self, one: ParsedLabel) -> Label | None:
        """The rater's label of the item that is in force."""
        return self.current.get((self.items[one.item].pk, one.rater))

    def member(self, alias: str) -> Membership:
        """The rater's place in the project, a new one if there is none; not stored."""
        new = Membership(project=self.project, alias=alias, role=Role.ANNOTATOR)
        return self.members.setdefault(alias, new)

    def revision(self, one: ParsedLabel) -> Revision:
        """The revision that the statement speaks of, without its texts."""
        item = self.items[one.item]
        number = one.revision or item.revision_number
        return Revision(pk=self.revisions[item.pk, number], item=item, number=number)

    def place(self, one: ParsedLabel) -> Slot | None:
        """The rater's own place of the item, else a free one, which is taken; None for a label of
        texts that were corrected since."""
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
        """Why the statement cannot be a label here, as field and reason; None if it can."""
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
        """Why the statement contradicts a label that is here, if it does."""
        same, said = self.same(one), self.said(one)
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
    """What is known of the items and raters of the statements.

    `locked`, inside a transaction, locks the members, then the items, then their places, each in
    one order, as everybody does who labels.
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
    slots = Slot.objects.at(background.project.pk, Stage.LABEL).filter(item__in=items)
    slots = slots.exclude(state=Slot.State.CLOSED).order_by("item", "number")
    for slot in slots.locked() if locked else slots:
        background.places[slot.item_id] += 1
        if slot.member_id in aliases:
            background.own[slot.item_id, aliases[slot.member_id]] = slot
        expired = slot.held_until is not None and slot.held_until <= now
        if slot.state == Slot.State.OPEN or expired:
            background.free[slot.item_id].append(slot)


def _why_closed(item: Item) -> str:
    """Why labels of the item are not taken, if they are not."""
    if item.deleted_at:
        return "is an item that was removed from the project."
    if item.duplicate_of_id:
        return "is a duplicate. Name the original."
    if item.purpose in PURPOSES:
        return f"names an item of purpose {item.purpose}; labels of such items cannot be imported."
    return ""
