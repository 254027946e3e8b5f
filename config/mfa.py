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


def require_mfa(view: ViewFunction) -> ViewFunction:
    """For who has switched the second step on; others are led to where that is done."""

    @login_required
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        assert isinstance(request.user, Account)
        on = is_mfa_enabled(request.user)
        return view(request, *args, **kwargs) if on else redirect("mfa_index")

    return answer


# Where somebody who owes the second step may go: to set it up, to say who they are, and out.
OPEN_URLS = {
    *("mfa_index", "mfa_activate_totp", "mfa_view_recovery_codes", "mfa_download_recovery_codes"),
    *("account_reauthenticate", "mfa_reauthenticate", "account_logout"),
    *("account_change_password", "account_set_password"),
}


def mfa_middleware(get_response: ViewFunction) -> ViewFunction:
    """Leads and site admins set up the second step before anything else, where that is a duty."""

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
    """For templates: whether who is signed in can go nowhere before it is set up."""
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
    """A field for a code, in our words."""

    label, hint = "Code", ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = getattr(self, "fields", {})
        field = fields["code"]
        field.label, field.help_text = self.label, self.hint
        field.widget.attrs.pop("placeholder", None)
        field.widget.attrs |= {"autofocus": True, "spellcheck": "false"}


class ActivateForm(_CodeField, totp_forms.ActivateTOTPForm):
    label = "Code that the app shows"


class AuthenticateForm(_CodeField, base_forms.AuthenticateForm):
    hint = "Of your app; or one of your recovery codes, which works once."


class MFAReauthenticateForm(_CodeField, base_forms.ReauthenticateForm):
    hint = AuthenticateForm.hint
