"""Labels of members, and the resolutions of items."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Count, Exists, ExpressionWrapper, F, Max, OuterRef, Q, Subquery, Sum
from django.utils import timezone

from annotation.db.counting import count_by
from annotation.items.models import IN_DATA_SET, Diff
from annotation.labelling.models.slots import Slot, Stage

if TYPE_CHECKING:
    from annotation.models import Account, Item, Project

# The classes of design 1: how an item with this resolution is used in a run.
ERROR_ITEM = "valid"
SI_ITEM = "score-invariant"
# The square of a key, kept so small that SQLite can add up many millions of them.
_MIXED_KEY = ExpressionWrapper(F("pk") * F("pk") % 1_000_000_007, models.BigIntegerField())


class LabelQuerySet(models.QuerySet[Any]):
    def in_project(self, project: Project) -> LabelQuerySet:
        return self.filter(project=project)

    def for_export(self) -> LabelQuerySet:
        """All labels, oldest first, with the related objects that an exported row names."""
        named = ("item", "revision", "member", "task_type", "guidelines", "supersedes", "slot")
        bulky = ("revision__texts", "item__fields", "task_type__definition", "guidelines__text")
        return self.select_related(*named).defer(*bulky).oldest_first()

    def oldest_first(self) -> LabelQuerySet:
        return self.order_by("created_at", "pk")

    def current(self) -> LabelQuerySet:
        return self.filter(current=True)

    def counted(self) -> LabelQuerySet:
        return self.filter(current=True, counted=True)

    def of_current_texts(self) -> LabelQuerySet:
        """Current labels of the texts that their items have now."""
        return self.current().filter(revision__number=F("item__revision_number"))

    def of_item(self, item: Item) -> LabelQuerySet:
        return self.filter(item=item)

    def of_revision(self, revision: Any) -> LabelQuerySet:
        return self.filter(revision=revision)

    def at_stage(self, stage: str) -> LabelQuerySet:
        return self.filter(stage=stage)

    def at_stages(self, stages: Iterable[str]) -> LabelQuerySet:
        return self.filter(stage__in=list(stages))

    def of_member(self, member_id: int) -> LabelQuerySet:
        return self.filter(member_id=member_id)

    def for_my_items(self, key: str = "", choice: str = "", category: str = "") -> LabelQuerySet:
        """Labels of live items, with their items, the latest first; filtered by part of the key,
        choice and category if given."""
        found = self.filter(item__deleted_at__isnull=True)
        if key:
            found = found.filter(item__key__icontains=key.replace("\0", ""))
        if choice:
            found = found.filter(choice=choice)
        if category:
            found = found.filter(item__category=category)
        return found.select_related("item").defer("item__fields").order_by("-created_at", "-pk")

    def for_items(self, items: Iterable[Item]) -> LabelQuerySet:
        return self.filter(item__in=list(items)).select_related("revision")

    def of_people(self, aliases: Iterable[str]) -> LabelQuerySet:
        return self.filter(member__alias__in=list(aliases))

    def of_others_than(self, member_id: int | None) -> LabelQuerySet:
        return self.exclude(member_id=member_id)

    def with_confirmed(self) -> LabelQuerySet:
        """Annotate each label, from verification, with `confirmed`: True if the item's verified
        resolution comes from it."""

        made = Resolution.objects.filter(
            item=OuterRef("item"),
            revision=OuterRef("revision"),
            rule="verified",
            created_at=OuterRef("created_at"),
        )
        return self.annotate(confirmed=Exists(made))

    def timed(self) -> LabelQuerySet:
        return self.filter(seconds__isnull=False)

    def since(self, time: datetime) -> LabelQuerySet:
        return self.filter(created_at__gte=time)

    def of_live_items(self) -> LabelQuerySet:
        return self.filter(item__deleted_at__isnull=True)

    def answering(self, name: str) -> LabelQuerySet:
        """Labels that answer the field of this name."""
        return self.filter(answers__has_key=name)

    def of_account(self, account: Account) -> LabelQuerySet:
        return self.filter(member__account=account)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Label counts by project id; projects without labels are left out."""
        return count_by(self.filter(project__in=projects), "project")

    def with_diff(self) -> LabelQuerySet:
        """Annotate each label with `diff`: the algorithm of the pinned diff of its revision."""
        pinned = Diff.objects.filter(revision=OuterRef("revision"), pinned=True)
        return self.annotate(diff=Subquery(pinned.values("algorithm")))

    def for_page(self) -> LabelQuerySet:
        """All labels, oldest first, with their members and revisions."""
        return (
            self.select_related("member", "revision")
            .defer("revision__texts")
            .order_by("created_at", "pk")
        )

    def not_counted(self) -> LabelQuerySet:
        return self.exclude(current=True, counted=True)

    def for_strip(self) -> LabelQuerySet:
        """Labels of live items, with their items but without texts."""
        return self.filter(item__deleted_at=None).select_related("item").defer("item__fields")

    def by_member(self, member_id: int, stage: str) -> LabelQuerySet:
        return self.filter(member_id=member_id, stage=stage).order_by("-created_at", "-pk")

    def latest_first(self) -> LabelQuerySet:
        return self.order_by("-created_at", "-pk")

    def in_data_set(self) -> LabelQuerySet:
        """Leave out labels of excluded, qualification and control items."""
        return self.filter(IN_DATA_SET)

    def for_agreement(self, project: Project, stage: str, category: str = "") -> LabelQuerySet:
        """Labels of live items at a stage that were not withdrawn, in the order given."""
        found = self.filter(
            project=project, stage=stage, withdrawn_at=None, item__deleted_at=None
        ).oldest_first()
        if "\0" in category:  # PostgreSQL refuses to search for it
            return found.none()
        return found.filter(item__category=category) if category else found

    def state(self) -> dict[str, int | None]:
        """Numbers that change whenever labels are given, superseded, withdrawn or no longer
        counted, or other labels are among these."""
        said = self.filter(withdrawn_at=None, item__deleted_at=None).order_by()
        return said.aggregate(
            labels=Count("pk"),
            last=Max("pk"),
            all=Sum("pk"),
            # Other labels can have the same sum, as those of two items by two people often do.
            mixed=Sum(_MIXED_KEY),
            current=Sum(_MIXED_KEY, filter=Q(current=True)),
            counted=Sum(_MIXED_KEY, filter=Q(counted=True)),
        )


