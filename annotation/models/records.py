from typing import Any

from django.db import models
from django.utils import timezone

from annotation.prepared import insert


class Job(models.Model):
    """A long import, export or generation, with its progress."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    project = models.ForeignKey("Project", models.PROTECT, related_name="jobs")
    kind = models.CharField(max_length=40)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True, blank=True)
    message = models.TextField(blank=True)
    result = models.JSONField(default=dict, blank=True)
    member = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.kind}: {self.state}"


class Event(models.Model):
    """Who changed what, when: rows are only ever added."""

    project = models.ForeignKey("Project", models.PROTECT, null=True, related_name="events")
    member = models.ForeignKey("Membership", models.PROTECT, null=True, related_name="events")
    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["project", "-created_at"], name="event_of_project")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @classmethod
    def record(
        cls, kind: str, subject: str, *, project_id: int, member_id: int | None, **data: Any
    ) -> None:
        event = cls(
            kind=kind, subject=subject, project_id=project_id, member_id=member_id, data=data
        )
        insert(event)
