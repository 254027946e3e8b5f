import json
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.utils import timezone

from annotation.models import Event, Item, Label, Project
from judging.archive.load import LOADED_EVENT
from judging.models import Reply, Run
from operation.integrity import CHECKS, NOT_IN_ARCHIVES
from operation.integrity.checks import NAMED_BREACHES, Check, CheckResult, run_checks


class Command(BaseCommand):
    help = (
        "Check the stored data: labels, slots, final labels, texts, replies, money, runs,"
        " snapshots, archives and the audit log. Nothing is changed, and people can keep working."
        " The exit code is 1 if a rule is broken, and 2 if the database could not be checked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--only", nargs="+", choices=[*CHECKS], metavar="NAME", help="Run only these checks."
        )
        parser.add_argument(
            "--rows",
            type=int,
            default=NAMED_BREACHES,
            metavar="N",
            help=f"Name up to N breaches of each rule (default {NAMED_BREACHES}).",
        )
        parser.add_argument("--list", action="store_true", help="Only list the rules.")
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        checks = [CHECKS[name] for name in options["only"] or CHECKS]
        if options["list"]:
            for check in checks:
                self.stdout.write(f"{check.name:<21} {check.rule}")
            return
        try:
            broken = self._run(checks, options)
        except DatabaseError as error:
            raise CommandError(
                f"The database could not be checked: {str(error).strip()} Run `manage.py doctor`.",
                returncode=2,
            ) from error
        if broken:
            rules = "1 rule is" if broken == 1 else f"{broken} rules are"
            raise CommandError(f"{rules} broken.", returncode=1)

    def _run(self, checks: list[Check], options: dict[str, Any]) -> int:
        """Print the results of the checks and return the number of broken rules."""
        if Event.objects.filter(kind=LOADED_EVENT).exists():
            checks = [check for check in checks if check.name not in NOT_IN_ARCHIVES]
            self.stderr.write(
                "This database was loaded from an archive of results, which leaves out texts and"
                f" other runs. Not checked: {', '.join(sorted(NOT_IN_ARCHIVES))}."
            )
        results = run_checks(checks, named=max(1, options["rows"]))
        return self._print_json(results) if options["json"] else self._print_lines(results)

    def _print_lines(self, results: Iterable[CheckResult]) -> int:
        broken = checked = 0
        self.stdout.write(_name_database())
        for result in results:
            checked += 1
            if not result.count:
                self.stdout.write(f"holds   {result.check.name:<21} {result.check.rule}")
                continue
            broken += 1
            self.stdout.write(f"BROKEN  {result.check.name:<21} {result.check.rule}")
            for line in _describe(result):
                self.stdout.write(f"        {line}")
        if not broken:
            self.stdout.write(f"All {checked} rules hold." if checked > 1 else "The rule holds.")
        return broken

    def _print_json(self, results: Iterable[CheckResult]) -> int:
        at, broken, checks = timezone.now().isoformat(timespec="seconds"), 0, []
        for result in results:
            broken += result.count > 0
            checks.append(
                {
                    "name": result.check.name,
                    "rule": result.check.rule,
                    "meaning": result.check.meaning,
                    "breaches": result.count,
                    "rows": result.breaches,
                    "seconds": round(result.seconds, 3),
                }
            )
        told = {
            "checked_at": at,
            "database": connection.vendor,
            "name": str(connection.settings_dict["NAME"]),
            "rows": _count_rows(),
            "broken": broken,
            "checks": checks,
        }
        self.stdout.write(json.dumps(told, indent=1, ensure_ascii=False, default=str))
        return broken


def _count_rows() -> dict[str, int]:
    """The numbers of the rows that everything else hangs on."""
    return {
        str(model._meta.verbose_name_plural): model._default_manager.count()
        for model in (Project, Item, Label, Run, Reply)
    }


def _name_database() -> str:
    """Say which database is checked and how much is in it: an empty one breaks no rule."""
    counts = ", ".join(f"{number:,} {name}" for name, number in _count_rows().items())
    return f"Checking {connection.vendor} {connection.settings_dict['NAME']}: {counts}"


def _describe(result: CheckResult) -> Iterable[str]:
    check: Check = result.check
    yield check.meaning
    for breach in result.breaches:
        yield "- " + ", ".join(f"{name} {value}" for name, value in breach.items())
    if more := result.count - len(result.breaches):
        yield f"- and {more:,} more; --rows names more of them."
