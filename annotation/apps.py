from importlib import import_module

from django.apps import AppConfig

from annotation import lookups


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        import_module("annotation.checks")  # which registers them
        lookups.register()
