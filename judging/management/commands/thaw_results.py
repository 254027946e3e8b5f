from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from annotation.management.files import command_error
from formats.rows import FormatError
from judging.archive import comparison, load
from judging.errors import Refused


class Command(BaseCommand):
    help = "Load an archive of results into an empty database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "archive", type=Path, metavar="ARCHIVE.zip", help="an archive of freeze_results"
        )
        parser.add_argument(
            "--compare",
            action="store_true",
            help="then compute its figures again and compare every table with the archive",
        )

    def handle(self, *args: Any, archive: Path, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        try:
            thawed = load.load_archive(archive)
            if options["compare"]:
                self._compare(archive, thawed)
        except (Refused, FormatError) as error:
            raise command_error(str(error)) from error
        self.stderr.write(f"{archive}: {thawed.project.slug} is loaded into the database.")

    def _compare(self, archive: Path, thawed: load.LoadedProject) -> None:
        found = list(comparison.compare_archive(archive, thawed))
        for one in found:
            self.stdout.write(f"{one.table}: {one.said}")
        if not all(one.same for one in found):
            raise CommandError("Some figures differ from the archive; see above.")
