"""Sets of views that people saved, and of figures that are kept."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q

from judging.querysets.leases import lease_expired

if TYPE_CHECKING:
    from annotation.models import Membership, Project


class SavedViewQuerySet(models.QuerySet[Any]):
    def of(self, member: Membership) -> SavedViewQuerySet:
        """Those that a member saved."""
        return self.filter(member=member.pk)

    def seen_by(self, member: Membership) -> SavedViewQuerySet:
        """A member's own, and those that others of the project share."""
        shared = Q(member__project=member.project, shared=True)
        return self.filter(Q(member=member.pk) | shared).select_related("member")


class StoredFigureQuerySet(models.QuerySet[Any]):
    def due(self, now: datetime) -> StoredFigureQuerySet:
        """Waited for, and in no living worker's hands; what was waited for longest comes first."""
        free = Q(held_until=None) | lease_expired("held_until", now)
        return self.filter(free, wanted_at__isnull=False).order_by("wanted_at")

    def spare(self, project: Project, keep: int) -> list[int]:
        """The ids of those that nobody waits for, but for the `keep` that were made last."""
        idle = self.filter(project=project, wanted_at=None).order_by("-made_at", "-pk")
        return list(idle.values_list("pk", flat=True)[keep:])
