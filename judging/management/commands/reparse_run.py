from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from judging.management import run_commands
from judging.runs import reparse
from judging.runs.reparse import ReparsePreview


class Command(BaseCommand):
    help = (
        "Show what would change if the replies of a run were parsed again, with the current or "
        "another parser; with --apply, change the outcomes. No evaluator is called."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="NUMBER", help="number of the run")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--parser", metavar="NAME", help="how to parse; default: the parser of the run"
        )
        parser.add_argument(
            "--apply",
            action="store_true",
            help="switch the run to this parser and update its outcomes",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run = run_commands.get_run(options["project"], options["run"])
        found = run_commands.call_service(lambda: reparse.build_preview(run, options["parser"]))
        self._say(found)
        if options["apply"]:
            run_commands.call_service(lambda: reparse.switch_parser(run, None, options["parser"]))
            self.stdout.write(f"Run {run.number} of {options['project']} now uses this parser.")

    def _say(self, found: ReparsePreview) -> None:
        """Print what would change: a summary, then item by item."""
        self.stdout.write(
            f"{found.changed} of {found.outcomes} outcomes differ with parser {found.parser}"
        )
        for (before, after), count in found.counts.most_common():
            self.stdout.write(f"  {count} from {before} to {after}")
        for change in found.changes:
            axis = f" ({change.axis})" if change.axis else ""
            self.stdout.write(f"  {change.item}{axis}: {change.before} to {change.after}")
        if found.changed > len(found.changes):
            self.stdout.write(f"  and {found.changed - len(found.changes)} more items")
