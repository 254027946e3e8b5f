"""What a service says of itself that people may sign in by: OpenID Connect Discovery 1.0."""

from typing import Any

import requests

SECONDS = 5
PLACE = "/.well-known/openid-configuration"
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class Unusable(ValueError):
    """It cannot be used; the message says why."""


def discover(issuer: str) -> dict[str, Any]:
    """Where the service of this address asks people, gives tokens and shows its keys.

    Raises Unusable if it does not answer, is another one, or would have us go on without TLS.
    """
    said = fetch(issuer.rstrip("/") + PLACE)
    if said.get("issuer") != issuer:
        raise Unusable(f"It calls itself {said.get('issuer')!r}.")
    scheme = issuer.partition(":")[0]
    for name in NEEDED:
        if not str(said.get(name, "")).startswith((f"{scheme}://", "https://")):
            raise Unusable(f"It names no safe {name}.")
    return said


def fetch(address: str, **headers: str) -> dict[str, Any]:
    """The JSON object at an address. Raises Unusable."""
    try:
        answer = requests.get(address, headers=headers, timeout=SECONDS)
        answer.raise_for_status()
        said = answer.json()
    except requests.RequestException as error:
        raise Unusable(f"It does not answer ({type(error).__name__}).") from error
    if not isinstance(said, dict):
        raise Unusable("Its answer is no JSON object.")
    return said
