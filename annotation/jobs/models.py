from django.db import models
from django.utils import timezone


class Job(models.Model):
    """A long import, export or generation, with its progress."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"
        CANCELLED = "cancelled"

    CAME_TO_NOTHING = (State.FAILED, State.CANCELLED)

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

    @property
    def came_to_nothing(self) -> bool:
        """True if the job failed or was cancelled; the data that it stored before remain."""
        return self.state in self.CAME_TO_NOTHING
