"""Passwords of encrypted exports: made by us, kept nowhere.

The archives are tried offline, and the format slows nobody down, so that a password which a person
thinks of would not do. One is worked out from the secret key and a number of the job whenever it
is shown or used: no database, log or backup holds it, and once the number is forgotten with the
file nobody can work it out again.
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
    """One that has no job, to be shown at once."""
    return _format(secrets.token_bytes(BYTES))


def generate_nonce() -> str:
    """What a job keeps for its password."""
    return secrets.token_urlsafe(BYTES)


def derive(result: Mapping[str, Any]) -> str:
    """The password of the export that a job describes so; "" for one that has none (any more)."""
    if not result.get(NONCE_KEY):
        return ""
    made = salted_hmac("judging.passwords", result[NONCE_KEY], algorithm="sha256").digest()
    return _format(made[:BYTES])


def _format(secret: bytes) -> str:
    letters = base64.b32encode(secret).decode().lower()
    return "-".join(letters[at : at + GROUP] for at in range(0, len(letters), GROUP))
