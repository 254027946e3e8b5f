from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from operation import former_databases


class Command(migrate.Command):
    help = (
        "Create or update the tables of the database. If the database lacks migrations that no"
        " longer exist, nothing is changed, and the command says what to do."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse a database that lacks migrations which are no longer here; Django would end in a
        traceback, or say that nothing is to be done."""
        if missing := former_databases.load_missing():
            found = former_databases.explain_missing(missing)
            raise CommandError(f"{found.says} {found.remedy} Nothing was changed.")
        super().handle(*args, **options)