class ResolutionQuerySet(models.QuerySet[Any]):
    def current(self) -> ResolutionQuerySet:
        return self.filter(current=True)

    def of_current_texts(self) -> ResolutionQuerySet:
        return self.current().filter(revision__number=F("item__revision_number"))

    def of_project(self, project: Project) -> ResolutionQuerySet:
        return self.filter(item__project=project)

    def for_purposes(self, purposes: Iterable[str]) -> ResolutionQuerySet:
        return self.filter(item__purpose__in=list(purposes), item__deleted_at=None)

    def for_list(self) -> ResolutionQuerySet:
        """These labels, oldest first, without texts."""
        shown = self.select_related("item", "revision", "member").order_by("pk")
        return shown.defer("revision__texts", "item__fields")

    def adjudicated_in(self, project: Project) -> ResolutionQuerySet:
        """The current adjudicated resolutions of live items, the latest first."""
        decided = self.current().filter(item__project=project, source="adjudicated")
        live = decided.filter(item__deleted_at=None).select_related("item", "member")
        return live.order_by("-created_at", "-pk")

    def judgeable(self, values: Iterable[str] | None = None) -> ResolutionQuerySet:
        """Resolutions of items that evaluators can be tested with; with `values`, only resolutions
        with one of these values."""
        found = self.filter(IN_DATA_SET)
        return found if values is None else found.filter(value__in=list(values))

    def in_data_set(self) -> ResolutionQuerySet:
        """Current resolutions of the current texts of items in the data set, without
        duplicates."""
        return self.of_current_texts().filter(IN_DATA_SET, item__duplicate_of=None)

    def known(self) -> ResolutionQuerySet:
        """Known answers of qualification and control items."""
        return self.filter(source="known")

    def of_item(self, item: Item) -> ResolutionQuerySet:
        return self.filter(item=item)

    def made_by(self, decision: Label) -> ResolutionQuerySet:
        """The resolution that came from an adjudicator's label, even if it has ended."""
        made = {"source": "adjudicated", "created_at": decision.created_at}
        return self.filter(item=decision.item_id, member=decision.member_id, **made)

    def held_of(self, items: Iterable[int]) -> ResolutionQuerySet:
        """The current resolutions of the items with these ids."""
        return self.current().filter(item__among=items)

    def of_items(self, items: Iterable[Item] | Iterable[int]) -> ResolutionQuerySet:
        return self.filter(item__in=items)

    def not_known(self) -> ResolutionQuerySet:
        return self.exclude(source="known")

    def of_revisions(self, revisions: Iterable[int]) -> ResolutionQuerySet:
        """The resolutions of these revisions, the latest last."""
        return self.filter(revision__in=revisions).order_by("created_at", "pk")

    def state(self) -> dict[str, int | None]:
        """Numbers that change whenever a resolution starts or ends."""
        ended = Count("pk", filter=Q(ended_at__isnull=False))
        return self.aggregate(all=Count("pk"), last=Max("pk"), ended=ended)

    def per_project(self, projects: Iterable[Project]) -> dict[int, int]:
        """Resolution counts by project id; projects without resolutions are left out."""
        return count_by(self.filter(item__project__in=projects), "item__project")

    def per_category(self, project: Project) -> dict[tuple[str, str], int]:
        """Resolution counts by ability and category; those without resolutions are left out."""
        rows = self.filter(item__project=project).order_by()
        counted = rows.values_list("item__ability", "item__category").annotate(Count("pk"))
        return {(ability, category): n for ability, category, n in counted}


