from django.db import models
from django.utils import timezone

from annotation.querysets import ProjectQuerySet


class TaskTypeVersion(models.Model):
    """One state of a task type file, kept so that a label can name what was asked."""

    slug = models.SlugField(max_length=80)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    source = models.TextField(blank=True, help_text="The TOML that it was read from.")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slug", "number"], name="task_type_number"),
            models.UniqueConstraint(fields=["slug", "digest"], name="task_type_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.slug} v{self.number}"


class TextFormat(models.TextChoices):
    PLAIN = "plain", "plain text"
    MARKDOWN = "markdown", "Markdown"
    MATH = "math", "Markdown with LaTeX"


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
    share_percent = models.PositiveSmallIntegerField(
        default=0, help_text="Share of items, drawn at random, that get more labels than the rest."
    )
    share_overlap = models.PositiveSmallIntegerField(
        default=2, help_text="Labels that an item of that share gets."
    )
    disputed_overlap = models.PositiveSmallIntegerField(
        default=0, help_text="Labels that an item gets where people disagree; 0: no more."
    )
    rules = models.JSONField(
        default=dict, blank=True, help_text="By field: how its labels become a resolution."
    )
    verify = models.BooleanField(
        default=False, help_text="A second person sees the first label and confirms or contests it."
    )
    blind_first = models.BooleanField(
        default=False, help_text="Items are first shown without diff, claim and rationale."
    )
    claim_check = models.BooleanField(
        default=False, help_text="Ask of each changed piece whether the claim explains it."
    )
    expected_effect = models.BooleanField(
        default=False, help_text="Ask how much a good evaluator should take off."
    )
    practice_items = models.PositiveSmallIntegerField(
        default=0, help_text="Items of a practice round; 0: nobody has to practise."
    )
    practice_pass = models.PositiveSmallIntegerField(
        default=4, help_text="Right answers that pass a round."
    )
    probe_every = models.PositiveSmallIntegerField(
        default=0, help_text="About one in so many items is a silent check; 0: none."
    )
    text_format = models.CharField(
        max_length=10, choices=TextFormat.choices, default=TextFormat.PLAIN
    )
    guidelines_field = models.CharField(
        max_length=80, blank=True, help_text="The item field by which guidelines differ."
    )
    sealed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its texts came encrypted, and leave it in encrypted files alone.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(overlap__gte=1), name="overlap_positive"),
            models.CheckConstraint(condition=models.Q(hold_minutes__gte=1), name="hold_positive"),
            models.CheckConstraint(
                condition=models.Q(share_percent__lte=100), name="share_percent"
            ),
            models.CheckConstraint(
                condition=models.Q(practice_items=0)
                | models.Q(practice_pass__lte=models.F("practice_items")),
                name="practice_can_be_passed",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class GuidelinesVersion(models.Model):
    """One state of what annotators are told; a label names the one it was made under."""

    project = models.ForeignKey(Project, models.PROTECT, related_name="guidelines")
    number = models.PositiveIntegerField()
    text = models.TextField(help_text="Markdown, for every item.")
    variants = models.JSONField(
        default=dict, blank=True, help_text="Markdown by the value of the project's field."
    )
    note = models.TextField(blank=True, help_text="What changed, in a sentence.")
    author = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["project_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="guidelines_number")
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} guidelines {self.number}"
