"""Items with their revisions and diffs, and snapshots of the items of a project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import (
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    FilteredRelation,
    Min,
    OuterRef,
    Prefetch,
    Q,
    Subquery,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.utils import timezone

from annotation.db import sql
from annotation.db.counting import Tenths, count_by
from annotation.items.abilities import SUGGESTED, SUGGESTED_BY

if TYPE_CHECKING:
    from annotation.models import Project


# The columns that classify an item; the other values of its import are in `fields`.
KIND_COLUMNS = ("category", "ability", "source_ability", "origin")
# How the databases spell JSON's true and false as text.
BOOLEAN_SPELLINGS = {"True": ("true", "1"), "False": ("false", "0")}


# What items wait for: a filter of lists, and what a lead sees first.
WAITS = {
    "annotator": "Another annotator",
    "nobody": "Another annotator, but nobody is left",
    "verify": "Verification",
    "adjudicate": "A decision",
    "flag": "An answer to a flag",
    "comment": "An answer to a comment",
}


_BY_NO_LEAD = ~Q(member__role="lead")


def _unanswered() -> Q:
    """What somebody did to an item, with its time and item: no lead wrote a comment on the item
    afterwards, and nobody decided it."""
    from annotation.models import Comment, Resolution

    later = {"item": OuterRef("item"), "created_at__gte": OuterRef("created_at")}
    answers = Comment.objects.filter(member__role="lead", withdrawn_at=None, **later)
    decisions = Resolution.objects.filter(source=Resolution.Source.ADJUDICATED, **later)
    return ~Q(Exists(answers)) & ~Q(Exists(decisions))


# For rows with an item: the item is in the data set, so it is neither excluded nor for
# qualification or control. Figures count only such items, whenever an item left the data set.
IN_DATA_SET = Q(item__deleted_at=None, item__purpose="test")


class ItemQuerySet(models.QuerySet["Item"]):
    """Queries of items. They include deleted items, except `live` and the methods that use it."""

    def locked(self) -> ItemQuerySet:
        """Lock the rows for this transaction; first wait for other transactions that have locked
        them."""
        return self.select_for_update(no_key=True, of=("self",))

    def live(self) -> ItemQuerySet:
        """Leave out deleted items."""
        return self.filter(deleted_at__isnull=True)

    def in_project(self, project: Project) -> ItemQuerySet:
        """The project's items, without deleted ones."""
        return self.live().filter(project=project)

    def originals(self) -> ItemQuerySet:
        """Leave out exact duplicates."""
        return self.filter(duplicate_of__isnull=True)

    def of_tests(self) -> ItemQuerySet:
        """Leave out qualification and control items."""
        return self.filter(purpose="test")

    def sources(self, text: str) -> ItemQuerySet:
        """Return the items from which other items can be generated. Their current texts include
        this text, they are not qualification or control items, and they were not generated
        themselves."""
        return self.of_tests().with_text(text).filter(parent=None)

    def with_text(self, name: str) -> ItemQuerySet:
        """Return the items whose current texts include a text of this name."""

        revisions = Revision.objects.filter(item=OuterRef("pk"))
        current = revisions.filter(number=OuterRef("revision_number"))
        return self.filter(Exists(current.filter(texts__has_key=name)))

    def without_places(self) -> ItemQuerySet:
        """Return the items that have no slot at stage `label`, in whatever state."""
        from annotation.models import Slot

        return self.filter(~Exists(Slot.objects.filter(item=OuterRef("pk"), stage="label")))

    def count_by_stage(self, stages: Iterable[str]) -> dict[str, int]:
        """Count items by the stage at which they have a slot in use ("" for items without such a
        slot). An item with slots at several stages counts at the first of these stages."""
        from annotation.models import Slot

        slots = Slot.objects.in_use().filter(item=OuterRef("pk"))
        waits = [When(Exists(slots.at_stage(stage)), then=Value(stage)) for stage in stages]
        return count_by(self.annotate(waits_at=Case(*waits, default=Value(""))), "waits_at")

    def waiting_for(self, what: str) -> ItemQuerySet:
        """Return the items that wait for one of `WAITS`.

        A flag or a comment waits until a lead writes a comment on the item afterwards, or somebody
        decides it. For "nobody", everybody who annotates has labelled the item: members who are
        annotators, or who have labelled anything.
        """
        from annotation.models import RIGHTS, Comment, Label, Mark, Membership, Slot

        slots = Slot.objects.filter(item=OuterRef("pk"))
        labels = Label.objects.current().filter(item=OuterRef("pk"))
        comments = Comment.objects.filter(item=OuterRef("pk"), withdrawn_at=None)
        flags = Mark.objects.in_force().filter(item=OuterRef("pk"), kind="flag")
        at_work = slots.at_stage("label")
        begun = Exists(at_work.in_use()) & Exists(at_work.filter(state="filled"))
        own = Slot.objects.at_stage("label").filter(
            item=OuterRef(OuterRef("pk")), member=OuterRef("pk"), state="filled"
        )
        people = Membership.objects.with_role_in(RIGHTS["label"]).filter(~Exists(own))
        annotate = Q(role="annotator") | Q(labelled__gt=0)
        is_left = Exists(people.filter(annotate, project=OuterRef("project")))
        conditions = {
            "annotator": begun & is_left,
            "nobody": begun & ~is_left,
            "verify": Exists(slots.at_stage("verify").in_use()),
            "adjudicate": Exists(slots.at_stage("adjudicate").in_use()),
            "flag": Exists(flags.filter(_unanswered())),
            "comment": Exists(comments.filter(_unanswered(), _BY_NO_LEAD))
            | Exists(labels.exclude(comment="").filter(_unanswered(), _BY_NO_LEAD)),
        }
        return self.filter(conditions[what])

    def lacking(self, text: str) -> ItemQuerySet:
        """Return the items whose current texts do not include a text of this name."""
        return self.exclude(pk__in=self.with_text(text).values("pk"))

    def first_of_clusters(self) -> ItemQuerySet:
        """Return the first item of this queryset, which must be of one project, for each source
        question."""
        # Grouped, since SQLite would compare each item with all items before it.
        firsts = self.order_by().values("cluster").annotate(first=Min("position"))
        return self.filter(position__in=firsts.values("first"))

    def resolved_as(self, value: str) -> ItemQuerySet:
        """Return the items whose current final label is this value, or has this score, given as
        FIELD:NUMBER."""
        held = self._resolutions().filter(item=OuterRef("pk"))
        return self.filter(Exists(with_choice(held, "value", "values", value)))

    def resolved_as_one_of(self, values: Iterable[str]) -> ItemQuerySet:
        """Return the items whose current final label is one of these values."""
        held = self._resolutions().filter(item=OuterRef("pk"), value__in=list(values))
        return self.filter(Exists(held))

    def not_resolved_as(self, value: str) -> ItemQuerySet:
        """Return the items with a different final label or none."""
        held = self._resolutions().filter(item=OuterRef("pk"), value=value)
        return self.filter(~Exists(held))

    def unresolved(self) -> ItemQuerySet:
        """Return the items without a current final label."""
        return self.filter(~Exists(self._resolutions().filter(item=OuterRef("pk"))))

    def flagged(self, flag: str) -> ItemQuerySet:
        """Return the items with this flag."""
        # SQLite cannot search a JSON list; flags are slugs, so their quotes delimit them.
        return self.annotate(flags_text=Cast("flags", models.TextField())).filter(
            flags_text__contains=f'"{flag}"'
        )

    def with_key_like(self, part: str) -> ItemQuerySet:
        """Return the items whose key contains this text, ignoring case."""
        return self.filter(key__icontains=part)

    def for_list(self) -> ItemQuerySet:
        """Load everything that a list of items shows, but no texts."""
        return self.with_resolution().select_related("duplicate_of").defer("fields")

    def for_page(self, key: str, *, with_texts: bool = False) -> Item | None:
        """Return the item with this key and everything that its page shows; None if no item has the
        key. The texts of its revisions, of which the page shows one, are loaded at once only
        `with_texts`."""
        if "\0" in key:  # PostgreSQL refuses to search for it
            return None
        revisions = Revision.objects.select_related("author")
        if not with_texts:
            revisions = revisions.defer("texts")
        found = self.with_resolution().filter(key=key)
        return (
            found.select_related("duplicate_of", "project__task_type")
            .prefetch_related(Prefetch("revisions", revisions))
            .first()
        )

    def excluded(self, project: Project, key: str) -> Item | None:
        """Return the project's item with this key if it was excluded, otherwise None."""
        if "\0" in key:  # PostgreSQL refuses to search for it
            return None
        return self.filter(project=project, key=key, deleted_at__isnull=False).first()

    def with_resolution(self) -> ItemQuerySet:
        """Add `resolution`, `resolution_source` and `resolution_rule`; null for items without a
        resolution."""
        settled = self._resolutions().filter(item=OuterRef("pk"))
        return self.annotate(
            resolution=Subquery(settled.values("value")[:1]),
            resolution_source=Subquery(settled.values("source")[:1]),
            resolution_rule=Subquery(settled.values("rule")[:1]),
        )

    def behind(self, item_id: int) -> ItemQuerySet:
        """Return the items that follow this item in the order of `work_slots`."""
        return self.filter(pk__gt=item_id)

    def work_slots(self) -> models.QuerySet[Any, Any]:
        """Return rows (id, key, number of regular slots that are not closed) of the items to label,
        in the order of their ids. Regular slots are the slots of the overlap and of the
        double-annotated sample."""
        slots = Q(slots__stage="label", slots__reason__in=["", "share", "waived"])
        is_kept = ~Q(slots__state="closed") | Q(slots__reason="waived")
        counted = Count("slots", filter=slots & is_kept)
        work = self.filter(slots__stage="label", purpose="test").order_by("pk")
        return work.annotate(work_slots=counted).values_list("pk", "key", "work_slots")

    def at_work(self) -> ItemQuerySet:
        """Return the items that have slots at stage `label`, open or not."""
        from annotation.models import Slot

        slots = Slot.objects.filter(item=OuterRef("pk"), stage="label")
        return self.filter(Exists(slots), purpose="test")

    def at_positions(self, positions: Iterable[int]) -> ItemQuerySet:
        """Return the items at these positions, in order, without loading their `fields`. Positions
        are numbered per project, so filter by project too."""
        found = self.filter(position__among=list(positions))
        return found.order_by("position").defer("fields")

    def having(self, fields: Mapping[str, Any]) -> ItemQuerySet:
        """Return the items with these values in `KIND_COLUMNS` or in their own fields. A field that
        is a list matches if it contains the value."""
        columns = {name: str(value) for name, value in fields.items() if name in KIND_COLUMNS}
        own = {name: value for name, value in fields.items() if name not in KIND_COLUMNS}
        return _with_json_values(self.filter(**columns), "fields", own)

    def answered(self, answers: Mapping[str, Any]) -> ItemQuerySet:
        """Return the items whose resolution has these answers to fields other than the deciding
        field. A list of choices matches if it contains the answer."""
        held = _with_json_values(self._resolutions().filter(item=OuterRef("pk")), "values", answers)
        return self.filter(Exists(held))

    def said_to_be(
        self, annotator: str, choice: str, longer_than: float | None = None, wrote: str = ""
    ) -> ItemQuerySet:
        """Return the items with a current label at stage `label` that is by this annotator, has
        this choice (or score, given as FIELD:NUMBER), took more than `longer_than` seconds and has
        an answer in the field `wrote`; "" and None mean any."""
        from annotation.models import Label

        labels = Label.objects.filter(item=OuterRef("pk"), stage="label", current=True)
        labels = labels.of_people([annotator]) if annotator else labels
        labels = with_choice(labels, "choice", "answers", choice) if choice else labels
        if longer_than is not None:
            # Times are compared in tenths of a second.
            labels = labels.alias(tenths=Tenths("seconds")).filter(
                tenths__gt=round(10 * longer_than)
            )
        if wrote:
            # Cast to text: otherwise SQLite would compare it as JSON.
            said = Cast(KeyTextTransform(wrote, "answers"), models.TextField())
            labels = labels.alias(wrote=said).exclude(Q(wrote=None) | Q(wrote=""))
        return self.filter(Exists(labels))

    def with_keys(self, keys: Iterable[str]) -> ItemQuerySet:
        """Return the items with these keys; keys that a database cannot store are ignored."""
        return self.filter(key__in=[key for key in keys if "\0" not in key])

    def on_the_desk_of(self, member_id: int) -> ItemQuerySet:
        """Return the items that the member has reserved, skipped or flagged, or for which the
        member has a draft."""
        from annotation.models import Draft, Mark, Slot

        marks = Mark.objects.in_force().filter(member=member_id)
        parts = (Slot.objects.held_by(member_id), marks, Draft.objects.of_member(member_id))
        held, marked, begun = (Exists(part.filter(item=OuterRef("pk"))) for part in parts)
        return self.filter(held | marked | begun)

    def unlabelled(self) -> ItemQuerySet:
        """Return the items without a current label at stage `label`."""
        from annotation.models import Label

        labels = Label.objects.filter(item=OuterRef("pk"), stage="label", current=True)
        return self.filter(~Exists(labels))

    def with_current_texts(self) -> ItemQuerySet:
        """Add `current_revisions`, a list of one revision; they are fetched in chunks during
        iteration."""

        current = Revision.objects.filter(number=F("item__revision_number"))
        return self.prefetch_related(Prefetch("revisions", current, to_attr="current_revisions"))

    def with_revision(self) -> ItemQuerySet:
        """Let `revision__` columns of a query belong to the current revision."""
        return self.annotate(revision=_only("revisions", number=F("revision_number")))

    def values_as_text(self, *columns: str) -> models.QuerySet[Any, tuple[Any, ...]]:
        """Return tuples of these columns, with JSON as text. `revision__` columns belong to the
        current revision, `held__` columns to the current resolution. `repeats` is the key of the
        item that the item duplicates, `made_from` the key of its parent."""
        others = self.model._default_manager.order_by()
        joined = self.with_revision().annotate(
            held=_only("resolutions", current=True),
            repeats=Subquery(others.filter(pk=OuterRef("duplicate_of")).values("key")),
            made_from=Subquery(others.filter(pk=OuterRef("parent")).values("key")),
        )
        return joined.values_list(*map(_as_text, columns))

    def with_known_answer(self, purpose: str) -> ItemQuerySet:
        """Return the items with this purpose and a known correct answer for the current texts, by
        position."""
        known = self._resolutions().filter(
            item=OuterRef("pk"),
            source="known",
            revision__number=OuterRef("revision_number"),
        )
        return self.filter(Exists(known), purpose=purpose).order_by("position")

    def for_purposes(self, purposes: Iterable[str]) -> ItemQuerySet:
        """Return the items with one of these purposes, by position."""
        return self.filter(purpose__in=list(purposes)).order_by("position")

    def untouched_by(self, member_id: int) -> ItemQuerySet:
        """Return the items that the member has not labelled, skipped or reserved at any stage."""
        from annotation.models import Label, Mark, Slot

        mine = {"item": OuterRef("pk"), "member_id": member_id}
        skipped = Mark.objects.in_force().filter(kind="skip", **mine)
        labelled, held = Label.objects.filter(**mine), Slot.objects.filter(**mine)
        return self.filter(~Exists(labelled), ~Exists(held), ~Exists(skipped))

    def values_of(self, name: str) -> list[str]:
        """Return the distinct non-empty values of a column in `KIND_COLUMNS` or of an item's own
        field, as sorted strings."""
        value = F(name) if name in KIND_COLUMNS else KeyTransform(name, "fields")
        found = self.order_by().annotate(one=value).values_list("one", flat=True).distinct()
        return sorted({str(value) for value in found if value not in (None, "")})

    def _resolutions(self) -> models.QuerySet[Any]:
        from annotation.models import Resolution

        return Resolution.objects.filter(current=True)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Count items by project id; projects without items are left out."""
        return count_by(self.filter(project__in=projects), "project")

    def by_category_and_repeats(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Return a dict for each ability and category that has items: `items` is their number
        without duplicates, `repeats` the number of duplicates."""
        repeating = Q(duplicate_of__isnull=False)
        return (
            self.values("ability", "category")
            .annotate(items=Count("pk", filter=~repeating), repeats=Count("pk", filter=repeating))
            .order_by()
        )

    def by_category(self) -> models.QuerySet[Any, dict[str, Any]]:
        """Return a dict for each ability and category; `items` is the number of its items,
        including duplicates."""
        return self.values("ability", "category").annotate(items=Count("pk")).order_by()

    def of_cluster(self, item: Item) -> ItemQuerySet:
        """Return the other items with the same source question."""
        return self.filter(cluster=item.cluster).exclude(pk=item.pk).order_by("position")


