from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotation.management.files import get_project
from judging.management import run_commands
from judging.models import Run
from judging.runs import budget
from judging.runs.amounts import format_amount

UNCAPPED = "none"


class Command(BaseCommand):
    help = "Show the budget for evaluators and the cost of each run; with --cap, set the budget."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--cap", metavar="AMOUNT", help=f"the total budget; {UNCAPPED}: no limit"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = get_project(options["project"])
        if (cap := options["cap"]) is not None:
            limit = None if cap == UNCAPPED else run_commands.parse_cap(cap)
            budget.set_cap(project, limit, None)
        found = budget.load_status(project)
        self.stdout.write(
            f"cap {UNCAPPED if found.cap is None else format_amount(found.cap)}, spent "
            f"{found.words},"
            f" reserved {format_amount(found.reserved)}; {found.paid.replies:,} replies"
        )
        asked = Run.objects.in_project(project).filter(kind=Run.Kind.ASKED).for_page()
        for one in budget.list_spending(list(asked.order_by("number"))):
            self.stdout.write(
                f"run {one.run.number}: {one.run.endpoint.name}, {one.run.strategy_name}: spent"
                f" {one.words}; {one.paid.replies:,} replies"
            )
