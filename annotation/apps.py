from importlib import import_module

from allauth.usersessions.apps import UserSessionsConfig
from django.apps import AppConfig

from annotation.db import sql


class AnnotationConfig(AppConfig):
    name = "annotation"
    default = True

    def ready(self) -> None:
        """Register the system checks, the signal receivers of sessions and the lookups. Django
        calls this method once at start."""
        import_module("annotation.checks")  # registers the checks
        import_module("annotation.accounts.sessions")  # records where people sign in
        sql.register_lookups()


class UserSessions(UserSessionsConfig):
    """Only allauth's table of sessions, without its receivers, which would store session keys."""

    def ready(self) -> None:
        """Do nothing; allauth would connect its receivers here."""