def _only(relation: str, **conditions: Any) -> FilteredRelation:
    wanted = {f"{relation}__{name}": value for name, value in conditions.items()}
    return FilteredRelation(relation, condition=Q(**wanted))


def _as_text(column: str) -> str | ExpressionWrapper:
    """Return an expression for a column; JSON columns give their text, so that it is not parsed."""
    is_json = column.rpartition("__")[2] in ("fields", "flags", "texts", "values")
    return ExpressionWrapper(F(column), models.TextField()) if is_json else column


def with_choice(found: Any, column: str, answers: str, choice: str) -> Any:
    """Return the labels or resolutions with this choice in `column`. For FIELD:NUMBER, return those
    with this score among their `answers`, a JSON column."""
    name, colon, score = choice.partition(":")  # no choice has a colon
    if colon:
        return _with_json_values(found, answers, {name: score})
    return found.filter(**{column: choice})


def _with_json_values(found: Any, column: str, values: Mapping[str, Any]) -> Any:
    """Return the rows that have all these values in a JSON column. A stored list matches if it
    contains the value."""
    for place, (name, value) in enumerate(values.items()):
        own, among = f"{column}_{place}", json.dumps(str(value), ensure_ascii=False)
        listed = Q(**{f"{own}__startswith": "[", f"{own}__contains": among})
        # Cast to text: otherwise SQLite would compare it as JSON.
        text = Cast(sql.ObjectKeyText(name, column), models.TextField())
        same = {f"{own}__in": [str(value), *BOOLEAN_SPELLINGS.get(str(value), ())]}
        found = found.alias(**{own: text}).filter(Q(**same) | listed)
    return found


