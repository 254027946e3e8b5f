from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.management import run_commands
from judging.runs import choices, lifecycle


class Command(BaseCommand):
    help = "Move a run without any reply to another endpoint. The run is planned again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="NUMBER", help="number of the run")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument("--endpoint", required=True, metavar="NAME", help="the new endpoint")
        parser.add_argument("--wait", action="store_true", help=run_commands.WAIT_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        endpoint = run_commands.call_service(lambda: choices.get_endpoint(options["endpoint"]))
        run_commands.call_service(lambda: lifecycle.move_to_endpoint(run, endpoint, None))
        moved = f"Run {run.number} of {options['project']} has been moved"
        self.stdout.write(f"{moved} to {endpoint.name}.")
        run_commands.continue_run(run, self.stderr, wait=options["wait"])
