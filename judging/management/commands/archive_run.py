from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand

from annotation.management.files import get_project
from judging.management import run_commands
from judging.runs import archiving


class Command(BaseCommand):
    help = "Archive runs, so that they no longer appear in lists and results. Nothing is deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, nargs="+", metavar="NUMBER", help="numbers of runs")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument("--back", action="store_true", help="restore archived runs")

    def handle(self, *args: Any, **options: Any) -> None:
        step, what = archiving.archive_run, "archived"
        if options["back"]:
            step, what = archiving.unarchive_run, "restored"
        project = get_project(options["project"])
        for run in run_commands.get_runs(project, options["run"]):
            run_commands.call_service(partial(step, run, None))
            self.stdout.write(f"Run {run.number} of {project.slug} is {what}.")
