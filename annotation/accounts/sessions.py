"""Sessions whose key is known only to the browser: the database has a digest of the key, so nobody
can open a session with a copy of the database. The content is encrypted, since during a password
reset it includes the key of the link.

The settings name this module as Django's session engine. A table of allauth lists a person's
sessions by the same digest. allauth's own functions would store the key in this table, so
`annotation.apps` disables them, and the functions below replace them.
"""

import base64
import hashlib
from functools import cache
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.signals import password_changed, password_set, user_logged_in
from allauth.usersessions.models import UserSession
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from annotation.models import Account


def digest_key(key: str) -> str:
    """The digest of a session key: 160 bits of SHA-256 in hex, as many as the tables can hold."""
    # A key has 165 random bits and cannot be guessed, so a slow digest would gain nothing.
    return hashlib.sha256(key.encode()).hexdigest()[:40]


@cache
def _cipher(secret: str) -> Fernet:
    key = hashlib.sha256(b"blindspot session " + secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class SessionStore(db.SessionStore):
    """Django's database sessions, stored under digests; a digest is not accepted as a key."""

    def load(self) -> dict[str, Any]:
        """Load the data of the session. If the session does not exist or has expired, the data are
        empty and the key is dropped."""
        assert self.session_key
        stored = Session.objects.filter(
            pk=digest_key(self.session_key), expire_date__gt=timezone.now()
        ).first()
        if stored is None:
            self._session_key = None
            return {}
        return self.decode(stored.session_data)

    def encode(self, session_dict: dict[str, Any]) -> str:
        """Encode the data like Django, and encrypt them with a key derived from SECRET_KEY."""
        return _cipher(settings.SECRET_KEY).encrypt(super().encode(session_dict).encode()).decode()

    def decode(self, session_data: str | bytes) -> dict[str, Any]:
        """Decrypt the data; the result is empty if they were encrypted with another SECRET_KEY."""
        try:
            return super().decode(_cipher(settings.SECRET_KEY).decrypt(session_data).decode())
        except InvalidToken:
            # The data were encrypted with another SECRET_KEY: Django logs this, and the session is
            # empty.
            return super().decode(session_data)

    def exists(self, session_key: str) -> bool:
        return super().exists(digest_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        """Build an unsaved row for the data, with the digest in place of the key."""
        made = super().create_model_instance(data)
        made.session_key = digest_key(made.session_key)
        return made

    def delete(self, session_key: str | None = None) -> None:
        """Delete the session with this key, by default the current session; without any key, do
        nothing."""
        key = session_key or self.session_key
        if key:
            super().delete(digest_key(key))

    # The base class calls the methods above; Django's store would save the key itself.
    aload, aexists, acreate = SessionBase.aload, SessionBase.aexists, SessionBase.acreate
    asave, adelete = SessionBase.asave, SessionBase.adelete


def current_digest(request: HttpRequest) -> str:
    """The digest of the session key of a request; the request must come from somebody signed in."""
    key = request.session.session_key
    assert key
    return digest_key(key)


def record_session(request: HttpRequest) -> None:
    """Store the session of a request, and record from where the person is signed in."""
    request.session.save()
    longest = UserSession._meta.get_field("user_agent").max_length
    UserSession.objects.update_or_create(
        session_key=current_digest(request),
        defaults={
            "user": request.user,
            "ip": get_adapter(request).get_client_ip(request),
            "user_agent": request.META.get("HTTP_USER_AGENT", "")[:longest],
            "last_seen_at": timezone.now(),
        },
    )


def list_sessions(account: Account) -> list[UserSession]:
    """List a person's valid sessions, newest first, and delete the invalid sessions."""
    noted = list(UserSession.objects.filter(user=account).order_by("-created_at"))
    keys = [one.session_key for one in noted]
    stored = Session.objects.filter(pk__in=keys, expire_date__gt=timezone.now())
    good = {session.pk for session in stored if _is_valid(session, account)}
    for one in noted:
        if one.session_key not in good:
            end_session(one)
    return [one for one in noted if one.session_key in good]


def end_session(noted: UserSession) -> None:
    """Delete a session and its row in allauth's table; the browser is signed out at its next
    request."""
    Session.objects.filter(pk=noted.session_key).delete()
    noted.delete()


def _is_valid(session: Session, account: Account) -> bool:
    """True if Django would accept the session: it belongs to the account and to the account's
    current password."""
    said = SessionStore().decode(session.session_data)
    hashed = said.get(HASH_SESSION_KEY, "")
    return said.get(SESSION_KEY) == str(account.pk) and constant_time_compare(
        hashed, account.get_session_auth_hash()
    )


@receiver(user_logged_in)
def _on_login(request: HttpRequest, user: Account, **more: Any) -> None:
    list_sessions(user)
    record_session(request)


@receiver([password_changed, password_set])
def _on_password_change(request: HttpRequest, **more: Any) -> None:
    # Django has given the session a new key.
    record_session(request)
