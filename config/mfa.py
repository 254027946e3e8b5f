"""Two-step sign-in: a code from an app, or a recovery code."""

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
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import Resolver404, resolve

from annotation.api.responses import PROBLEM_CONTENT_TYPE, build_problem
from annotation.models import Account
from annotation.projects import access

logger = logging.getLogger(__name__)
ViewFunction = Callable[..., HttpResponseBase]


class MFAAdapter(DefaultMFAAdapter):
    """Encrypts secrets, so that a copy of the database is useless to anybody without SECRET_KEY."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": "This code is wrong. Enter the one that the app shows now.",
    }

    def get_totp_issuer(self) -> str:
        return "Blindspot"

    def get_totp_label(self, user: Any) -> str:
        name: str = user.get_username()
        return name

    def encrypt(self, text: str) -> str:
        """Encrypt a text with a key derived from SECRET_KEY."""
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a text. If another SECRET_KEY encrypted it, return a random secret, which no code
        matches."""
        try:
            return _cipher().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            logger.error("A two-step sign-in was set up with another SECRET_KEY and must be reset.")
            return base64.b32encode(secrets.token_bytes(20)).decode()


def require_mfa(view: ViewFunction) -> ViewFunction:
    """Decorator for views that are only for accounts with two-step sign-in. Other accounts are
    redirected to the page where they can set it up."""

    @login_required
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        assert isinstance(request.user, Account)
        on = is_mfa_enabled(request.user)
        return view(request, *args, **kwargs) if on else redirect("mfa_index")

    return answer


# Pages open to accounts that have yet to set up two-step sign-in: the setup itself, passwords and
# signing out.
OPEN_URLS = {
    *("mfa_index", "mfa_activate_totp", "mfa_view_recovery_codes", "mfa_download_recovery_codes"),
    *("account_reauthenticate", "mfa_reauthenticate", "account_logout"),
    *("account_change_password", "account_set_password"),
}


def mfa_middleware(get_response: ViewFunction) -> ViewFunction:
    """Middleware that makes leads and site admins set up two-step sign-in before all else, if it is
    required."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not settings.SECOND_STEP_REQUIRED or not isinstance(request.user, Account):
            return get_response(request)
        if not access.must_set_up_mfa(request.user) or _is_open_url(request):
            return get_response(request)
        if request.path.startswith("/api/"):
            said = build_problem(403, access.MFA_REQUIRED_MESSAGE)
            return JsonResponse(said, status=403, content_type=PROBLEM_CONTENT_TYPE)
        return redirect("mfa_index")

    return middleware


def mfa_context(request: HttpRequest) -> dict[str, bool]:
    """Tell templates whether the user must set up two-step sign-in first."""
    account = getattr(request, "user", None)
    return {"second_step_owed": isinstance(account, Account) and access.must_set_up_mfa(account)}


def _is_open_url(request: HttpRequest) -> bool:
    try:
        return resolve(request.path_info).url_name in OPEN_URLS
    except Resolver404:
        return False


def _cipher() -> Fernet:
    key = hashlib.sha256(b"blindspot second step " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class _CodeField:
    """Gives the field for a code the label and the help text of this site."""

    label, hint = "Code", ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = getattr(self, "fields", {})
        field = fields["code"]
        field.label, field.help_text = self.label, self.hint
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs |= {"autofocus": True, "spellcheck": "false"}


class ActivateForm(_CodeField, totp_forms.ActivateTOTPForm):
    label = "Code from the app"


class AuthenticateForm(_CodeField, base_forms.AuthenticateForm):
    hint = "The code from your app, or one of your recovery codes. Each recovery code works once."


class MFAReauthenticateForm(_CodeField, base_forms.ReauthenticateForm):
    hint = AuthenticateForm.hint
