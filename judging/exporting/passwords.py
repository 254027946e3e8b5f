"""Passwords of encrypted exports: generated here, and not stored.

Archives can be attacked offline, and the format does not slow attackers down, so a password chosen
by a person would be too weak. Whenever a password is shown or used, it is derived from the secret
key and a nonce of the job, so no database, log or backup contains the password. Once the nonce is
deleted together with the file, nobody can derive the password again.
"""

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from django.utils.crypto import salted_hmac

# 24 letters and digits of five bits each.
BYTES, GROUP = 15, 6
NONCE_KEY = "nonce"


def generate() -> str:
    """Generate a password that belongs to no job and is shown immediately."""
    return _format(secrets.token_bytes(BYTES))


def generate_nonce() -> str:
    """Generate the nonce that a job stores for its password."""
    return secrets.token_urlsafe(BYTES)


def derive(result: Mapping[str, Any]) -> str:
    """Return the password of the export with this job result; "" if it has no password, or no
    longer has one.
    """
    if not result.get(NONCE_KEY):
        return ""
    made = salted_hmac("judging.passwords", result[NONCE_KEY], algorithm="sha256").digest()
    return _format(made[:BYTES])


def _format(secret: bytes) -> str:
    letters = base64.b32encode(secret).decode().lower()
    return "-".join(letters[at : at + GROUP] for at in range(0, len(letters), GROUP))
