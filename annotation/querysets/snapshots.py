"""Snapshots, and what lies between two of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Exists, OuterRef, Subquery

if TYPE_CHECKING:
    from annotation.models import Project, Snapshot

_NUMBER = re.compile("[0-9]{1,9}")


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    def in_project(self, project: Project) -> SnapshotQuerySet:
        return self.filter(project=project)

    def made(self) -> SnapshotQuerySet:
        return self.filter(made_at__isnull=False)

    def numbered(self, number: str) -> Snapshot | None:
        """The one that a text names; nine digits are as many as any has."""
        return self.filter(number=int(number)).first() if _NUMBER.fullmatch(number) else None

    def named(self, name: str) -> Snapshot | None:
        return self.filter(name=name).first()

    def before(self, one: Snapshot) -> Snapshot | None:
        """The last one before another."""
        return self.filter(number__lt=one.number).order_by("-number").first()

    def for_list(self) -> SnapshotQuerySet:
        """The last first, with who made them and how far they are."""
        return self.select_related("member", "job").order_by("-number")

    def left_over(self) -> SnapshotQuerySet:
        """Those that were given up half-way."""
        return self.filter(made_at=None, job__finished_at__isnull=False)


class FrozenQuerySet(models.QuerySet[Any]):
    """States of items in a snapshot."""

    def of(self, snapshot: Snapshot) -> FrozenQuerySet:
        return self.filter(snapshot=snapshot)

    def absent_from(self, other: Snapshot) -> FrozenQuerySet:
        """Of items that the other snapshot does not have."""
        return self.filter(~Exists(self._in(other)))

    def changed_since(self, other: Snapshot) -> FrozenQuerySet:
        """Of items that the other snapshot has in another state, whose id is `before` then."""
        rows = self._in(other)
        there = self.filter(Exists(rows.exclude(frozen=OuterRef("frozen"))))
        return there.annotate(before=Subquery(rows.values("frozen")[:1]))

    def retexted(self) -> FrozenQuerySet:
        """Of those that changed, the ones whose texts did."""
        return self._unlike("revision")

    def reheld(self) -> FrozenQuerySet:
        """Of those that changed, the ones that are held for something else."""
        return self._unlike("value")

    def _unlike(self, column: str) -> FrozenQuerySet:
        from annotation.models import Frozen

        earlier = Frozen.objects.filter(pk=OuterRef("before"))
        return self.filter(~Exists(earlier.filter(**{column: OuterRef(f"frozen__{column}")})))

    def _in(self, other: Snapshot) -> FrozenQuerySet:
        rows: FrozenQuerySet = self.model.objects.filter(snapshot=other, item=OuterRef("item"))
        return rows
