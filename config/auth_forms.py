"""Forms for sign-in and passwords, based on those of allauth."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from allauth.account import forms
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.internal import ratelimit
from django.conf import settings
from django.db import connections
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from annotation.db import transactions
from annotation.models import Account
from annotation.projects import audit

logger = logging.getLogger(__name__)
# The account changes that the audit log records, by the mail template that allauth uses for each
# change.
AUDITED_MAILS = {
    "mfa/email/totp_activated": {"two-step sign-in": "on"},
    "mfa/email/totp_deactivated": {"two-step sign-in": "off"},
    "mfa/email/webauthn_added": {"passkey": "added"},
    "mfa/email/webauthn_removed": {"passkey": "removed"},
    "mfa/email/recovery_codes_generated": {"recovery codes": "made anew"},
    "socialaccount/email/account_connected": {"sign-in by another service": "linked"},
    "socialaccount/email/account_disconnected": {"sign-in by another service": "unlinked"},
}


# Mails are sent in another thread. Otherwise the time and the errors of a response would reveal
# whether an account exists. The mails are sent one at a time, in order.
MAIL_EXECUTOR = ThreadPoolExecutor(max_workers=1, thread_name_prefix="letters")


def _account_key(credentials: dict[str, Any]) -> str:
    """What is the same for all names of an account. An unknown name is counted as well, so that an
    answer does not tell which accounts exist."""
    login = str(credentials.get("email") or credentials.get("username", "")).lower()
    named = Account.objects.filter(Q(username__iexact=login) | Q(email__iexact=login))
    account = named.order_by("pk").values_list("pk", flat=True).first() if login else None
    return f"account {account}" if account else f"name {login}"


class AccountAdapter(DefaultAccountAdapter):
    def send_password_reset_mail(self, user: Any, email: str, context: dict[str, Any]) -> None:
        """Send the mail in another thread. Errors are only logged, since nobody waits for the
        mail."""
        write = partial(super().send_password_reset_mail, user, email, context)
        MAIL_EXECUTOR.submit(copy_context().run, _send_mail, write)

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Always False: sign-up is closed, and accounts need an invitation."""
        return False

    def is_safe_url(self, url: str | None) -> bool:
        """True if the address leads to a page of this site. False if it cannot be read."""
        try:
            return bool(super().is_safe_url(url))
        except ValueError:
            return False

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, str]]:
        """The ways to confirm who one is, in the words of this site."""
        ways: list[dict[str, str]] = super().get_reauthentication_methods(user)
        for way in ways:
            if way["id"] == "mfa_reauthenticate:webauthn":
                way["description"] = "Use your passkey"
        return ways

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Return the account with this name or address and this password; None if there is none."""
        # allauth tries the user name as an address too. It would check the password twice for an
        # address passed as both, and the time would tell that an account has it.
        if credentials.get("email") == credentials.get("username"):
            credentials.pop("email", None)
        return super().authenticate(request, **credentials)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the attempt; authentication takes it back if the password is right. Raises
        ValidationError after too many wrong passwords for this account, from this address or from
        all addresses together."""
        super().pre_authenticate(request, **credentials)
        used = ratelimit.consume(
            request,
            app="allauth.account",
            action="login_failed_for_account",
            key=_account_key(credentials),
        )
        if not used:
            raise self.validation_error("too_many_login_attempts")
        self._login_failed_rl_usage.usage += used.usage

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """The key that allauth counts wrong passwords by."""
        return f"{_account_key(credentials)} {ratelimit.get_ip(request)}"

    def set_password(self, user: Account, password: str) -> None:
        """Set the password and record an event that does not contain the password."""
        user.set_password(password)
        # Checking and hashing take long: rights and names may have changed meanwhile.
        user.save(update_fields=["password"])
        audit.record_account_change(user, user, new={"password": "set anew"})

    def send_notification_mail(
        self, template_prefix: str, user: Any, *args: Any, **more: Any
    ) -> None:
        """Record changes of sign-in methods in the audit log; allauth calls this method for all of
        them."""
        if template_prefix in AUDITED_MAILS:
            audit.record_account_change(user, user, new=AUDITED_MAILS[template_prefix])
        super().send_notification_mail(template_prefix, user, *args, **more)


def _send_mail(write: Callable[[], None]) -> None:
    try:
        write()
    except Exception:
        logger.exception("The e-mail with a link to set a new password could not be sent.")
    finally:
        # Nothing else closes a connection of this thread, not even one that was lost.
        connections.close_all()


class _PlainLabels:
    """Replaces allauth's labels with ours, and removes placeholders that repeat the labels."""

    labels: dict[str, str] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = getattr(self, "fields", {})
        for name, field in fields.items():
            field.widget.attrs.pop("placeholder", None)
            field.label = self.labels.get(name, field.label)
            field.help_text = settings.PASSWORDS_IN_WORDS if name == "password1" else ""


class LoginForm(_PlainLabels, forms.LoginForm):
    labels = {"login": "User name or e-mail address", "password": "Password"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].widget.attrs |= {"autocomplete": "username", "autofocus": True}


class ChangePasswordForm(_PlainLabels, forms.ChangePasswordForm):
    labels = {
        "oldpassword": "Current password",
        "password1": "New password",
        "password2": "Repeat the new password",
    }


class ReauthenticateForm(_PlainLabels, forms.ReauthenticateForm):
    labels = {"password": "Password"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].widget.attrs["autofocus"] = True


class SetPasswordForm(_PlainLabels, forms.SetPasswordForm):
    labels = ChangePasswordForm.labels


class ResetPasswordForm(_PlainLabels, forms.ResetPasswordForm):
    labels = {"email": "E-mail address of your account"}


class ResetPasswordKeyForm(_PlainLabels, forms.ResetPasswordKeyForm):
    labels = ChangePasswordForm.labels

    def save(self) -> None:
        """Set the password, which ends all sessions, and then revoke the account's API tokens.
        Addresses are not confirmed: somebody else may have made the account and its tokens."""
        super().save()
        with transactions.transact():
            for token in self.user.tokens.filter(revoked_at=None):
                token.revoke(timezone.now(), self.user)
