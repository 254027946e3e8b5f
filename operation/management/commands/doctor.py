import textwrap
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from operation import doctor, timed_checks
from operation.findings import Finding, Grade

# Seconds; e-mail servers take their time.
PATIENCE = 15.0
WIDTH = 100


class Command(BaseCommand):
    help = (
        "Say what is wrong with this installation, in words, and what to do about it."
        " Ends with 1 if something is wrong; what is doubtful is said and no more."
    )
    # What is wrong shall be said by the checks.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = [*doctor.CHECKS, *doctor.OPTIONAL_CHECKS]
        parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="Some checks.")

    def handle(self, *args: Any, **options: Any) -> None:
        every = doctor.CHECKS | doctor.OPTIONAL_CHECKS
        names = options["only"] or [*doctor.CHECKS]
        found = timed_checks.run_checks({name: every[name] for name in names}, seconds=PATIENCE)
        for name, one in found.items():
            self.stdout.write(_line(name, one))
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
