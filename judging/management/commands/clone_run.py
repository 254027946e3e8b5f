from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.management import run_commands
from judging.runs import choices, lifecycle


class Command(BaseCommand):
    help = (
        "Start a new run with the same strategy version and items. Stored replies are used again "
        "at no cost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="NUMBER", help="number of the run")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument("--endpoint", metavar="NAME", help="use another endpoint")
        parser.add_argument(
            "--as-pinned",
            action="store_true",
            help="use the texts and examples of the run instead of the current ones",
        )
        parser.add_argument("--cap", metavar="AMOUNT", help="stop before this much is spent")
        run_commands.add_while_labelling(parser)
        parser.add_argument("--wait", action="store_true", help=run_commands.WAIT_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        cap = run_commands.parse_cap(options["cap"])
        names = ("as_pinned", "while_labelling")
        said = {name: options[name] for name in names}
        name = options["endpoint"]
        endpoint = run_commands.call_service(lambda: choices.get_endpoint(name)) if name else None
        clone = run_commands.call_service(
            lambda: lifecycle.clone_run(run, None, endpoint=endpoint, cap=cap, **said)
        )
        self.stdout.write(
            f"Run {clone.number} of {options['project']}, a clone of run {run.number}:"
            f" {run_commands.format_items(clone)}"
        )
        run_commands.continue_run(clone, self.stderr, wait=options["wait"])
