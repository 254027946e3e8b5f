"""OpenID Connect with django-allauth, with additional security checks.

allauth uses the authorization code with state and PKCE. Here the ID token must also be signed by
the service's key, issued for this site by the configured service, and contain the nonce of this
sign-in.
"""

import hashlib
import logging
from typing import Any

import jwt
from allauth.socialaccount.models import SocialLogin, SocialToken
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest

from config.environment import OpenID
from config.openid import troubles
from operation import identity

logger = logging.getLogger(__name__)
PROVIDER = "openid"
# Only algorithms with a public key. With other algorithms, anybody who knows the client secret
# could sign tokens.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
REQUIRED_CLAIMS = ["iss", "sub", "aud", "exp", "iat", "nonce"]
# Allowed clock difference in seconds.
LEEWAY_SECONDS = 60
MAX_EMAIL_LENGTH = 254


class TokenError(ValueError):
    """A token that does not prove an identity. The message says why, and is only written to the
    log."""


def get_service() -> OpenID:
    """Return the service from the settings. Pages that need the service exist only if it is
    configured."""
    assert settings.OPENID
    return settings.OPENID


def derive_nonce(verifier: str) -> str:
    """Derive the nonce of a sign-in from the PKCE secret in the session."""
    return hashlib.sha256(f"nonce {verifier}".encode()).hexdigest()


def verify_token(token: str, keys: dict[str, Any], nonce: str) -> dict[str, Any]:
    """Return the claims of a token, after checking that the token is signed, issued for this site,
    not expired, and part of this sign-in."""
    us = get_service()
    try:
        head = jwt.get_unverified_header(token)
        if head.get("alg") not in ALGORITHMS:
            raise TokenError("Its signature method is not accepted.")
        key = jwt.PyJWK(_find_key(keys, head.get("kid")), algorithm=head["alg"])
        options: Any = {"require": REQUIRED_CLAIMS}
        said: dict[str, Any] = jwt.decode(
            token, key, [head["alg"]], options,
            audience=us.client, issuer=us.issuer, leeway=LEEWAY_SECONDS,
        )  # fmt: skip
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        raise TokenError(f"{type(error).__name__}: {error}") from error
    if said["nonce"] != nonce:
        raise TokenError("Its nonce belongs to another sign-in.")
    if said.get("azp", us.client) != us.client:
        raise TokenError("It was issued for another site.")
    if not isinstance(said["sub"], str) or not said["sub"]:
        raise TokenError("It does not name a user.")
    return said


def _find_key(keys: dict[str, Any], kid: str | None) -> dict[str, Any]:
    """Find the key with the id in the token; if the token has no key id, the only key."""
    listed = keys.get("keys")
    found = [
        key
        for key in (listed if isinstance(listed, list) else [])
        if isinstance(key, dict)
        and key.get("use", "sig") == "sig"
        and kid in (None, key.get("kid"))
    ]
    if len(found) != 1:
        raise TokenError("It does not name a key of the service.")
    return found[0]


class OpenIDAdapter(OpenIDConnectOAuth2Adapter):
    """One sign-in: discovery, token and user information."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        """The discovery document of the service, requested once per sign-in. If the service cannot
        be used, the sign-in ends with an error page."""
        if not hasattr(self, "_openid_config"):
            self._openid_config = self._asked(identity.discover, get_service().issuer)
        return self._openid_config

    def get_access_token_data(
        self, request: HttpRequest, app: Any, client: Any, pkce_code_verifier: str = ""
    ) -> Any:
        """Return the answer of the token endpoint. Also sets the nonce that the token must
        contain."""
        self.nonce = derive_nonce(pkce_code_verifier)
        return super().get_access_token_data(request, app, client, pkce_code_verifier)

    def parse_token(self, data: dict[str, Any]) -> SocialToken:
        """Return the access token, which is never stored."""
        return SocialToken(token=str(data["access_token"]))  # never stored

    def complete_login(
        self, request: HttpRequest, app: Any, token: SocialToken, **more: Any
    ) -> SocialLogin:
        """Return the sign-in with the verified token. If verification fails, the sign-in stops with
        an error page. User information is requested only if the token has no e-mail address."""
        keys = self._asked(identity.fetch_json, self.openid_config["jwks_uri"])
        try:
            said = verify_token(str(more["response"].get("id_token", "")), keys, self.nonce)
        except TokenError as error:
            logger.warning("A sign-in was refused because its token is not valid: %s", error)
            troubles.stop_with_page(request, troubles.TOKEN_INVALID)
        if "email" not in said:
            said = self._told_more(said, token.token) | said
        return self.get_provider().sociallogin_from_response(request, said)

    def _told_more(self, said: dict[str, Any], token: str) -> dict[str, Any]:
        """Return the claims from the userinfo endpoint if they are about the same person; otherwise
        {}."""
        place = self.openid_config.get("userinfo_endpoint")
        if not place:
            return {}
        more = self._asked(identity.fetch_json, place, Authorization=f"Bearer {token}")
        return more if more.get("sub") == said["sub"] else {}

    def _asked(self, ask: Any, *args: Any, **more: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = ask(*args, **more)
        except identity.DiscoveryError as error:
            logger.warning("The sign-in service cannot be used: %s", error)
            troubles.stop_with_page(self.request, troubles.SERVICE_AWAY)
        return answer


class OpenIDProvider(OpenIDConnectProvider):
    """The service from the settings. Only the person's identifier at the service is stored."""

    oauth2_adapter_class = OpenIDAdapter

    def get_pkce_params(self) -> dict[str, str]:
        """Return the parameters of PKCE, with a nonce derived from the code verifier."""
        given: dict[str, str] = super().get_pkce_params()
        return given | {"nonce": derive_nonce(given["code_verifier"])}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Return the settings of the sign-in: signed-in users link their account, others sign in.
        The request cannot choose."""
        asked = super().get_redirect_from_request_kwargs(request)
        process = "connect" if request.user.is_authenticated else "login"
        return {"process": process, "next_url": asked.get("next_url")}

    def extract_uid(self, data: dict[str, Any]) -> str:
        """Return an id that is unique to this service, since other services may use the same
        subject."""
        return hashlib.sha256(f"{get_service().issuer}\n{data['sub']}".encode()).hexdigest()

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return nothing: what the service says about a person is not stored."""
        return {}

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the name up to any @, and the e-mail address if the service has verified it."""
        name = str(data.get("preferred_username") or "").partition("@")[0]
        return {"username": name, "email": verified_email(data)}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """Return nothing: allauth would store the addresses separately from the account."""
        return []


def verified_email(data: dict[str, Any]) -> str:
    """Return the person's e-mail address if the service has verified it; otherwise "".

    Non-ASCII addresses are ignored, since lower-casing maps some letters to others (K to k).
    """
    email = data.get("email")
    if data.get("email_verified") not in (True, "true") or not isinstance(email, str):
        return ""
    known = (
        email.isascii() and email.isprintable() and "@" in email and len(email) <= MAX_EMAIL_LENGTH
    )
    return email if known else ""
