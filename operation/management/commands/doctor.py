import textwrap
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from operation import doctor, timed_checks
from operation.findings import Finding, Grade

# Seconds; e-mail servers can be slow.
PATIENCE = 15.0
WIDTH = 100


class Command(BaseCommand):
    help = (
        "Check this installation: list problems and how to fix them. The exit code is 1 if"
        " something is wrong; warnings do not change it."
    )
    # The checks below report what is wrong.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = [*doctor.CHECKS, *doctor.OPTIONAL_CHECKS]
        parser.add_argument(
            "--only", nargs="+", choices=names, metavar="NAME", help="Run only these checks."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        every = doctor.CHECKS | doctor.OPTIONAL_CHECKS
        names = options["only"] or [*doctor.CHECKS]
        found = timed_checks.run_checks({name: every[name] for name in names}, seconds=PATIENCE)
        for name, one in found.items():
            self.stdout.write(_line(name, one))
        self.stdout.write("\nTo check the stored data too, run `python manage.py verify`.")
        wrong = [name for name, one in found.items() if one.grade == Grade.WRONG]
        if wrong:
            raise CommandError(f"Wrong: {', '.join(wrong)}.", returncode=1)


def _line(name: str, one: Finding) -> str:
    head = f"{one.grade:<9} {name:<15} "
    said = f"{one.says} {one.remedy}".strip()
    return textwrap.fill(
        said,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
