from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        import_module("judging.happenings").register()
        pre_migrate.connect(_before, sender=self)
        post_migrate.connect(_after, sender=self)


def _before(plan: Any, **kwargs: Any) -> None:
    """Tables that are about to change go without triggers."""
    from judging import touches

    if plan:
        touches.take_away()


def _after(**kwargs: Any) -> None:
    from judging import touches

    if touches.fits():
        touches.put()
