"""A service that people sign in by: OpenID Connect over real HTTP, as a test scripts it."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.core.cache import caches

from config.environment import OpenID

CLIENT, SECRET = "blindspot", "a-secret-of-the-client"
PLACE = "/.well-known/openid-configuration"


@cache
def made_key(name: str = "of the service") -> Any:
    """A key pair, made once for each name since that takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Service:
    """What it says of itself and of whoever comes; `forge` may spoil what a token says."""

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "1"})
    told_beside: dict[str, Any] = field(default_factory=dict)
    refuses: str = ""
    forge: Callable[[dict[str, Any]], dict[str, Any]] = dict
    sign: Callable[[dict[str, Any], Any], str] | None = None
    itself: dict[str, Any] = field(default_factory=dict)
    key: Any = field(default_factory=made_key)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def settings(self) -> OpenID:
        return OpenID(self.issuer, CLIENT, SECRET, "Lab account")

    def discovery(self) -> dict[str, Any]:
        places = {
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
        }
        methods = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
        return {"issuer": self.issuer, **places, **methods, **self.itself}

    def keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def asked(self, query: dict[str, str]) -> str:
        """Where a browser that comes with this is sent."""
        back = query["redirect_uri"]
        if self.refuses:
            return f"{back}?{urlencode({'error': self.refuses, 'state': query['state']})}"
        code = secrets.token_urlsafe(8)
        self.codes[code] = query
        return f"{back}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        """What a code is changed for, once, by who began and knows the client's secret."""
        asked = self.codes.pop(form["code"])
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() == asked["code_challenge"]
        assert form["redirect_uri"] == asked["redirect_uri"]
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        assert authorization == f"Basic {known}"
        now = int(time.time())
        said = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300}
        said = self.forge({**said, "nonce": asked["nonce"], **self.person})
        signed = self.sign or (lambda said, key: jwt.encode(said, key, "RS256", {"kid": "one"}))
        return {
            "access_token": "of-one",
            "token_type": "Bearer",
            "id_token": signed(said, self.key),
        }


def handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", service.asked(query))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            known = {"/keys": service.keys, PLACE: service.discovery}
            known |= {"/userinfo": lambda: service.told_beside}
            self.say(known[parts.path]())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self.say(service.token(form, self.headers.get("Authorization", "")))

        def say(self, answer: dict[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def running() -> Iterator[Service]:
    service = Service()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(service))
    service.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Let people sign in by this service, which nobody has tried yet."""
    caches["default"].clear()
    with running() as service:
        monkeypatch.setattr(settings, "OPENID", service.settings)
        yield service
