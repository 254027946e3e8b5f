from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from judging.strategies import Strategy, from_definition

if TYPE_CHECKING:
    from annotation.models import Project


class StrategyVersionQuerySet(models.QuerySet["StrategyVersion"]):
    def own(self, project: Project) -> StrategyVersionQuerySet:
        """Versions that belong to the project and are not deleted."""
        return self.filter(project=project, deleted_at=None)

    def deleted(self, project: Project) -> StrategyVersionQuerySet:
        """Deleted versions that belong to the project and can be restored."""
        return self.filter(project=project, deleted_at__isnull=False)

    def shipped(self) -> StrategyVersionQuerySet:
        """Versions that come with Blindspot; they belong to no project."""
        return self.filter(project=None)

    def named(self, slug: str) -> StrategyVersionQuerySet:
        """The versions of one strategy, newest first."""
        return self.filter(slug=slug).order_by("-number")

    def newest(self) -> StrategyVersionQuerySet:
        """The newest version of each of a project's own strategies."""
        later = self.filter(slug=OuterRef("slug"), number__gt=OuterRef("number"))
        return self.filter(~Exists(later))

    def with_runs(self, project: Project) -> StrategyVersionQuerySet:
        """Add `used`, the number of the project's runs that pin the version, and fetch authors and
        parents.
        """
        mine = Count("runs", filter=Q(runs__project=project))
        return self.annotate(used=mine).select_related("member", "parent")


class StrategyVersion(models.Model):
    """One version of a strategy, from a built-in file or saved by a project.

    A run refers to one version, so later edits of the strategy do not change the run.
    """

    project = models.ForeignKey(
        "annotation.Project",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="strategies",
        help_text="The project it belongs to; empty for a shipped strategy.",
    )
    slug = models.SlugField(max_length=80)
    number = models.PositiveIntegerField()
    retired_at = models.DateTimeField(
        null=True, blank=True, help_text="No longer offered; the same for all versions."
    )
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="Deleted; the same for all versions. No run uses them."
    )
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    source = models.TextField(blank=True, help_text="The TOML source; runs use the definition.")
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="copies")
    member = models.ForeignKey("annotation.Membership", models.PROTECT, null=True, blank=True)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = StrategyVersionQuerySet.as_manager()

    class Meta:
        ordering = ["slug", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["slug", "number"],
                condition=models.Q(project=None),
                name="strategy_number",
            ),
            models.UniqueConstraint(
                fields=["slug", "digest"],
                condition=models.Q(project=None),
                name="strategy_digest",
            ),
            models.UniqueConstraint(
                fields=["project", "slug", "number"], name="strategy_number_of_project"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.number}"

    def strategy(self) -> Strategy:
        """The parsed definition. All callers get the same object, so they must not change it.
        Raises `StrategyError` for a stored definition that is no longer valid.
        """
        return _parse(json.dumps(self.definition))


# A page of results asks for the strategies of all its runs, several times.
@lru_cache(maxsize=512)
def _parse(definition: str) -> Strategy:
    return from_definition(json.loads(definition))
