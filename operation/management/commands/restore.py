from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from operation import backups
from operation.databases import BackupError
from operation.integrity import CHECKS
from operation.integrity.checks import run_checks


class Command(BaseCommand):
    help = (
        "Restore a backup, run its migrations and verify the data. Stop servers and workers first."
    )
    # The database may have no tables yet.
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.zip", help="a backup")
        parser.add_argument(
            "--replace", action="store_true", help="delete what is in the database now"
        )
        parser.add_argument("--look", action="store_true", help="only show what is in the file")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            if options["look"]:
                found = backups.verify_backup(file)
            else:
                found = backups.restore_backup(file, replace=options["replace"])
        except BackupError as problem:
            raise CommandError(str(problem)) from problem
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
        if not options["look"]:
            call_command("migrate", interactive=False, verbosity=0)
        did = "contains" if options["look"] else "restored:"
        self.stdout.write(
            f"{file} {did} {found.rows} rows of {len(found.tables)} tables and"
            f" {len(found.parts) - 1} files, as of {found.made} ({found.database})."
        )
        if not options["look"]:
            self._verify()

    def _verify(self) -> None:
        broken = [result.check for result in run_checks(CHECKS.values()) if result.count]
        for check in broken:
            self.stdout.write(f"BROKEN  {check.name}: {check.rule}")
        if broken:
            raise CommandError(
                f"The backup is restored as it was, but its data breaks {len(broken)} of"
                f" {len(CHECKS)} rules. Run `python manage.py verify` for the rows."
            )
        self.stdout.write(f"All {len(CHECKS)} rules of `verify` hold.")
