"""OpenID Connect as django-allauth speaks it, held to what its secure use asks for besides.

allauth asks by code, state and PKCE. Here the answer must also be signed by a key of the service,
made for us by the very service that was named, and carry the nonce of this sign-in.
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
# Those with a public key: none by which who only knows the client's secret could sign.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
REQUIRED_CLAIMS = ["iss", "sub", "aud", "exp", "iat", "nonce"]
# Seconds that clocks may differ.
LEEWAY_SECONDS = 60
MAX_EMAIL_LENGTH = 254


class TokenError(ValueError):
    """A token that does not show who somebody is; the message says why, to the log alone."""


def get_service() -> OpenID:
    """The service of the settings; a page that needs one is there only where one is set."""
    assert settings.OPENID
    return settings.OPENID


def derive_nonce(verifier: str) -> str:
    """The nonce of a sign-in, from the secret that PKCE keeps of it in the session."""
    return hashlib.sha256(f"nonce {verifier}".encode()).hexdigest()


def verify_token(token: str, keys: dict[str, Any], nonce: str) -> dict[str, Any]:
    """What a token says of somebody, if it is signed, for us, in time and of this sign-in."""
    us = get_service()
    try:
        head = jwt.get_unverified_header(token)
        if head.get("alg") not in ALGORITHMS:
            raise TokenError("It is signed by no method that proves anything.")
        key = jwt.PyJWK(_find_key(keys, head.get("kid")), algorithm=head["alg"])
        options: Any = {"require": REQUIRED_CLAIMS}
        said: dict[str, Any] = jwt.decode(
            token, key, [head["alg"]], options,
            audience=us.client, issuer=us.issuer, leeway=LEEWAY_SECONDS,
        )  # fmt: skip
    except (jwt.PyJWTError, TypeError, ValueError) as error:
        raise TokenError(f"{type(error).__name__}: {error}") from error
    if said["nonce"] != nonce:
        raise TokenError("It carries another nonce.")
    if said.get("azp", us.client) != us.client:
        raise TokenError("It was made for another site.")
    if not isinstance(said["sub"], str) or not said["sub"]:
        raise TokenError("It names nobody.")
    return said


def _find_key(keys: dict[str, Any], kid: str | None) -> dict[str, Any]:
    """The key that a token names; the only one, if it names none."""
    listed = keys.get("keys")
    found = [
        key
        for key in (listed if isinstance(listed, list) else [])
        if isinstance(key, dict)
        and key.get("use", "sig") == "sig"
        and kid in (None, key.get("kid"))
    ]
    if len(found) != 1:
        raise TokenError("It names no key of the service.")
    return found[0]


class OpenIDAdapter(OpenIDConnectOAuth2Adapter):
    """One sign-in, from what the service says of itself to what it says of a person."""

    nonce = ""

    @property
    def openid_config(self) -> dict[str, Any]:
        if not hasattr(self, "_openid_config"):
            self._openid_config = self._asked(identity.discover, get_service().issuer)
        return self._openid_config

    def get_access_token_data(
        self, request: HttpRequest, app: Any, client: Any, pkce_code_verifier: str = ""
    ) -> Any:
        self.nonce = derive_nonce(pkce_code_verifier)
        return super().get_access_token_data(request, app, client, pkce_code_verifier)

    def parse_token(self, data: dict[str, Any]) -> SocialToken:
        return SocialToken(token=str(data["access_token"]))  # which is never stored

    def complete_login(
        self, request: HttpRequest, app: Any, token: SocialToken, **more: Any
    ) -> SocialLogin:
        keys = self._asked(identity.fetch_json, self.openid_config["jwks_uri"])
        try:
            said = verify_token(str(more["response"].get("id_token", "")), keys, self.nonce)
        except TokenError as error:
            logger.warning("A sign-in was refused, since its token proves nothing: %s", error)
            troubles.stop_with_page(request, troubles.TOKEN_INVALID)
        if "email" not in said:
            said = self._told_more(said, token.token) | said
        return self.get_provider().sociallogin_from_response(request, said)

    def _told_more(self, said: dict[str, Any], token: str) -> dict[str, Any]:
        """What the service tells beside the token, if it is of the same person."""
        place = self.openid_config.get("userinfo_endpoint")
        if not place:
            return {}
        more = self._asked(identity.fetch_json, place, Authorization=f"Bearer {token}")
        return more if more.get("sub") == said["sub"] else {}

    def _asked(self, ask: Any, *args: Any, **more: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = ask(*args, **more)
        except identity.DiscoveryError as error:
            logger.warning("The service that people sign in by cannot be used: %s", error)
            troubles.stop_with_page(self.request, troubles.SERVICE_AWAY)
        return answer


class OpenIDProvider(OpenIDConnectProvider):
    """The service of the settings. Nothing that it says of a person is kept but who they are."""

    oauth2_adapter_class = OpenIDAdapter

    def get_pkce_params(self) -> dict[str, str]:
        given: dict[str, str] = super().get_pkce_params()
        return given | {"nonce": derive_nonce(given["code_verifier"])}

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Who is signed in links their account; nothing else is for the asker to say."""
        asked = super().get_redirect_from_request_kwargs(request)
        process = "connect" if request.user.is_authenticated else "login"
        return {"process": process, "next_url": asked.get("next_url")}

    def extract_uid(self, data: dict[str, Any]) -> str:
        """Of this service alone: a name means somebody else at another one."""
        return hashlib.sha256(f"{get_service().issuer}\n{data['sub']}".encode()).hexdigest()

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return {}

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        name = str(data.get("preferred_username") or "").partition("@")[0]
        return {"username": name, "email": verified_email(data)}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        return []


def verified_email(data: dict[str, Any]) -> str:
    """The address that the service has verified as the person's; "" if it says of none.

    Beyond ASCII some letters are lowered to others (K to k), so such an address counts as none.
    """
    email = data.get("email")
    if data.get("email_verified") not in (True, "true") or not isinstance(email, str):
        return ""
    known = (
        email.isascii() and email.isprintable() and "@" in email and len(email) <= MAX_EMAIL_LENGTH
    )
    return email if known else ""
