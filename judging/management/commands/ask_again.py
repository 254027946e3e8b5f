from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.management import run_commands
from judging.runs import canaries


class Command(BaseCommand):
    help = (
        "Repeat a canary with the texts of its first run; with --wait, report how many outcomes "
        "have changed since then."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="NUMBER", help="any run of the canary")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        run_commands.add_while_labelling(parser)
        parser.add_argument("--wait", action="store_true", help=run_commands.WAIT_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        allowed = options["while_labelling"]
        asked = run_commands.call_service(
            lambda: canaries.repeat_canary(run, while_labelling=allowed)
        )
        first = canaries.get_first_run(asked)
        self.stdout.write(
            f"Run {asked.number} of {options['project']} repeats run {first.number}:"
            f" {run_commands.format_items(asked)}"
        )
        run_commands.continue_run(asked, self.stderr, wait=options["wait"])
        if options["wait"]:
            drifts = canaries.load_canary(asked).drifts
            drift = next(one for one in drifts if one.run == asked)
            self.stdout.write(f"{drift.changed} of {drift.n} items have a different outcome.")
