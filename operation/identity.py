"""Read the metadata of a single sign-on service: OpenID Connect Discovery 1.0."""

from typing import Any

import requests

TIMEOUT_SECONDS = 5
DISCOVERY_PATH = "/.well-known/openid-configuration"
REQUIRED_KEYS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class DiscoveryError(ValueError):
    """The service cannot be used. The message says why."""


def discover(issuer: str) -> dict[str, Any]:
    """Find the addresses where people sign in at the service, where tokens are issued, and where
    keys are published.

    Raises DiscoveryError if the service does not answer, names another issuer, or has endpoints
    without TLS.
    """
    said = fetch_json(issuer.rstrip("/") + DISCOVERY_PATH)
    if said.get("issuer") != issuer:
        raise DiscoveryError(f"It gives its issuer as {said.get('issuer')!r}.")
    scheme = issuer.partition(":")[0]
    for name in REQUIRED_KEYS:
        if not str(said.get(name, "")).startswith((f"{scheme}://", "https://")):
            raise DiscoveryError(f"It gives no safe {name}.")
    return said


def fetch_json(address: str, **headers: str) -> dict[str, Any]:
    """Fetch the JSON object at an address. Raises DiscoveryError."""
    try:
        answer = requests.get(address, headers=headers, timeout=TIMEOUT_SECONDS)
        answer.raise_for_status()
        said = answer.json()
    except requests.RequestException as error:
        raise DiscoveryError(f"It does not answer ({type(error).__name__}).") from error
    if not isinstance(said, dict):
        raise DiscoveryError("Its answer is not a JSON object.")
    return said
