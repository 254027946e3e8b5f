import sys
import traceback
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotation.management.files import command_error
from judging.management import run_commands
from judging.models import Run
from judging.results import arrays, gate
from judging.results.gate import Finding, Verdict

WORDS = {Verdict.MET: "met", Verdict.NOT_MET: "not met", Verdict.TOO_FEW: "too few items"}


class Command(BaseCommand):
    help = (
        "Check that a run meets minimums, for use in automated tests of an evaluator. Exit code 0: "
        "the whole 95 % interval of each figure meets its limit; 1: a figure misses it; 2: too few "
        "items to say, and how many would do; 3: there is no verdict."
    )
    verdict: Verdict | None = None

    def run_from_argv(self, argv: list[str]) -> None:
        """End with the verdict as exit code, or with 3 if an error comes before it."""
        try:
            super().run_from_argv(argv)
        except SystemExit as ended:
            if ended.code and self.verdict is None:
                raise SystemExit(Verdict.BROKEN) from ended
            raise
        except Exception:
            traceback.print_exc()
            sys.exit(Verdict.BROKEN)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--run", required=True, type=int, metavar="NUMBER", help="number of the run"
        )
        for one in gate.CRITERIA:
            side = "at most" if one.at_most else "at least"
            parser.add_argument(
                f"--{one.name}",
                type=float,
                metavar="SHARE",
                help=f"{one.title}: {side} this, as a fraction of 1",
            )

    def handle(self, *args: Any, **options: Any) -> None:
        said = [(one, options[one.name.replace("-", "_")]) for one in gate.CRITERIA]
        limits = [(one, limit) for one, limit in said if limit is not None]
        if not limits:
            listed = ", ".join(f"--{one.name}" for one in gate.CRITERIA)
            raise command_error(f"Give one limit or more: {listed}.")
        for one, limit in limits:
            if not -1 <= limit <= 1:
                raise command_error(f"--{one.name} {limit}: give a fraction of 1, such as 0.3.")
        run = run_commands.get_run(options["project"], options["run"])
        _check_usable(run)
        findings = gate.judge(run, limits)
        for finding in findings:
            self.stdout.write(_describe(finding))
        counted = findings[0]
        if counted.missing:
            total = counted.missing + counted.errors + counted.invariant
            self.stdout.write(
                f"No usable reply: {counted.missing:,} of {total:,} items. J, detection and false "
                "alarms leave them out."
            )
        self.verdict = gate.worst(findings)
        if self.verdict is not Verdict.MET:
            raise SystemExit(self.verdict)


def _check_usable(run: Run) -> None:
    """Raise an error for a run that has no verdict yet, or never will."""
    if run.state != Run.State.FINISHED:
        raise command_error(f"Run {run.number} is not finished but {run.state}.")
    if not arrays.select_judging([run]):
        raise command_error(
            f"Run {run.number} judges no perturbed answers: it has neither detection nor J."
        )


def _describe(finding: Finding) -> str:
    one, found = finding.criterion, finding.estimate
    side = "at most" if one.at_most else "at least"
    value = "none" if found.value is None else f"{found.value:.3f}"
    if found.low is not None and found.high is not None:
        value += f" ({found.low:.3f} to {found.high:.3f})"
    elif found.reason:
        value += f" ({found.reason})"
    words = (
        f"{WORDS[finding.verdict]}: {one.title} {value}, {side} {finding.limit:g}, n {found.n:,}"
    )
    if one.name == "min-j":
        words += f" ({finding.errors:,} errors, {finding.invariant:,} score-invariant items)"
    if finding.verdict is Verdict.TOO_FEW and found.value is not None:
        if finding.would_do is None:
            return f"{words}. The figure is too close to the limit for any number of items."
        return f"{words}. About {finding.would_do:,} items would do if the rates stay as they are."
    return words
