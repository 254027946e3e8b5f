"""A passkey in software: it answers as a device does, or as an attacker would have it answer."""

import hashlib
import json
import os
import struct
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES256

# Flags of authenticator data: the person is there and verified; with the key, when it is made.
PRESENT, WITH_KEY = 0x05, 0x45


class Passkey:
    """A key pair for one site. `origin` is where the browser says that it is."""

    def __init__(self, site: str = "testserver", origin: str = "http://testserver") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id, self.site, self.origin = os.urandom(32), site, origin

    def create(self, options: dict[str, Any]) -> str:
        """The browser's answer when the passkey is added."""
        public = cbor.encode(dict(ES256.from_cryptography_key(self.key.public_key())))
        named = bytes(16) + struct.pack(">H", len(self.id)) + self.id
        attested = {"fmt": "none", "attStmt": {}, "authData": self._data(WITH_KEY) + named + public}
        said = self._said("webauthn.create", options)
        return self._answer(clientDataJSON=said, attestationObject=cbor.encode(attested))

    def get(self, options: dict[str, Any]) -> str:
        """The browser's answer when somebody signs in with it."""
        said, data = self._said("webauthn.get", options), self._data(PRESENT)
        signature = self.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(clientDataJSON=said, authenticatorData=data, signature=signature)

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.site.encode()).digest() + struct.pack(">BI", flags, 1)

    def _said(self, kind: str, options: dict[str, Any]) -> bytes:
        challenge = options["publicKey"]["challenge"]
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, **parts: bytes) -> str:
        response = {name: _encode(part) for name, part in parts.items()}
        name = _encode(self.id)
        answer = {"id": name, "rawId": name, "type": "public-key", "response": response}
        return json.dumps(answer | {"clientExtensionResults": {}})


def _encode(part: bytes) -> str:
    return urlsafe_b64encode(part).decode().rstrip("=")
