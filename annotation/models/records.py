from typing import Any

from django.db import models
from django.utils import timezone

from annotation.db.prepared_statements import insert_rows
from annotation.querysets import EventQuerySet


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
        """Whether it failed or was cancelled; what it had stored by then is there all the same."""
        return self.state in self.CAME_TO_NOTHING


class Event(models.Model):
    """Who changed what, when: rows are only ever added, which triggers of the database hold.

    `member` is who did it in a project. Who did it without a place there, or to the site, is
    `account`; neither is named where a command or a worker did it. What was changed from what to
    what stands in `data` as `old` and `new`, each an object of names and values; other entries
    say more of it. No name and no address of a person is ever written here (design 3.12).
    """

    project = models.ForeignKey("Project", models.PROTECT, null=True, related_name="events")
    member = models.ForeignKey("Membership", models.PROTECT, null=True, related_name="events")
    account = models.ForeignKey("Account", models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["project", "-created_at"], name="event_of_project"),
            models.Index(fields=["project", "kind", "-created_at"], name="event_of_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"

    @classmethod
    def record(
        cls, kind: str, subject: str, *, project_id: int, member_id: int | None, **data: Any
    ) -> None:
        event = cls(
            kind=kind, subject=subject, project_id=project_id, member_id=member_id, data=data
        )
        insert_rows(event)

    @classmethod
    def of_site(cls, kind: str, subject: str, account_id: int | None, **data: Any) -> None:
        """What was done to what belongs to no project."""
        insert_rows(cls(kind=kind, subject=subject, account_id=account_id, data=data))

    @property
    def old(self) -> dict[str, Any]:
        return _object(self.data, "old")

    @property
    def new(self) -> dict[str, Any]:
        return _object(self.data, "new")

    @property
    def more(self) -> dict[str, Any]:
        """What is known beside what was changed."""
        changed = {"old": self.old, "new": self.new}
        return {name: value for name, value in self.data.items() if not changed.get(name)}


def _object(data: dict[str, Any], name: str) -> dict[str, Any]:
    # Of an import `new` is a number, and says how many rows were.
    found = data.get(name)
    return found if isinstance(found, dict) else {}
