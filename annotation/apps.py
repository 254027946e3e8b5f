from importlib import import_module

from allauth.usersessions.apps import UserSessionsConfig
from django.apps import AppConfig

from annotation.db import lookups


class AnnotationConfig(AppConfig):
    name = "annotation"
    default = True

    def ready(self) -> None:
        import_module("annotation.checks")  # which registers them
        import_module("annotation.accounts.sessions")  # which notes where people sign in
        lookups.register_lookups()


class UserSessions(UserSessionsConfig):
    """allauth's table of sessions alone: its own functions would keep their keys in it."""

    def ready(self) -> None:
        pass
