from datetime import timedelta
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from annotation.db.sql import PreparedQuery
from annotation.models import Account, ApiToken, Membership
from annotation.projects import access

_TOKEN_QUERY = PreparedQuery(
    lambda digest: (
        ApiToken.objects.select_related("account")
        .filter(digest=digest, revoked_at=None, account__is_active=True)
        .order_by()
    )
)
# This finds the owner of a token together with the membership, since nearly every call needs both.
_MEMBERSHIP_QUERY = PreparedQuery(
    lambda digest, slug, used_since, now: Membership.objects.seats_by_key(
        digest, slug, used_since, now
    )
)
# Recording the use of a token once an hour saves writes, and is enough to see if the token is used.
LAST_USED_INTERVAL = timedelta(hours=1)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer bs_...`; the key itself is neither stored nor logged.

    `request.auth` is the set of the token's scopes. Raises `AuthenticationFailed` for an unknown,
    revoked or expired key, and `PermissionDenied` if the account must set up two-step sign-in.
    """

    def authenticate(self, request: Request | HttpRequest) -> tuple[Account, frozenset[str]] | None:
        """Find the account and the scopes of the token; None if the request sends no token. Raises
        `AuthenticationFailed` for a wrong header or key, `PermissionDenied` if the account must set
        up two-step sign-in first."""
        words = get_authorization_header(request).decode("latin-1").split()  # type: ignore[arg-type]
        if not words or words[0].lower() not in {"bearer", "token"}:
            return None
        if len(words) != 2:
            raise AuthenticationFailed("Send the header as: Authorization: Bearer KEY")
        digest = ApiToken.digest_of(words[1])
        account, scopes = self._seated(request, digest) or self._account(digest)
        if access.must_set_up_mfa(account):
            raise PermissionDenied(access.MFA_REQUIRED_MESSAGE)
        return account, frozenset(scopes.split())

    @staticmethod
    def _seated(request: Request | HttpRequest, digest: str) -> tuple[Account, str] | None:
        slug = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
        if slug is None:
            return None
        now = timezone.now()
        times: Any = [
            connection.ops.adapt_datetimefield_value(one) for one in (now - LAST_USED_INTERVAL, now)
        ]
        member: Any = _MEMBERSHIP_QUERY.first(
            digest=digest, slug=slug, used_since=times[0], now=times[1]
        )
        if member is None or member.account is None:
            return None
        member.account.seat = member
        return member.account, member.key_scopes

    @staticmethod
    def _account(digest: str) -> tuple[Account, str]:
        token, now = _TOKEN_QUERY.first(digest=digest), timezone.now()
        if token is None:
            raise AuthenticationFailed("This key is unknown or revoked. Create a new one.")
        if token.has_expired(now):
            raise AuthenticationFailed("This key has expired. Create a new one.")
        if token.last_used_at is None or now - token.last_used_at > LAST_USED_INTERVAL:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
        return token.account, token.scopes

    def authenticate_header(self, request: Request | HttpRequest) -> str:
        """The scheme for `WWW-Authenticate`; without a scheme, refused requests would not get
        status 401."""
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):
    """The description of `TokenAuthentication` in the OpenAPI schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
