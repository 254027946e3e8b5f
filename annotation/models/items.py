from typing import Any

from django.db import models
from django.utils import timezone

from annotation.items.abilities import SUGGESTED, SUGGESTED_BY
from annotation.querysets import ItemQuerySet
from annotation.querysets.items import KIND_COLUMNS


class Item(models.Model):
    """One thing to judge. It holds no text itself: texts are in its revisions."""

    # Several indexes of items begin with the project.
    project = models.ForeignKey("Project", models.PROTECT, related_name="items", db_index=False)
    key = models.CharField(max_length=200)
    position = models.PositiveIntegerField(help_text="Place in the queue and in lists.")
    category = models.CharField(max_length=80)
    ability = models.CharField(max_length=80)
    source_ability = models.CharField(
        max_length=80, blank=True, help_text="Ability of the answer that was changed."
    )
    cluster = models.CharField(
        max_length=64, help_text="Digest of the source question; items of one are not independent."
    )
    origin = models.CharField(max_length=40, blank=True)
    # Most items have neither, and their indexes leave those out.
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", db_index=False
    )
    duplicate_of = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="duplicates", db_index=False
    )
    dose = models.PositiveSmallIntegerField(null=True, blank=True)
    purpose = models.CharField(max_length=20, default="test")
    fields = models.JSONField(default=dict, blank=True)
    flags = models.JSONField(default=list, blank=True)
    revision_number = models.PositiveIntegerField(default=1)
    first_reply_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = ItemQuerySet.as_manager()
    # Put there by `with_current_texts`.
    current_revisions: "list[Revision]"

    class Meta:
        ordering = ["project_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="item_key"),
            models.UniqueConstraint(fields=["project", "position"], name="item_position"),
        ]
        indexes = [
            models.Index(fields=["project", "category", "position"], name="item_category"),
            models.Index(fields=["project", "purpose"], name="item_purpose"),
            models.Index(fields=["project", "cluster"], name="item_cluster"),
            models.Index(
                fields=["parent"], condition=models.Q(parent__isnull=False), name="item_parent"
            ),
            models.Index(
                fields=["duplicate_of"],
                condition=models.Q(duplicate_of__isnull=False),
                name="item_duplicate_of",
            ),
        ]

    def __str__(self) -> str:
        return self.key

    def revision(self, number: int | None = None) -> "Revision":
        """The revision of this number, by default the current one."""
        return self.revisions.get(number=self.revision_number if number is None else number)

    def sort_into(self, ability: str) -> None:
        """Of this ability from now on; so is what is made of its answer."""
        self.ability = self.source_ability = ability
        self.save(update_fields=["ability", "source_ability"])

    def suggest(self, ability: str, by: str) -> bool:
        """Keep which ability somebody suggests, in place of what was suggested before; False if
        the same is said already."""
        said = {SUGGESTED: ability, SUGGESTED_BY: by}
        if self.fields.items() >= said.items():
            return False
        self.fields = {**self.fields, **said}
        self.save(update_fields=["fields"])
        return True

    def value_of(self, name: str) -> Any:
        """A column of its kind, or a field that the import gave; None if it has none."""
        return getattr(self, name) if name in KIND_COLUMNS else self.fields.get(name)


class Revision(models.Model):
    """A numbered state of all texts of an item. Never updated."""

    # `revision_number` begins with the item, too.
    item = models.ForeignKey(Item, models.PROTECT, related_name="revisions", db_index=False)
    number = models.PositiveIntegerField()
    texts = models.JSONField()
    digest = models.CharField(max_length=64)
    author = models.ForeignKey("Membership", models.PROTECT, null=True, blank=True, db_index=False)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    # The diff that was read along with the revision, so that nobody reads it again.
    stored_diff: "Diff | None" = None

    class Meta:
        ordering = ["item_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["item", "number"], name="revision_number"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="revision_from_one"),
        ]
        indexes = [
            models.Index(
                fields=["author"], condition=models.Q(author__isnull=False), name="revision_author"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item.key} r{self.number}"


class Diff(models.Model):
    """What one version of the diff algorithm made of a revision; made on first need."""

    revision = models.ForeignKey(Revision, models.CASCADE, related_name="diffs")
    algorithm = models.CharField(max_length=20)
    segments = models.JSONField()
    edit_size = models.FloatField()
    place = models.FloatField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["revision", "algorithm"], name="diff_algorithm")
        ]

    def __str__(self) -> str:
        return f"diff of {self.revision} by {self.algorithm}"
