"""Passwords of encrypted exports: generated here, and not stored.

Archives can be attacked offline, and the format does not slow attackers down, so a password chosen
by a person would be too weak. Each password is derived from the secret key and a nonce of the job
whenever it is shown or used, so no database, log or backup contains it. Once the nonce is deleted
with the file, nobody can derive the password again.
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
    """A password without a job, to be shown at once."""
    return _format(secrets.token_bytes(BYTES))


def generate_nonce() -> str:
    """The nonce that a job stores for its password."""
    return secrets.token_urlsafe(BYTES)


def derive(result: Mapping[str, Any]) -> str:
    """The password of the export with this job result; "" if it has none (any more)."""
    if not result.get(NONCE_KEY):
        return ""
    made = salted_hmac("judging.passwords", result[NONCE_KEY], algorithm="sha256").digest()
    return _format(made[:BYTES])


def _format(secret: bytes) -> str:
    letters = base64.b32encode(secret).decode().lower()
    return "-".join(letters[at : at + GROUP] for at in range(0, len(letters), GROUP))
