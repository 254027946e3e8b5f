from django.apps import AppConfig

from operation import celery_context


class OperationConfig(AppConfig):
    name = "operation"

    def ready(self) -> None:
        celery_context.connect_signals()
