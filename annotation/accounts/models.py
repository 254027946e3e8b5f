import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from django.utils import timezone

from annotation.accounts import keymap
from annotation.db import transactions
from annotation.errors import Refused
from annotation.projects.models import Event

if TYPE_CHECKING:
    from annotation.models import Membership


class AccountManager(UserManager["Account"]):
    """Creates accounts."""

    use_in_migrations = False

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """Return the address in small letters, as in which allauth looks for accounts."""
        return (email or "").lower()


class Account(AbstractUser):
    """Someone who can sign in. Names and e-mail are stored only here."""

    objects: ClassVar[AccountManager] = AccountManager()

    keys = models.JSONField(default=dict, blank=True, help_text="Changed keys of the label screen.")
    creates_projects = models.BooleanField(
        default=False, help_text="May create projects without leading one yet."
    )
    # The person's membership in the project of an API call, if it was loaded together with the
    # token.
    seat: "Membership | None" = None

    @property
    def hotkeys(self) -> dict[str, str]:
        """The key that the person presses for each action, by slug: `{{ user.hotkeys.undo }}`."""
        return keymap.hotkeys(self.keys)


# What an API token may be used for, within the rights of its owner.
SCOPES = {
    "read": "read what your roles allow",
    "label": "label, correct, verify, adjudicate and comment",
    "run": "start and control runs, which may cost money, and edit strategies",
    "manage": "import, change settings and members, and other tasks of leads and site admins",
}
ALL_SCOPES = " ".join(SCOPES)
# An account may have so many tokens that are neither revoked nor expired.
MAX_TOKENS = 20


class ApiToken(models.Model):
    """An API token. Only the digest of its key is stored, so nobody can use a copy of the database
    to sign in.

    `scopes` are names of SCOPES, separated by spaces.
    """

    account = models.ForeignKey(Account, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=12, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Tokens from before scopes existed had all rights of their owner, and so do tokens that an
    # older version of the program creates during an upgrade.
    scopes = models.CharField(max_length=80, db_default=ALL_SCOPES, editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def has_expired(self, now: datetime) -> bool:
        """True if the token's expiry date has passed; False for a token without an expiry date. A
        revoked token may not have expired yet."""
        return self.expires_at is not None and self.expires_at <= now

    @staticmethod
    def digest_of(key: str) -> str:
        """The SHA-256 of a key in hexadecimal; only this digest is stored."""
        # A key has 256 random bits and cannot be guessed, so a slow digest would gain nothing.
        return hashlib.sha256(key.encode()).hexdigest()

    @classmethod
    def issue(
        cls,
        account: Account,
        name: str,
        scopes: Iterable[str] = tuple(SCOPES),
        expires_at: datetime | None = None,
    ) -> tuple["ApiToken", str]:
        """Create a token; return the token and its key, which cannot be shown again. Raises
        `Refused` if the account has `MAX_TOKENS` that can be used."""
        key = f"bs_{secrets.token_urlsafe(32)}"
        with transactions.transact():
            # Two requests at the same time wait for each other, so that both are counted.
            Account.objects.select_for_update(no_key=True).only("pk").get(pk=account.pk)
            usable = account.tokens.filter(revoked_at=None).exclude(expires_at__lte=timezone.now())
            if usable.count() >= MAX_TOKENS:
                raise Refused(
                    f"You have {MAX_TOKENS} tokens that can be used. Revoke one that is no longer "
                    "needed, then create this one."
                )
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
        """Revoke the token from `now` on and record an event by this account."""
        self.revoked_at = now
        self.save(update_fields=["revoked_at"])
        change = {"old": {"token": "made"}, "new": {"token": "revoked"}}
        Event.of_site("token", self.prefix, by.pk, **change)
