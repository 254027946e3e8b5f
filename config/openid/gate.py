"""Finds or creates the account of a person who signs in through OpenID: by the linked account, or
by invitation."""

from typing import Any

from allauth.account.adapter import get_adapter as get_account_adapter
from allauth.account.utils import user_email
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin
from allauth.socialaccount.providers.base.constants import AuthError
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone

from annotation.db import transactions
from annotation.errors import Refused
from annotation.models import Account, Invitation
from annotation.projects import audit, invitations
from config.openid import troubles
from config.openid.protocol import PROVIDER, OpenIDProvider

LINK_AUDIT_NAME = "sign-in by another service"


class OpenIDAccountAdapter(DefaultSocialAccountAdapter):
    """Finds an account only by its link, never by e-mail address. Otherwise, whoever controls
    addresses at the service could take over accounts. With a verified address, a person can accept
    an invitation."""

    def list_apps(self, request: HttpRequest, **narrowed: Any) -> list[SocialApp]:
        """Return the service from the settings; it is not configured in the database."""
        openid = settings.OPENID
        if openid is None:
            return []
        given = {"server_url": openid.issuer, "oauth_pkce_enabled": True}
        app = SocialApp(provider="openid_connect", provider_id=PROVIDER, settings=given)
        app.name, app.client_id, app.secret = openid.name, openid.client, openid.secret
        return [app]

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: Any = None
    ) -> OpenIDProvider:
        """Return the configured service, whatever name the URL has. Raises `Http404` if no service
        is configured."""
        for app in self.list_apps(request):
            return OpenIDProvider(request, app=app)
        raise Http404

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Remove the e-mail addresses of the service before anything is stored. Called by
        allauth."""
        # The site stores e-mail addresses only in the account, and only verified ones.
        sociallogin.email_addresses = []

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """True for people with an invitation. For other people, raises an exception that shows an
        error page."""
        if not _invitations(sociallogin):
            troubles.stop_with_page(request, troubles.NOT_INVITED)
        return True

    def save_user(
        self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None
    ) -> Account:
        """Create an account with the memberships that the person is invited to; otherwise show an
        error."""
        found = _invitations(sociallogin)
        if not found:  # accepted in another window, or revoked, since it was found
            troubles.stop_with_page(request, troubles.NOT_INVITED)
        names = [sociallogin.user.username, found[0].alias]
        name = get_account_adapter().generate_unique_username(names, regex=r"[^\w\s+.-]")
        email = user_email(sociallogin.user)
        try:
            with transactions.transact():
                account = invitations.accept_from_service(found, name, email, now=timezone.now())
                _link(sociallogin, account)
        except Refused as refused:
            troubles.stop_with_page(request, troubles.NOT_INVITED, str(refused))
        for member in account.memberships.select_related("project"):
            messages.success(request, f"Welcome. You are {member.alias} in {member.project.name}.")
        places = [member.project.slug for member in account.memberships.select_related("project")]
        alone = len(places) == 1
        sociallogin.state["next"] = reverse("project", args=places) if alone else reverse("home")
        return account

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: Any = None,
    ) -> None:
        """Always raise an exception that shows an error page: the sign-in was cancelled, the
        service is not available, or the sign-in is unknown."""
        if error == AuthError.CANCELLED:
            troubles.stop_with_page(request, troubles.CANCELLED)
        if exception is not None:
            troubles.stop_with_page(request, troubles.SERVICE_AWAY)
        begun = (extra_context or {}).get("state") is not None
        troubles.stop_with_page(request, troubles.CANCELLED if begun else troubles.SIGN_IN_UNKNOWN)

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: SocialAccount) -> str:
        return reverse("openid")


def _invitations(sociallogin: SocialLogin) -> list[Invitation]:
    """Return the invitation whose link the user followed, otherwise all invitations that were sent
    to the verified address."""
    now = timezone.now()
    followed = invitations.find_invitation(
        _invitation_key(sociallogin.state.get("next") or ""), now=now
    )
    if followed:
        return [followed]
    return invitations.find_by_email(user_email(sociallogin.user), now=now)


def _invitation_key(address: str) -> str:
    """Return the key in the URL of an invitation; "" for other URLs."""
    try:
        match = resolve(address.partition("?")[0])
    except Resolver404:
        return ""
    return str(match.kwargs["invitation"]) if match.url_name == "invitation" else ""


def _link(sociallogin: SocialLogin, account: Account) -> None:
    sociallogin.user = sociallogin.account.user = account
    sociallogin.account.save()
    audit.record_account_change(account, account, new={LINK_AUDIT_NAME: "linked"})
