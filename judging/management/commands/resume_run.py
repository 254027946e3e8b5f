from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.management import run_commands
from judging.runs import lifecycle


class Command(BaseCommand):
    help = "Resume a paused run; --cap raises its cap."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="NUMBER", help="number of the run")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--cap", metavar="AMOUNT", help="the new cap on the total cost of the run"
        )
        parser.add_argument("--wait", action="store_true", help=run_commands.WAIT_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        cap = run_commands.parse_cap(options["cap"])
        run_commands.call_service(lambda: lifecycle.resume(run, None, cap=cap))
        self.stdout.write(f"Run {run.number} of {options['project']} is resumed.")
        run_commands.continue_run(run, self.stderr, wait=options["wait"])
