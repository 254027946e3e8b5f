import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone

from annotation.models.records import Event
from annotation.querysets import MembershipQuerySet


class Account(AbstractUser):
    """Someone who can sign in. Names and e-mail live here alone (design 3.12)."""

    keys = models.JSONField(
        default=dict, blank=True, help_text="Keys of the label screen that the person changed."
    )
    # The place in the project that a call speaks of, if its key was looked up together with it.
    seat: "Membership | None" = None


class Role(models.TextChoices):
    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    RESEARCHER = "researcher"
    LEAD = "lead"


# What each right allows:
#   enter    see the project's front page and the guidelines
#   label    work on the queue
#   items    see items with everybody's labels
#   adjudicate  decide items that people disagree on, or that were sent to an expert
#   results  see runs, replies and figures
#   run      start and steer runs (they cost money)
#   manage   settings, members, import, export
RIGHTS: dict[str, frozenset[str]] = {
    "enter": frozenset(Role.values),
    "label": frozenset({Role.ANNOTATOR, Role.ADJUDICATOR, Role.LEAD}),
    "items": frozenset({Role.ADJUDICATOR, Role.RESEARCHER, Role.LEAD}),
    "adjudicate": frozenset({Role.ADJUDICATOR, Role.LEAD}),
    "results": frozenset({Role.RESEARCHER, Role.LEAD}),
    "run": frozenset({Role.RESEARCHER, Role.LEAD}),
    "manage": frozenset({Role.LEAD}),
}


class Membership(models.Model):
    """A person's place in a project. Labels, slots and events name it, never the account."""

    project = models.ForeignKey("Project", models.PROTECT, related_name="members")
    account = models.ForeignKey(
        Account, models.SET_NULL, null=True, blank=True, related_name="memberships"
    )
    alias = models.CharField(max_length=80, help_text="The name that exports and screens show.")
    role = models.CharField(max_length=20, choices=Role.choices)
    active = models.BooleanField(default=True)
    labelled = models.PositiveIntegerField(
        default=0, help_text="Work labels in force; changed where the row is locked anyway."
    )
    practised_at = models.DateTimeField(
        null=True, blank=True, help_text="When practice was passed, or waived by a lead."
    )
    guidelines_seen = models.PositiveIntegerField(
        default=0, help_text="Number of the last guidelines that the member has acknowledged."
    )
    mentions_seen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering = ["project_id", "alias"]
        constraints = [
            models.UniqueConstraint(fields=["project", "alias"], name="member_alias"),
            models.UniqueConstraint(fields=["project", "account"], name="member_account"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="member_role_known"
            ),
        ]

    def __str__(self) -> str:
        return self.alias

    def can(self, right: str) -> bool:
        """Whether this member holds a right of `RIGHTS`; an unknown right is a KeyError."""
        return self.active and self.role in RIGHTS[right]

    @property
    def can_label(self) -> bool:
        return self.pk is not None and self.can("label")

    @property
    def can_adjudicate(self) -> bool:
        return self.can("adjudicate")

    @property
    def can_see_items(self) -> bool:
        return self.can("items")

    @property
    def can_see_results(self) -> bool:
        return self.can("results")

    @property
    def can_run(self) -> bool:
        return self.can("run")

    @property
    def is_lead(self) -> bool:
        return self.can("manage")


# What a key to the API may be used for, as far as its owner may do it.
SCOPES = {
    "read": "see whatever your roles let you see",
    "label": "take items, label, correct, verify and decide them, and comment",
    "run": "start and steer runs, which may cost money, and write strategies",
    "manage": "change settings, members and whatever else leads and site admins do, and import",
}
ALL_SCOPES = " ".join(SCOPES)


class ApiToken(models.Model):
    """A key to the API. Only a digest is stored, so a copy of the database opens nothing.

    `scopes` are names of SCOPES with a space between them.
    """

    account = models.ForeignKey(Account, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=12, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Tokens from before there were scopes could do everything, and so may what an older version of
    # the program makes while a newer one is being started.
    scopes = models.CharField(max_length=80, db_default=ALL_SCOPES, editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    @staticmethod
    def digest_of(key: str) -> str:
        # A key has 256 random bits: nobody guesses it, so a slow digest would gain nothing.
        return hashlib.sha256(key.encode()).hexdigest()

    @classmethod
    def issue(
        cls,
        account: Account,
        name: str,
        scopes: Iterable[str] = tuple(SCOPES),
        expires_at: datetime | None = None,
    ) -> tuple["ApiToken", str]:
        """A new token and its key, which can be shown now and never again."""
        key = f"bs_{secrets.token_urlsafe(32)}"
        token = cls.objects.create(
            account=account,
            name=name,
            digest=cls.digest_of(key),
            prefix=key[:8],
            scopes=" ".join(name for name in SCOPES if name in set(scopes)),
            expires_at=expires_at,
        )
        until = expires_at.isoformat() if expires_at else "never"
        new = {"token": "made", "scopes": token.scopes, "expires": until}
        Event.of_site("token", token.prefix, account.pk, old={}, new=new)
        return token, key

    def revoke(self, now: datetime, by: Account) -> None:
        self.revoked_at = now
        self.save(update_fields=["revoked_at"])
        change = {"old": {"token": "made"}, "new": {"token": "revoked"}}
        Event.of_site("token", self.prefix, by.pk, **change)
