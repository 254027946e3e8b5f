from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.management import run_commands
from judging.runs import supplements


class Command(BaseCommand):
    help = (
        "Ask the items of a finished run whose replies are unusable again, with other parameters "
        "or more time. Without --start, only say how many requests would be sent and what they "
        "cost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="NUMBER", help="number of the run")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--parameters",
            default="",
            metavar="JSON",
            help='parameters in place of those of the run, such as {"max_tokens": 4096}',
        )
        parser.add_argument(
            "--timeout",
            type=int,
            metavar="SECONDS",
            help="the time that calls of the run get from now on; without --parameters, only the "
            "failed requests are sent again",
        )
        parser.add_argument("--start", action="store_true", help="send the requests")
        parser.add_argument("--wait", action="store_true", help=run_commands.WAIT_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        parameters = run_commands.parse_parameters(options["parameters"])
        changes = {"parameters": parameters, "timeout": options["timeout"]}
        if not options["start"]:
            found = run_commands.call_service(
                lambda: supplements.estimate_supplement(run, **changes)
            )
            requests = run_commands.format_requests(found)
            self.stdout.write(
                f"{found.items} items to ask again in {found.calls} calls, {requests}"
            )
            run_commands.write_shortages(self.stdout, found.shortages)
            return
        asked = run_commands.call_service(lambda: supplements.ask_again(run, None, **changes))
        self.stdout.write(f"{asked} items of run {run.number} are asked again")
        run_commands.continue_run(run, self.stderr, wait=options["wait"])
