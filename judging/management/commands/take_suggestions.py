from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.generation import ability_suggestions
from judging.management import run_commands


class Command(BaseCommand):
    help = (
        "Show the abilities that a run suggests on the page Abilities. No prompt is changed until"
        " a lead accepts a suggestion. Repeating it changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--run", required=True, type=int, metavar="NUMBER", help="number of the run"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        taken = run_commands.call_service(lambda: ability_suggestions.store_suggestions(run))
        self.stdout.write(
            f"{taken.suggested:,} prompts with a suggestion, {taken.new:,} new. A lead accepts them"
            " on the page Abilities."
        )
