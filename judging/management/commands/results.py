import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Project
from formats.writers import FIGURES, write_figures
from judging.models import Run
from judging.results import figures, reports, tables


class Command(BaseCommand):
    help = "Print a table of figures; rates are fractions of 1, unrounded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", choices=tables.RESULTS)
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument(
            "--run",
            type=int,
            nargs="+",
            action="extend",
            metavar="NUMBER",
            help="only these; default: every run that is not archived",
        )
        parser.add_argument(
            "--by",
            default=figures.BY,
            metavar="FIELD,...",
            help=f"group by these. Of {figures.GROUPED}",
        )
        parser.add_argument("--format", choices=FIGURES, default="json")

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
        write_figures(options["format"], table, rows, columns, sys.stdout)


def _runs(project: Project, numbers: list[int] | None) -> list[Run]:
    runs = Run.objects.in_project(project).for_results()
    if not numbers:
        return list(runs.shown())
    chosen = list(runs.numbered(numbers))
    if unknown := sorted(set(numbers) - {run.number for run in chosen}):
        listed = ", ".join(map(str, unknown))
        raise CommandError(f"{project.slug} has no run {listed}.", returncode=2)
    return chosen
