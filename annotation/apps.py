from importlib import import_module

from allauth.usersessions.apps import UserSessionsConfig
from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate

from annotation.db import sql


class AnnotationConfig(AppConfig):
    name = "annotation"
    default = True

    def ready(self) -> None:
        """Register the system checks, the signal receivers of sessions and the lookups, and arrange
        that each migration drops the triggers of the search and then installs them again. Django
        calls this method once at start."""
        import_module("annotation.checks")  # registers the checks
        import_module("annotation.accounts.sessions")  # records where people sign in
        sql.register_lookups()
        triggers = import_module("annotation.items.search_index").TRIGGERS
        pre_migrate.connect(triggers.drop_before_migration, sender=self)
        post_migrate.connect(triggers.install_after_migration, sender=self)


class UserSessions(UserSessionsConfig):
    """Only allauth's table of sessions, without its receivers, which would store session keys."""

    def ready(self) -> None:
        """Do nothing; allauth would connect its receivers here."""
