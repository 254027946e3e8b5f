from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from operation import backups
from operation.databases import BackupError


class Command(BaseCommand):
    help = (
        "Back up the database at one moment and all files that cannot be created again. People can"
        " keep working."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.zip", help="the file to write")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            made = backups.create_backup(file, now=timezone.now())
        except BackupError as problem:
            raise CommandError(str(problem)) from problem
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        files = len(made.parts) - 1
        self.stdout.write(
            f"{file}: {made.rows} rows of {len(made.tables)} tables and {files} files,"
            f" {file.stat().st_size / 1e6:.1f} MB. Exports, sessions and keys are not included."
        )
