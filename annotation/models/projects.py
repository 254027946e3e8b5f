from django.db import models
from django.utils import timezone

from annotation.querysets import ProjectQuerySet


class TaskTypeVersion(models.Model):
    """One state of a task type file, kept so that a label can name what was asked."""

    slug = models.SlugField(max_length=80)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slug", "number"], name="task_type_number"),
            models.UniqueConstraint(fields=["slug", "digest"], name="task_type_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.number}"


class Project(models.Model):
    """One body of items with its people and rules."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    task_type = models.ForeignKey(TaskTypeVersion, models.PROTECT, related_name="projects")
    overlap = models.PositiveSmallIntegerField(
        default=1, help_text="Counted labels that each item gets at the work stage."
    )
    hold_minutes = models.PositiveSmallIntegerField(
        default=30, help_text="How long an item stays with a person who does not label it."
    )
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(overlap__gte=1), name="overlap_positive"),
            models.CheckConstraint(condition=models.Q(hold_minutes__gte=1), name="hold_positive"),
        ]

    def __str__(self) -> str:
        return self.name


class GuidelinesVersion(models.Model):
    """One state of what annotators are told; a label names the one it was made under."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="guidelines")
    number = models.PositiveIntegerField()
    text = models.TextField()
    author = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="guidelines_number")
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} guidelines {self.number}"
