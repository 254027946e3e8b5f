from django.apps import AppConfig

from operation import passing


class OperationConfig(AppConfig):
    name = "operation"

    def ready(self) -> None:
        passing.connect_signals()
