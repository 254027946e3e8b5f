from typing import Any

from django.db import models
from django.utils import timezone

from annotation.querysets.snapshots import FrozenQuerySet, SnapshotQuerySet


class Snapshot(models.Model):
    """A version of a project under a name, which stays as it was: triggers of the database refuse
    to change it once it is made.

    `digest` follows from the items alone, their keys, texts and all that is held of them, in their
    order: two installations that hold the same have the same digest. Empty while it is made.
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
    """An item as it was when a snapshot was made; snapshots between which nothing changed share it.

    `facts` are those of `annotation.items.snapshots.facts`, `digest` is theirs. `value` is what was
    held true of the item, empty if nothing was.
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
    """Which state of an item a snapshot holds; of each item one."""

    snapshot = models.ForeignKey(Snapshot, models.PROTECT, related_name="frozen")
    item = models.ForeignKey("Item", models.PROTECT, related_name="+", db_index=False)
    frozen = models.ForeignKey(Frozen, models.PROTECT, related_name="+")

    objects = FrozenQuerySet.as_manager()

    # The id of the item's state in another snapshot, where that was asked for.
    before: int | None = None

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["snapshot", "item"], name="frozen_in_snapshot"),
        ]

    def __str__(self) -> str:
        return f"{self.snapshot}: {self.frozen}"
