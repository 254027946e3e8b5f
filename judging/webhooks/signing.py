"""Signatures of webhooks, as the public convention Standard Webhooks has them.

The secret is derived from the secret key and the webhook's nonce whenever it is used or shown, so
no database, log or backup contains it.
"""

import base64
import hmac
import secrets
from datetime import datetime

from django.utils.crypto import salted_hmac

PREFIX = "whsec_"


def generate_nonce() -> str:
    """Generate the nonce from which a webhook's secret is derived."""
    return secrets.token_urlsafe(24)


def derive_secret(nonce: str) -> str:
    """Return the secret as its receiver needs it: `whsec_` and 32 bytes in base64."""
    made = salted_hmac("judging.webhooks", nonce, algorithm="sha256").digest()
    return PREFIX + base64.b64encode(made).decode()


def sign(secret: str, uid: str, body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of one try: id, Unix seconds, and the signature over both and the body."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    seconds = str(int(now.timestamp()))
    signed = hmac.digest(key, f"{uid}.{seconds}.".encode() + body, "sha256")
    return {
        "webhook-id": uid,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
