from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        """Register event titles, and arrange that each migration drops the triggers and then
        installs them again. Django calls this once at start-up.
        """
        import_module("judging.event_types").register()
        pre_migrate.connect(_drop_triggers, sender=self)
        post_migrate.connect(_install_triggers, sender=self)


def _drop_triggers(plan: Any, **kwargs: Any) -> None:
    """Drop the triggers before a migration changes their tables."""
    from judging.results import change_counters

    if plan:
        change_counters.drop_triggers()


def _install_triggers(**kwargs: Any) -> None:
    from judging.results import change_counters

    if change_counters.has_all_tables():
        change_counters.install_triggers()
