from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.core.validators import validate_slug

from annotation.management.files import command_error, get_project
from judging.models import Run
from judging.results import explanation_audits


class Command(BaseCommand):
    help = (
        "Create a project to label explanations of evaluators: a random sample of items, the same "
        "for every run. Repeating it adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--project", required=True, metavar="SLUG", help="the project of the runs"
        )
        parser.add_argument(
            "--run",
            type=int,
            action="append",
            required=True,
            metavar="NUMBER",
            help="a run; repeat the option for several runs, one per evaluator",
        )
        parser.add_argument("--n", type=_number, default=20, help="number of items; default: 20")
        parser.add_argument("--seed", type=int, default=0, help="seed of the sample; default: 0")
        parser.add_argument(
            "--into",
            required=True,
            metavar="SLUG",
            help="project of the audit; if it does not exist, it is created, and led by the leads "
            "of the project of the runs",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            validate_slug(options["into"])
            made = explanation_audits.create_audit(
                _runs(options["project"], options["run"]),
                n=options["n"],
                seed=options["seed"],
                into=options["into"],
            )
        except ValidationError as error:
            raise command_error(
                f"{options['into']!r} is not a valid project slug. Use letters, digits, hyphens "
                "and underscores."
            ) from error
        except explanation_audits.AuditRefused as error:
            raise command_error(str(error)) from error
        report = made.report
        for row in (*report.bad, *report.conflicts):
            self.stderr.write(f"left out: {row.field}: {row.reason}")
        self.stdout.write(
            f"{made.project.slug}: drew {made.drawn:,} of {made.available:,} items with a verdict "
            f"in all runs; {report.new:,} explanations added, {report.unchanged:,} unchanged."
        )


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("give a number of items, 1 or more.")
    return int(text)


def _runs(slug: str, numbers: list[int]) -> list[Run]:
    project = get_project(slug)
    wanted = sorted(set(numbers))
    found = list(Run.objects.in_project(project).for_results().numbered(wanted))
    missing = set(wanted) - {run.number for run in found}
    if missing:
        named = ", ".join(map(str, sorted(missing)))
        raise command_error(f"{slug} has no run {named}.")
    return found
