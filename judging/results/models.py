"""Models of saved views of result pages and of cached figures."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from judging.runs.engine.models import lease_expired

if TYPE_CHECKING:
    from annotation.models import Membership, Project


class SavedViewQuerySet(models.QuerySet[Any]):
    def of_member(self, member: Membership) -> SavedViewQuerySet:
        """The views saved by a member."""
        return self.filter(member=member.pk)

    def seen_by(self, member: Membership) -> SavedViewQuerySet:
        """The member's own views, and those that others in the project share."""
        shared = Q(member__project=member.project, shared=True)
        return self.filter(Q(member=member.pk) | shared).select_related("member")


def _is_free(now: datetime) -> Q:
    return Q(held_until=None) | lease_expired("held_until", now)


class StoredFigureQuerySet(models.QuerySet[Any]):
    def due(self, now: datetime) -> StoredFigureQuerySet:
        """Figures that are requested and not leased to a living worker."""
        return self.filter(_is_free(now), wanted_at__isnull=False)

    def in_turn(self, now: datetime) -> list[int]:
        """The ids of the due figures, in one query. Projects take turns, so that a project with
        hundreds of tables does not keep the others waiting; what is being computed counts as a
        turn."""
        wanted = self.filter(wanted_at__isnull=False).annotate(is_free=_is_free(now))
        turns = Counter[int]()
        waiting = []
        for pk, project, is_free in wanted.order_by("is_free", "wanted_at").values_list(
            "pk", "project", "is_free"
        ):
            if is_free:
                waiting.append((turns[project], pk))
            turns[project] += 1
        return [pk for _, pk in sorted(waiting, key=itemgetter(0))]

    def spare(self, project: Project, keep: int) -> list[int]:
        """The ids of figures that nobody waits for, except the `keep` most recently computed
        figures."""
        idle = self.filter(project=project, wanted_at=None).order_by("-made_at", "-pk")
        return list(idle.values_list("pk", flat=True)[keep:])


class Touch(models.Model):
    """A counter of changes to the data behind figures, in parts; written only by triggers."""

    subject = models.CharField(max_length=40)
    n = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "touches"
        indexes = [models.Index(fields=["subject"], name="touch_subject")]

    def __str__(self) -> str:
        return f"{self.subject}: {self.n}"


class StoredFigure(models.Model):
    """A cached table of figures that takes long to compute, and the progress of the next
    computation.

    `key` is a digest of the request, `state` a digest of the data behind the rows. The rows are
    valid as long as that digest is the same. `wanted_at` is set while a request waits for a worker.
    """

    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="figures")
    key = models.CharField(max_length=64, unique=True)
    table = models.CharField(max_length=40)
    asked = models.JSONField(help_text="The ids of the runs, and the fields to group by.")
    state = models.CharField(max_length=64, blank=True)
    rows = models.TextField(blank=True, help_text="JSON: a list of rows, in order.")
    made_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    wanted_at = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    step = models.CharField(max_length=80, blank=True, help_text="The current step, in words.")
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    failure = models.TextField(blank=True)

    objects = StoredFigureQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(made_at=None, state="") | Q(made_at__isnull=False) & ~Q(state=""),
                name="figure_made_of_a_state",
            )
        ]
        indexes = [
            models.Index(
                fields=["wanted_at"],
                condition=Q(wanted_at__isnull=False),
                name="figure_wanted",
            ),
            models.Index(fields=["project", "made_at"], name="figure_of_project"),
        ]

    def __str__(self) -> str:
        return f"{self.table} of {self.project}"

    def want(self, now: datetime) -> None:
        """Request a new computation by the next worker, unless a request is already waiting."""
        if self.wanted_at is None:
            self.wanted_at, self.failure, self.step = now, "", ""
            self.done, self.total, self.held_until = 0, 0, None
            self.save(update_fields=[
                "wanted_at", "failure", "step", "done", "total", "held_until"
            ])  # fmt: skip

    def rests(self, now: datetime) -> bool:
        """True if the last attempt failed so recently that a retry should wait."""
        return bool(self.failure) and self.held_until is not None and self.held_until > now

    def hold(self, step: str, done: int, total: int, *, until: datetime) -> None:
        """Store the progress, and extend the lease to `until`."""
        self.step, self.done, self.total, self.held_until = step, done, total, until
        self.save(update_fields=["step", "done", "total", "held_until"])

    def fail(self, why: str, *, until: datetime) -> None:
        """Store the failure, and allow no new attempt before `until`."""
        self.failure, self.wanted_at, self.held_until = why, None, until
        self.save(update_fields=["failure", "wanted_at", "held_until"])


class SavedView(models.Model):
    """A saved view of a result page, with a name. Its URL contains all its settings."""

    member = models.ForeignKey("annotation.Membership", models.PROTECT, related_name="saved_views")
    name = models.CharField(max_length=80)
    page = models.CharField(max_length=40)
    query = models.CharField(max_length=2000, blank=True)
    shared = models.BooleanField(
        default=False, help_text="Whether all who can see the project's results can see it."
    )
    created_at = models.DateTimeField(default=timezone.now)

    objects = SavedViewQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["member", "name"], name="saved_view_named"),
        ]

    def __str__(self) -> str:
        return self.name

    def keep(self, *, name: str, shared: bool) -> None:
        """Change the name, or whether the view is shared."""
        self.name, self.shared = name, shared
        self.save(update_fields=["name", "shared"])
