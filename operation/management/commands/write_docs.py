from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from operation.docs.reference import GENERATED


class Command(BaseCommand):
    help = "Write the pages of the documentation that are generated from the code."

    def handle(self, *args: Any, **options: Any) -> None:
        for file, write_page in GENERATED.items():
            (settings.BASE_DIR / file).write_text(write_page(), encoding="utf-8")
            self.stdout.write(file)
