from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from annotation.models import Account, ApiToken
from annotation.prepared import Prepared

_LIVE = Prepared(
    lambda digest: (
        ApiToken.objects.select_related("account")
        .filter(digest=digest, revoked_at=None, account__is_active=True)
        .order_by()
    )
)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer bs_...`; the key itself is never stored nor logged."""

    def authenticate(self, request: Request | HttpRequest) -> tuple[Account, ApiToken] | None:
        words = get_authorization_header(request).decode("latin-1").split()  # type: ignore[arg-type]
        if not words or words[0].lower() not in {"bearer", "token"}:
            return None
        if len(words) != 2:
            raise AuthenticationFailed("Send the header as: Authorization: Bearer KEY")
        token = _LIVE.first(digest=ApiToken.digest_of(words[1]))
        if token is None:
            raise AuthenticationFailed("This key is unknown or revoked. Make a new one.")
        self._note_use(token)
        return token.account, token

    def authenticate_header(self, request: Request | HttpRequest) -> str:
        return "Bearer"

    @staticmethod
    def _note_use(token: ApiToken) -> None:
        # Once an hour is enough to see whether a key is in use, and keeps calls free of a write.
        now = timezone.now()
        if token.last_used_at is None or (now - token.last_used_at).total_seconds() > 3600:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


class TokenScheme(OpenApiAuthenticationExtension):
    """How the API's schema describes the above."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
