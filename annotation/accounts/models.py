import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone

from annotation.projects.models import Event

if TYPE_CHECKING:
    from annotation.models import Membership


class Account(AbstractUser):
    """Someone who can sign in. Names and e-mail live here alone (design 3.12)."""

    keys = models.JSONField(default=dict, blank=True, help_text="Changed keys of the label screen.")
    # The place in the project that a call speaks of, if its key was looked up together with it.
    seat: "Membership | None" = None


# What a key to the API may be used for, as far as its owner may do it.
SCOPES = {
    "read": "read what your roles allow",
    "label": "label, correct, verify, adjudicate and comment",
    "run": "start and control runs, which may cost money, and edit strategies",
    "manage": "import, change settings and members, and other tasks of leads and site admins",
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
