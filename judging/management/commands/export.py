from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from annotation.db import snapshot_reads
from annotation.errors import FieldError
from annotation.management.files import command_error, get_project
from annotation.models import Event
from annotation.projects import encrypted_archives
from formats.writers import FBI, FILE_FORMATS, PackingOptions, write_file
from judging.exporting import dataset_card, jobs, passwords, rows, tables
from judging.exporting.rows import ExportRequest


class Command(BaseCommand):
    help = "Export a table of a project to a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=tables.EXPORT_TABLES, help="which table")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--format", choices=FILE_FORMATS, required=True, help="format of the file"
        )
        parser.add_argument(
            "--snapshot", default="", metavar="NAME", help="export the items of this snapshot"
        )
        parser.add_argument(
            "--licence",
            choices=dataset_card.LICENCES,
            default=dataset_card.UNSTATED,
            help="licence on the data card; only for the format hub",
        )
        parser.add_argument(
            "--canary",
            action="store_true",
            help="add a new canary string to every row, which marks it as test data",
        )
        parser.add_argument(
            "--encrypt",
            action="store_true",
            help="write an encrypted zip; the password is shown once",
        )
        parser.add_argument(
            "--with-control",
            action="store_true",
            help="include control and qualification items in the table of items",
        )
        parser.add_argument(
            "--output", type=Path, required=True, metavar="PATH", help="the file to write"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = get_project(options["project"])
        output = options["output"]
        asked = ("snapshot", "licence", "canary", "encrypt", "with_control")
        said = {name: options[name] for name in asked}
        wish = ExportRequest(options["table"], options["format"], **said)
        canary = jobs.generate_canary() if wish.canary else ""
        password = passwords.generate() if wish.encrypt else ""
        packed = PackingOptions(
            wish.table,
            password,
            dataset_card.make_card_builder(project, wish, canary, timezone.now()),
        )
        # Written to a temporary file and moved when complete: a failed export leaves no file.
        part = output.with_name(output.name + ".part")
        try:
            if not wish.encrypt:
                encrypted_archives.check_not_sealed(project, "Add --encrypt.")
            with snapshot_reads.consistent_reads():
                made, total = rows.read_rows(project, wish, canary), rows.count_rows(project, wish)
                count = write_file(
                    wish.form, made.rows, made.columns, part, tables.EXPORT_COLUMN_KINDS, packed
                )
            part.replace(output)
        except FieldError as error:
            raise command_error(str(error)) from error
        except OSError as error:
            reason = error.strerror or error
            raise command_error(
                f"{output}: cannot be written ({reason}). Choose another file."
            ) from error
        finally:
            part.unlink(missing_ok=True)
        Event.record(
            "export",
            options["table"],
            project_id=project.pk,
            member_id=None,
            format=options["format"],
            rows=count,
            snapshot=wish.snapshot,
            licence=wish.licence,
            canary=canary,
            encrypted=wish.encrypt,
            with_control=wish.with_control,
        )
        self.stderr.write(f"{count:,} rows of {options['table']} written to {output}")
        if wish.form == FBI and total and total > count:
            self.stderr.write(
                f"{total - count:,} items left out: this layout only has places for valid errors "
                "and score-invariant changes."
            )
        if password:
            self.stderr.write(f"Password, which is not stored: {password}")