if TYPE_CHECKING:
    from annotation.models import Project

_NUMBER = re.compile("[0-9]{1,9}")


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    def in_project(self, project: Project) -> SnapshotQuerySet:
        """Return the project's snapshots, including incomplete snapshots."""
        return self.filter(project=project)

    def completed(self) -> SnapshotQuerySet:
        """Return the snapshots that are completely stored."""
        return self.filter(made_at__isnull=False)

    def numbered(self, number: str) -> Snapshot | None:
        """Return the snapshot with this number, a text of one to nine digits; None if there is
        none."""
        return self.filter(number=int(number)).first() if _NUMBER.fullmatch(number) else None

    def named(self, name: str) -> Snapshot | None:
        """Return the snapshot with this name, complete or not; None if there is none."""
        return self.filter(name=name).first()

    def before(self, one: Snapshot) -> Snapshot | None:
        """Return the snapshot before `one`; None if it is the first."""
        return self.filter(number__lt=one.number).order_by("-number").first()

    def for_list(self) -> SnapshotQuerySet:
        """Order from the latest to the earliest, and load the members and jobs."""
        return self.select_related("member", "job").order_by("-number")

    def left_over(self) -> SnapshotQuerySet:
        """Return the incomplete snapshots whose job has ended."""
        return self.filter(made_at=None, job__finished_at__isnull=False)


