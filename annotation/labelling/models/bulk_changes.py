"""Changes that a lead made to many items at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils import timezone

if TYPE_CHECKING:
    from annotation.models import Project


class BulkChangeQuerySet(models.QuerySet["BulkChange"]):
    def in_project(self, project: Project) -> BulkChangeQuerySet:
        """The project's changes, the latest first."""
        return self.filter(project=project).select_related("member", "undone_by")


class BulkChange(models.Model):
    """One change of many items, numbered in its project. `before` has what each changed item had,
    by the item's id."""

    project = models.ForeignKey("Project", models.PROTECT, related_name="bulk_changes")
    member = models.ForeignKey("Membership", models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=20)
    value = models.CharField(max_length=80, blank=True)
    before: Any = models.JSONField(default=dict)
    count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.ForeignKey(
        "Membership", models.PROTECT, null=True, blank=True, related_name="+"
    )

    objects = BulkChangeQuerySet.as_manager()

    class Meta:
        ordering = ["project_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="bulk_change_number"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.value} of {self.count} items"
