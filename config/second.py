"""The second step of signing in: a code of an app, or one of the codes kept for a lost device."""

import base64
import hashlib
import logging
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base import forms as base_forms
from allauth.mfa.totp import forms as totp_forms
from allauth.mfa.utils import is_mfa_enabled
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from annotation.models import Account

logger = logging.getLogger(__name__)
View = Callable[..., HttpResponseBase]


class Adapter(DefaultMFAAdapter):
    """Secrets are stored so that a copy of the database opens nothing without SECRET_KEY."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "This code does not fit. Take the one that the app shows now.",
    }

    def get_totp_issuer(self) -> str:
        return "Blindspot"

    def get_totp_label(self, user: Any) -> str:
        name: str = user.get_username()
        return name

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """The text; for one that another SECRET_KEY hid, some that no code fits."""
        try:
            return _cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            logger.error("A second step was set up under another SECRET_KEY and has to be reset.")
            return base64.b32encode(secrets.token_bytes(20)).decode()


def once_on(view: View) -> View:
    """For who has switched the second step on; others are led to where that is done."""

    @login_required
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        assert isinstance(request.user, Account)
        on = is_mfa_enabled(request.user)
        return view(request, *args, **kwargs) if on else redirect("mfa_index")

    return answer


def _cipher() -> Fernet:
    key = hashlib.sha256(b"blindspot second step " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class _Code:
    """A field for a code, in our words."""

    label, hint = "Code", ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = getattr(self, "fields", {})
        field = fields["code"]
        field.label, field.help_text = self.label, self.hint
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs |= {"autofocus": True, "spellcheck": "false"}


class ActivateForm(_Code, totp_forms.ActivateTOTPForm):
    label = "Code that the app shows"


class AuthenticateForm(_Code, base_forms.AuthenticateForm):
    hint = "Of your app; or one of your recovery codes, which works once."


class ReauthenticateForm(_Code, base_forms.ReauthenticateForm):
    hint = AuthenticateForm.hint