class FrozenQuerySet(models.QuerySet[Any]):
    """States of items in a snapshot."""

    def of_snapshot(self, snapshot: Snapshot) -> FrozenQuerySet:
        return self.filter(snapshot=snapshot)

    def absent_from(self, other: Snapshot) -> FrozenQuerySet:
        """Return the states of items that are not in the other snapshot."""
        return self.filter(~Exists(self._in(other)))

    def changed_since(self, other: Snapshot) -> FrozenQuerySet:
        """Return the states of items whose state differs in the other snapshot; `before` is the id
        of that other state."""
        rows = self._in(other)
        there = self.filter(Exists(rows.exclude(frozen=OuterRef("frozen"))))
        return there.annotate(before=Subquery(rows.values("frozen")[:1]))

    def retexted(self) -> FrozenQuerySet:
        """Return the changed states in which the revision of the texts differs."""
        return self._unlike("revision")

    def reheld(self) -> FrozenQuerySet:
        """Return the changed states in which the resolution differs."""
        return self._unlike("value")

    def _unlike(self, column: str) -> FrozenQuerySet:

        earlier = Frozen.objects.filter(pk=OuterRef("before"))
        return self.filter(~Exists(earlier.filter(**{column: OuterRef(f"frozen__{column}")})))

    def _in(self, other: Snapshot) -> FrozenQuerySet:
        rows: FrozenQuerySet = self.model.objects.filter(snapshot=other, item=OuterRef("item"))
        return rows


