import secrets
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models.people import ApiToken, Membership, Role
from annotation.querysets import InvitationQuerySet


class Invitation(models.Model):
    """A link that makes whoever opens it a member, once. Only a digest of it is stored.

    The address that it was sent to is forgotten once it is used or taken back, for names and
    addresses live in accounts alone (design 3.12).
    """

    project = models.ForeignKey("Project", models.PROTECT, related_name="invitations")
    alias = models.CharField(max_length=80)
    role = models.CharField(max_length=20, choices=Role.choices)
    email = models.EmailField(blank=True)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    made_by = models.ForeignKey(Membership, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was used or taken back."
    )
    member = models.ForeignKey(
        Membership, models.PROTECT, null=True, blank=True, related_name="+",
        help_text="Who came by it.",
    )  # fmt: skip

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "alias"], condition=Q(ended_at=None), name="invitation_alias"
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
        ]

    def __str__(self) -> str:
        return f"invitation of {self.alias}"

    @staticmethod
    def digest_of(key: str) -> str:
        return ApiToken.digest_of(key)

    @classmethod
    def issue(
        cls, lead: Membership, alias: str, role: str, email: str, days: int, now: datetime
    ) -> "tuple[Invitation, str]":
        """A new invitation and its key, which can be shown now and never again."""
        key = secrets.token_urlsafe(32)
        made = cls.objects.create(
            project=lead.project,
            alias=alias,
            role=role,
            email=email,
            digest=cls.digest_of(key),
            made_by=lead,
            created_at=now,
            expires_at=now + timedelta(days=days),
        )
        return made, key
