from django.db import models
from django.utils import timezone

from judging.querysets import SavedViewQuerySet


class SavedView(models.Model):
    """A result page as somebody looked at it, under a name: the address says all there is to it."""

    member = models.ForeignKey("annotation.Membership", models.PROTECT, related_name="saved_views")
    name = models.CharField(max_length=80)
    page = models.CharField(max_length=40)
    query = models.CharField(max_length=2000, blank=True)
    shared = models.BooleanField(
        default=False, help_text="Whether all who see the results of the project see it."
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
        """Under another name, or for other eyes."""
        self.name, self.shared = name, shared
        self.save(update_fields=["name", "shared"])
