from importlib import import_module

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        """Register event titles, and arrange that each migration drops the triggers and then
        installs them again. Django calls this once at start-up.
        """
        import_module("judging.event_types").register()
        triggers = import_module("judging.results.change_counters").TRIGGERS
        pre_migrate.connect(triggers.drop_before_migration, sender=self)
        post_migrate.connect(triggers.install_after_migration, sender=self)