class Item(models.Model):
    """One item to judge. Its texts are in its revisions."""

    # Several indexes of items begin with the project.
    project = models.ForeignKey("Project", models.PROTECT, related_name="items", db_index=False)
    key = models.CharField(max_length=200)
    position = models.PositiveIntegerField(help_text="Position in the queue and in lists.")
    category = models.CharField(max_length=80)
    ability = models.CharField(max_length=80)
    source_ability = models.CharField(
        max_length=80, blank=True, help_text="Ability of the gold answer."
    )
    cluster = models.CharField(
        max_length=64,
        help_text="Digest of the source question; items with the same digest are not independent.",
    )
    origin = models.CharField(max_length=40, blank=True)
    # Most items have neither, and the indexes leave such items out.
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", db_index=False
    )
    duplicate_of = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="duplicates", db_index=False
    )
    dose = models.PositiveSmallIntegerField(null=True, blank=True)
    purpose = models.CharField(max_length=20, default="test")
    fields = models.JSONField(default=dict, blank=True)
    flags = models.JSONField(default=list, blank=True)
    revision_number = models.PositiveIntegerField(default=1)
    first_reply_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ItemQuerySet.as_manager()
    # Set by `with_current_texts`.
    current_revisions: list[Revision]

    class Meta:
        ordering = ["project_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="item_key"),
            models.UniqueConstraint(fields=["project", "position"], name="item_position"),
        ]
        indexes = [
            models.Index(fields=["project", "category", "position"], name="item_category"),
            models.Index(fields=["project", "purpose"], name="item_purpose"),
            models.Index(fields=["project", "cluster"], name="item_cluster"),
            models.Index(
                fields=["parent"], condition=models.Q(parent__isnull=False), name="item_parent"
            ),
            models.Index(
                fields=["duplicate_of"],
                condition=models.Q(duplicate_of__isnull=False),
                name="item_duplicate_of",
            ),
        ]

    def __str__(self) -> str:
        return self.key

    def revision(self, number: int | None = None) -> Revision:
        """Return the revision with this number, by default the current revision."""
        return self.revisions.get(number=self.revision_number if number is None else number)

    def sort_into(self, ability: str) -> None:
        """Set the ability of the item and of its unchanged answer (`source_ability`)."""
        self.ability = self.source_ability = ability
        self.save(update_fields=["ability", "source_ability"])

    def suggest(self, ability: str, by: str) -> bool:
        """Store a suggested ability, replacing an earlier one. Return False if it is already
        stored."""
        said = {SUGGESTED: ability, SUGGESTED_BY: by}
        if self.fields.items() >= said.items():
            return False
        self.fields = {**self.fields, **said}
        self.save(update_fields=["fields"])
        return True

    def value_of(self, name: str) -> Any:
        """Return the value of a column in `KIND_COLUMNS`, otherwise of the item's own field; None
        if it has no such field."""
        return getattr(self, name) if name in KIND_COLUMNS else self.fields.get(name)


