"""Two-step sign-in: a code from an app, a passkey, or a recovery code."""

import base64
import hashlib
import logging
import secrets
import struct
import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from allauth.account.app_settings import REAUTHENTICATION_TIMEOUT
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import get_reauthentication_flows
from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa import app_settings as mfa_settings
from allauth.mfa.adapter import DefaultMFAAdapter, get_adapter
from allauth.mfa.base import forms as base_forms
from allauth.mfa.models import Authenticator
from allauth.mfa.totp import forms as totp_forms
from allauth.mfa.utils import is_mfa_enabled
from allauth.mfa.webauthn import forms as webauthn_forms
from allauth.mfa.webauthn.internal import auth as webauthn
from allauth.mfa.webauthn.views import ReauthenticateWebAuthnView
from cryptography.fernet import Fernet, InvalidToken
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import Resolver404, resolve
from fido2.webauthn import CollectedClientData

from annotation.api.responses import PROBLEM_CONTENT_TYPE, build_problem
from annotation.db import transactions
from annotation.models import Account
from annotation.projects import access

logger = logging.getLogger(__name__)
MAX_PASSKEYS = 20
# Characters of a browser's answer; those of today's devices have one or two thousand.
MAX_CREDENTIAL = 20_000
# What the libraries raise for an answer that they cannot read.
UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
PASSKEY_REFUSED = "This passkey was not accepted. Try again, or use another one or a code."
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

    def generate_authenticator_name(self, user: Any, type: str) -> str:
        """The name that a new passkey has if nobody gives it another."""
        return f"Passkey {count_passkeys(user) + 1}"

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """The site as the person's device shows it when it asks for the passkey."""
        return {**super().get_public_key_credential_rp_entity(), "name": "Blindspot"}

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


def count_passkeys(user: Any) -> int:
    """The number of the account's passkeys."""
    found = Authenticator.objects.filter(user=user, type=Authenticator.Type.WEBAUTHN)
    return found.count()


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


def require_recent_sign_in(view: ViewFunction) -> ViewFunction:
    """Decorator for views that give an account another way to sign in. allauth asks who has a
    password or a second step to confirm it; whoever has neither, and signs in by another service,
    must have done so a moment ago. Otherwise they sign in again first."""

    @login_required
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if get_reauthentication_flows(request.user):
            return view(request, *args, **kwargs)
        signed_in = [one["at"] for one in get_authentication_records(request, request.user)]
        if time.time() - max(signed_in, default=0) < REAUTHENTICATION_TIMEOUT:
            return view(request, *args, **kwargs)
        page = request.path
        logout(request)
        messages.info(request, "This page changes how you sign in. Sign in again to open it.")
        return redirect_to_login(page)

    return answer


def one_at_a_time(view: ViewFunction) -> ViewFunction:
    """Decorator for views whose forms count what an account has: of its requests, one is answered
    after the other."""

    @login_required
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        with transactions.transact():
            Account.objects.select_for_update(no_key=True).get(username=request.user.get_username())
            return view(request, *args, **kwargs)

    return answer


# Pages open to accounts that have yet to set up two-step sign-in: the setup itself, passwords and
# signing out.
OPEN_URLS = {
    *("mfa_index", "mfa_activate_totp", "mfa_view_recovery_codes", "mfa_download_recovery_codes"),
    *("account_reauthenticate", "mfa_reauthenticate", "account_logout"),
    *("mfa_add_webauthn", "mfa_reauthenticate_webauthn"),
    *("account_change_password", "account_set_password"),
}


