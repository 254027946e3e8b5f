"""Sessions: the browser has the key, the database its digest, so a copy of it opens none of them.
Their content is encrypted: while a password is reset it holds the key of the link.

The settings name this module as Django's engine of sessions. Where a person is signed in stands in
allauth's table, by the same digest. allauth's own functions would keep the key there, so
`annotation.apps` leaves them out, and those below do their work.
"""

import base64
import hashlib
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
    """What stands for a session's key: 160 bits of SHA-256, as many as the tables have room for."""
    # A key has 165 random bits: nobody guesses it, so a slow digest would gain nothing.
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _cipher() -> Fernet:
    key = hashlib.sha256(b"blindspot session " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


class SessionStore(db.SessionStore):
    """Django's sessions in the database. It takes keys alone: to it a digest is an unknown key."""

    def load(self) -> dict[str, Any]:
        assert self.session_key
        stored = Session.objects.filter(
            pk=digest_key(self.session_key), expire_date__gt=timezone.now()
        ).first()
        if stored is None:
            self._session_key = None
            return {}
        return self.decode(stored.session_data)

    def encode(self, session_dict: dict[str, Any]) -> str:
        return _cipher().encrypt(super().encode(session_dict).encode()).decode()

    def decode(self, session_data: str | bytes) -> dict[str, Any]:
        try:
            return super().decode(_cipher().decrypt(session_data).decode())
        except InvalidToken:
            # Of another SECRET_KEY: Django says so in the log, and it is an empty session.
            return super().decode(session_data)

    def exists(self, session_key: str) -> bool:
        return super().exists(digest_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> AbstractBaseSession:
        made = super().create_model_instance(data)
        made.session_key = digest_key(made.session_key)
        return made

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            super().delete(digest_key(key))

    # Those of the base call the ones above; those of Django's store would write the key down.
    aload, aexists, acreate = SessionBase.aload, SessionBase.aexists, SessionBase.acreate
    asave, adelete = SessionBase.asave, SessionBase.adelete


def current_digest(request: HttpRequest) -> str:
    """The digest of the session of a request, which is that of somebody who is signed in."""
    key = request.session.session_key
    assert key
    return digest_key(key)


def record_session(request: HttpRequest) -> None:
    """Write down where the session of a request is open, which is stored before."""
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
    """Where a person is signed in, newest first. Ends those that open nothing any more."""
    noted = list(UserSession.objects.filter(user=account).order_by("-created_at"))
    keys = [one.session_key for one in noted]
    stored = Session.objects.filter(pk__in=keys, expire_date__gt=timezone.now())
    good = {session.pk for session in stored if _is_valid(session, account)}
    for one in noted:
        if one.session_key not in good:
            end_session(one)
    return [one for one in noted if one.session_key in good]


def end_session(noted: UserSession) -> None:
    Session.objects.filter(pk=noted.session_key).delete()
    noted.delete()


def _is_valid(session: Session, account: Account) -> bool:
    """Whether Django would believe it: it is the person's, and of their password until now."""
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
    # Django gave the session another key.
    record_session(request)