class Revision(models.Model):
    """A numbered version of all texts of an item. Never updated."""

    # The constraint `revision_number` already has an index that begins with the item.
    item = models.ForeignKey(Item, models.PROTECT, related_name="revisions", db_index=False)
    number = models.PositiveIntegerField()
    texts = models.JSONField()
    digest = models.CharField(max_length=64)
    author = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True, db_index=False)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    # Use the diff without a query if it was loaded with the revision.
    stored_diff: Diff | None = None

    class Meta:
        ordering = ["item_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["item", "number"], name="revision_number"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="revision_from_one"),
        ]
        indexes = [
            models.Index(
                fields=["author"], condition=models.Q(author__isnull=False), name="revision_author"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item.key} r{self.number}"


class WordsField(models.TextField):
    """The words that a search finds: a `tsvector` on PostgreSQL, text on SQLite."""

    def db_type(self, connection: Any) -> str:
        """Return the type of the column."""
        return "tsvector" if connection.vendor == "postgresql" else "text"


@WordsField.register_lookup
class Matches(sql.LookupBase):
    """The lookup `words__matches=query`: the words match a query of `annotation.items.search`."""

    lookup_name = "matches"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the condition: of `tsquery` on PostgreSQL, of FTS5 on SQLite."""
        column, given = self.process_lhs(compiler, connection)
        if connection.vendor == "postgresql":
            return f"{column} @@ %s::tsquery", (*given, self.rhs)
        item = column.replace('"words"', '"item_id"')
        found = "SELECT rowid FROM annotation_searchwords WHERE annotation_searchwords MATCH %s"
        return f"{item} IN ({found})", (*given, self.rhs)


class SearchText(models.Model):
    """The words of an item for the search, null until a worker has stored them.

    Triggers add a row for each item, and mark it as due when the item's texts or comments change.
    """

    item = models.OneToOneField(
        Item, models.CASCADE, primary_key=True, related_name="search_text", db_constraint=False
    )
    words = WordsField(null=True)
    due = models.BooleanField(default=True)

    class Meta:
        indexes = [
            models.Index(fields=["item"], condition=models.Q(due=True), name="search_due"),
        ]

    def __str__(self) -> str:
        return f"words of {self.item.key}"


class Diff(models.Model):
    """The diff of a revision by one version of the diff algorithm; computed when first needed.

    The first label with an answer to a single change pins the diff on which it was given: answers
    name changes by their number, so people are shown this diff of the revision from then on, also
    after an update brings another algorithm.
    """

    revision = models.ForeignKey(Revision, models.CASCADE, related_name="diffs")
    algorithm = models.CharField(max_length=20)
    segments = models.JSONField()
    edit_size = models.FloatField()
    place = models.FloatField(null=True)
    pinned = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["revision", "algorithm"], name="diff_algorithm")
        ]

    def __str__(self) -> str:
        return f"diff of {self.revision} by {self.algorithm}"


class Snapshot(models.Model):
    """A named version of a project. Once it is complete, database triggers reject any change.

    `digest` depends only on the items in their order: their keys, texts, resolutions and other
    facts. Two installations with the same data have the same digest. It is "" until the snapshot is
    complete.
    """

    project = models.ForeignKey("Project", models.PROTECT, related_name="snapshots")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=80)
    note = models.TextField(blank=True)
    member = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    job = models.ForeignKey("Job", models.PROTECT, null=True, blank=True, related_name="+")
    digest = models.CharField(max_length=64, blank=True)
    items = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    made_at = models.DateTimeField(null=True, blank=True)

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        ordering = ["project_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="snapshot_number"),
            models.UniqueConstraint(fields=["project", "name"], name="snapshot_name"),
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} {self.name}"


class Frozen(models.Model):
    """The state of an item. All snapshots share it until the item changes.

    `facts` are described in `annotation.items.snapshots.facts`; `digest` is their digest. `value`
    is the item's resolution, "" if it had none.
    """

    item = models.ForeignKey("Item", models.PROTECT, related_name="frozen")
    revision = models.ForeignKey("Revision", models.PROTECT, related_name="+")
    value = models.CharField(max_length=40, blank=True)
    facts: Any = models.JSONField()
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "digest"], name="frozen_once"),
        ]

    def __str__(self) -> str:
        return f"{self.item.key} {self.digest[:8]}"


class FrozenIn(models.Model):
    """Links a snapshot to the state of one of its items."""

    snapshot = models.ForeignKey(Snapshot, models.PROTECT, related_name="frozen")
    item = models.ForeignKey("Item", models.PROTECT, related_name="+", db_index=False)
    frozen = models.ForeignKey(Frozen, models.PROTECT, related_name="+")

    objects = FrozenQuerySet.as_manager()

    # The id of the item's state in another snapshot; set by `changed_since`.
    before: int | None = None

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["snapshot", "item"], name="frozen_in_snapshot"),
        ]

    def __str__(self) -> str:
        return f"{self.snapshot}: {self.frozen}"