class Label(models.Model):
    """One member's label of one revision. The content of a label is never changed: a new label is a
    new row.

    `current` becomes false when the label is superseded or undone, `counted` when its texts are
    corrected. `slot` is empty for an extra label, which was sent after its slot was given to
    somebody else.
    """

    project = models.ForeignKey("Project", models.PROTECT, related_name="labels")
    item = models.ForeignKey("Item", models.PROTECT, related_name="labels")
    revision = models.ForeignKey("Revision", models.PROTECT, related_name="labels")
    slot = models.ForeignKey(Slot, models.PROTECT, null=True, blank=True, related_name="labels")
    stage = models.CharField(max_length=20, choices=Stage.choices)
    member = models.ForeignKey("Membership", models.PROTECT, related_name="labels")
    choice = models.CharField(max_length=40)
    answers = models.JSONField(default=dict)
    missing = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="Answers outside their scale, by field: cause and original value.",
    )
    comment = models.TextField(blank=True)
    submission = models.CharField(max_length=64, unique=True)
    task_type = models.ForeignKey("TaskTypeVersion", models.PROTECT)
    guidelines = models.ForeignKey("GuidelinesVersion", models.PROTECT, null=True, blank=True)
    # The categories of the project at that time; empty for what is older than their versions.
    taxonomy = models.ForeignKey(
        "TaxonomyVersion", models.PROTECT, to_field="digest", null=True, blank=True, db_index=False
    )
    supersedes = models.OneToOneField("self", models.PROTECT, null=True, blank=True)
    current = models.BooleanField(default=True)
    counted = models.BooleanField(default=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(
        null=True, blank=True, help_text="Seconds from showing the item to sending the label."
    )
    evaluator_seen = models.BooleanField(
        default=False, help_text="Whether an evaluator's reply to the item was already stored."
    )
    informed = models.BooleanField(
        default=False,
        help_text="Whether the member could already see another label or the resolution.",
    )
    first_shown = models.CharField(
        max_length=40,
        blank=True,
        default="",
        db_default="",
        help_text="The text of a pair that the member saw as A; empty if no order was drawn.",
    )
    created_at = models.DateTimeField(default=timezone.now)

    objects = LabelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["member", "item", "stage"],
                condition=Q(current=True),
                name="label_one_current",
            ),
            models.UniqueConstraint(
                fields=["slot"], condition=Q(current=True, counted=True), name="label_fills_slot"
            ),
            models.CheckConstraint(
                condition=Q(counted=False) | Q(slot__isnull=False), name="label_counted_has_slot"
            ),
            models.CheckConstraint(
                condition=Q(seconds__isnull=True) | Q(seconds__gte=0), name="label_seconds"
            ),
        ]
        indexes = [
            models.Index(fields=["member", "stage", "-created_at"], name="label_of_member"),
            models.Index(fields=["item", "stage"], condition=Q(current=True), name="label_of_item"),
        ]

    def __str__(self) -> str:
        return f"{self.choice} by {self.member}"

    def give_way(self) -> None:
        """Mark the label as superseded by a later label of the same member."""
        self.current = False
        self.save(update_fields=["current"])

    def stop_counting(self) -> None:
        """Stop counting the label, which stays the member's current label."""
        self.counted = False
        self.save(update_fields=["counted"])

    def withdraw(self, now: datetime) -> None:
        self.current, self.withdrawn_at = False, now
        self.save(update_fields=["current", "withdrawn_at"])


class Resolution(models.Model):
    """The final label of a revision of an item, with its rule and source."""

    # The fields that exports and snapshots of items contain, in this order.
    TOLD = ("value", "values", "reason", "comment", "source", "rule")

    class Source(models.TextChoices):
        LABELS = "labels"
        ADJUDICATED = "adjudicated"
        IMPORTED = "imported"
        KNOWN = "known"

    item = models.ForeignKey("Item", models.PROTECT, related_name="resolutions")
    revision = models.ForeignKey("Revision", models.PROTECT, related_name="resolutions")
    value = models.CharField(max_length=40)
    values = models.JSONField(
        default=dict, blank=True, help_text="The resolved value of each field, by name."
    )
    reason = models.CharField(max_length=40, blank=True, help_text="Why annotators disagreed.")
    comment = models.TextField(blank=True)
    rule = models.CharField(max_length=40)
    source = models.CharField(max_length=20, choices=Source.choices)
    member = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    # The categories of the project at that time; empty for what is older than their versions.
    taxonomy = models.ForeignKey(
        "TaxonomyVersion", models.PROTECT, to_field="digest", null=True, blank=True, db_index=False
    )
    # The task type under which it was imported; empty if labels or a decision made it.
    task_type = models.ForeignKey(
        "TaskTypeVersion", models.PROTECT, null=True, blank=True, db_index=False
    )
    current = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = ResolutionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item"], condition=Q(current=True), name="resolution_one_current"
            )
        ]
        indexes = [
            models.Index(fields=["value"], condition=Q(current=True), name="resolution_value")
        ]

    def __str__(self) -> str:
        return f"{self.item.key}: {self.value}"

    def explain(self, reason: str) -> None:
        """Store the reason for the disagreement; called in the transaction that stores the
        resolution."""
        self.reason = reason
        self.save(update_fields=["reason"])

    def end(self, now: datetime) -> None:
        self.current, self.ended_at = False, now
        self.save(update_fields=["current", "ended_at"])
