"""The stored responses to requests with an idempotency key."""

from django.db import models
from django.utils import timezone


class Repeatable(models.Model):
    """A request with an idempotency key, and the response that is sent again if it is repeated.

    `key` and `asked` are digests of the key and of the request's address and body. The status is
    null while the request is being processed.
    """

    account = models.ForeignKey("Account", models.CASCADE, related_name="+")
    key = models.CharField(max_length=64)
    asked = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["account_id", "created_at"]
        constraints = [models.UniqueConstraint(fields=["account", "key"], name="repeatable_one")]
        indexes = [models.Index(fields=["created_at"], name="repeatable_by_age")]

    def __str__(self) -> str:
        return f"{self.key[:8]}: {self.status or 'being answered'}"