class MFAMiddleware:
    """Middleware that makes leads and site admins set up two-step sign-in before all else, if it is
    required. It asks who they are once the whole request has come."""

    def __init__(self, get_response: ViewFunction) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        # An address that does not exist has no view.
        return response if request.resolver_match else self.process_view(request) or response

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Answer whoever must set up two-step sign-in first, except on the pages for that."""
        if not settings.SECOND_STEP_REQUIRED or not isinstance(request.user, Account):
            return None
        if not access.must_set_up_mfa(request.user) or _is_open_url(request):
            return None
        if request.path.startswith("/api/"):
            said = build_problem(403, access.MFA_REQUIRED_MESSAGE)
            return JsonResponse(said, status=403, content_type=PROBLEM_CONTENT_TYPE)
        return redirect("mfa_index")


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


class _OnceField(_CodeField):
    """Accepts each code once. Allauth remembers a code for one period of time, but accepts it for
    as many as the tolerance says."""

    def clean_code(self) -> str:
        code: str = super().clean_code()  # type: ignore[misc]
        found: Authenticator = self.authenticator  # type: ignore[attr-defined]
        periods = 1 + 2 * mfa_settings.TOTP_TOLERANCE
        name = f"mfa.code.{found.pk}.{normalize_user_code(code)}"
        if not cache.add(name, True, periods * mfa_settings.TOTP_PERIOD):
            raise get_adapter().validation_error("incorrect_code")
        return code


class AuthenticateForm(_OnceField, base_forms.AuthenticateForm):
    hint = "The code from your app, or one of your recovery codes. Each recovery code works once."


class MFAReauthenticateForm(_OnceField, base_forms.ReauthenticateForm):
    hint = AuthenticateForm.hint


def _check_passkey(check: Callable[[], Any]) -> Any:
    """Return what the check returns. The browser's answer may be anything: raises `ValidationError`
    if it is not that of a passkey."""
    try:
        return check()
    except ValidationError as error:
        if error.code != "incorrect_code":
            raise
        raise ValidationError(PASSKEY_REFUSED) from error
    except UNREADABLE as error:
        logger.info("A passkey could not be read: %s.", type(error).__name__)
        raise ValidationError(PASSKEY_REFUSED) from error


def _check_origin(said: CollectedClientData) -> None:
    """Raise `ValidationError` for what a passkey signed at another address than SITE_URL, if there
    is one. The library also accepts subdomains and other ports, where somebody else may have
    pages."""
    own = settings.CSRF_TRUSTED_ORIGINS
    if not settings.MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN and said.origin not in own:
        raise ValidationError(PASSKEY_REFUSED)


class _CredentialField(forms.JSONField):
    """What the browser says of a passkey."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        if len(value or "") > MAX_CREDENTIAL:
            raise ValidationError(PASSKEY_REFUSED)
        return _check_passkey(partial(super().to_python, value))

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was sent is of no use a second time, and may be unreadable."""
        return initial


class AddPasskeyForm(webauthn_forms.AddWebAuthnForm):
    credential = _CredentialField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name = self.fields["name"]
        name.max_length = 80
        name.validators.append(MaxLengthValidator(80))
        name.widget.attrs |= {"autofocus": True, "maxlength": 80}
        name.help_text = "For example the device that keeps it."

    def clean(self) -> dict[str, Any]:
        if count_passkeys(self.user) >= MAX_PASSKEYS:
            raise ValidationError(
                f"You have {MAX_PASSKEYS} passkeys, which is the most. Remove one that you no "
                "longer use."
            )
        found: dict[str, Any] = _check_passkey(super().clean)
        if "credential" in found:
            made = webauthn.parse_registration_response(found["credential"])
            _check_origin(made.response.client_data)
            data = made.response.attestation_object.auth_data.credential_data
            if webauthn.get_authenticator_by_credential_id(self.user, data.credential_id):
                raise ValidationError("You have this passkey already.")
        return found


class PasskeyForm(webauthn_forms.AuthenticateWebAuthnForm):
    credential = _CredentialField()

    def clean_credential(self) -> Authenticator:
        found: Authenticator = _check_passkey(super().clean_credential)
        made = webauthn.parse_authentication_response(self.cleaned_data["credential"])
        _check_origin(made.response.client_data)
        return found


class PasskeyReauthenticateForm(PasskeyForm):
    reauthenticated = True


class PasskeyReauthenticateView(ReauthenticateWebAuthnView):
    def form_invalid(self, form: Any) -> HttpResponse:
        """Say why on the same page."""
        for said in form.errors.get("credential", []):
            messages.error(self.request, said)
        return redirect(self.request.get_full_path())
