from datetime import datetime

from django.db import models
from django.db.models import Q

from judging.querysets import StoredFigureQuerySet


class Touch(models.Model):
    """How often something that figures rest on was changed, in parts; written by triggers alone."""

    subject = models.CharField(max_length=40)
    n = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "touches"
        indexes = [models.Index(fields=["subject"], name="touch_subject")]

    def __str__(self) -> str:
        return f"{self.subject}: {self.n}"


class StoredFigure(models.Model):
    """A table of figures that takes long, as it was made last, and how far it is being made anew.

    `key` is a digest of what was asked for, `state` of what the rows rest on: they are true as
    long as that is the same. `wanted_at` is set while somebody waits for a worker to make it.
    """

    project = models.ForeignKey("annotation.Project", models.PROTECT, related_name="figures")
    key = models.CharField(max_length=64, unique=True)
    table = models.CharField(max_length=40)
    asked = models.JSONField(help_text="The runs, by their ids, and what they are grouped by.")
    state = models.CharField(max_length=64, blank=True)
    rows = models.TextField(blank=True, help_text="JSON: a list of rows, in order.")
    made_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    wanted_at = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    step = models.CharField(max_length=80, blank=True, help_text="What is being done, in words.")
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
        """Have it made anew by the next worker, if nobody waits for that already."""
        if self.wanted_at is None:
            self.wanted_at, self.failure, self.step = now, "", ""
            self.done, self.total, self.held_until = 0, 0, None
            self.save(update_fields=[
                "wanted_at", "failure", "step", "done", "total", "held_until"
            ])  # fmt: skip

    def rests(self, now: datetime) -> bool:
        """Whether making it failed, so lately that the next try would hardly do better."""
        return bool(self.failure) and self.held_until is not None and self.held_until > now

    def hold(self, step: str, done: int, total: int, *, until: datetime) -> None:
        """Say how far it is, and keep other workers off until then."""
        self.step, self.done, self.total, self.held_until = step, done, total, until
        self.save(update_fields=["step", "done", "total", "held_until"])

    def fail(self, why: str, *, until: datetime) -> None:
        """Whoever waits is told, and nobody tries again before then."""
        self.failure, self.wanted_at, self.held_until = why, None, until
        self.save(update_fields=["failure", "wanted_at", "held_until"])
