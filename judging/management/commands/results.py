import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Project
from formats.writers import write_csv, write_table
from judging import figures, reports, tables
from judging.models import Run


class Command(BaseCommand):
    help = "Print a table of figures; rates are fractions of 1, unrounded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=tables.RESULTS)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument(
            "--run", type=int, metavar="NUMBER", help="default: every run that is not archived"
        )
        parser.add_argument(
            "--by",
            default=figures.BY,
            metavar="FIELD,...",
            help=f"group by these, of {', '.join(reports.FIELDS)}; empty for one row a run",
        )
        parser.add_argument("--format", choices=("json", "csv"), default="json")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.", returncode=2)
        by = figures.fields(options["by"])
        table = options["table"]
        try:
            rows = tables.RESULTS[table].rows(project, _runs(project, options["run"]), by)
        except reports.UnknownField as error:
            raise CommandError(str(error), returncode=2) from error
        columns = tables.columns(table, by)
        if options["format"] == "csv":
            write_csv(rows, columns, sys.stdout)
        else:
            write_table(table, rows, columns, sys.stdout)


def _runs(project: Project, number: int | None) -> list[Run]:
    runs = Run.objects.in_project(project).for_results()
    if number is None:
        return list(runs.shown())
    chosen = list(runs.filter(number=number))
    if not chosen:
        raise CommandError(f"{project.slug} has no run {number}.", returncode=2)
    return chosen
