from django.apps import AppConfig

from operation import celery_context


class OperationConfig(AppConfig):
    name = "operation"

    def ready(self) -> None:
        """Connect the signals that pass request ids to workers. Django calls this once at start."""
        celery_context.connect_signals()
