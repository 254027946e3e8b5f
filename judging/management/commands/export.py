from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import instants
from annotation.models import Event, Project
from formats.writers import FILES, write_file
from judging.results import tables


class Command(BaseCommand):
    help = "Write a table of a project to a file, row by row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=tables.EXPORTS)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--format", choices=FILES, required=True)
        parser.add_argument("--output", type=Path, required=True, metavar="PATH")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.", returncode=2)
        table, output = tables.EXPORTS[options["table"]], options["output"]
        # Written beside its place and moved there when whole: a broken export leaves no file.
        part = output.with_name(output.name + ".part")
        try:
            with instants.held():
                columns = table.columns_in(project)
                rows = table.rows(project)
                count = write_file(options["format"], rows, columns, part, tables.KINDS)
            part.replace(output)
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(
                f"{output}: cannot be written ({reason}). Choose another file.", returncode=2
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
        )
        self.stderr.write(f"{count:,} rows of {options['table']} written to {output}")
