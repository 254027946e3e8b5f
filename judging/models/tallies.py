from django.db import models


class Tally(models.Model):
    """Counts of a run as somebody made them last, so that pages need not count a million rows.

    `state` says what was counted: the counts hold as long as it is the same. Of a run that is
    being asked a worker counts again and again, and says until when its counts may be shown
    though more came in meanwhile.
    """

    class Kind(models.TextChoices):
        ITEMS = "items"
        PROGRESS = "progress"

    run = models.ForeignKey("Run", models.CASCADE, related_name="tallies")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    state = models.CharField(max_length=200)
    counts = models.JSONField()
    shown_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [models.UniqueConstraint(fields=["run", "kind"], name="tally_one")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.run_id}"
