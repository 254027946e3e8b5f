import re
import secrets
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation import perturbing
from annotation.models import Project
from annotation.perturbing import Tally, Unfit, Wish
from perturbers.registry import PERTURBERS

MOST, MOST_ERRORS = 20, 32


class Command(BaseCommand):
    help = (
        "Put errors into the gold answers of a project, without a model: each becomes an item with"
        " an exact claim, for people to vet. The same again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument(
            "--with",
            dest="perturbers",
            nargs="+",
            choices=PERTURBERS,
            default=[*PERTURBERS],
            metavar="NAME",
            help=f"only these: {', '.join(PERTURBERS)}; each makes its category, of gold answers of"
            " that ability",
        )
        parser.add_argument(
            "--number", type=int, default=1, metavar="N", help="perturbed answers of each"
        )
        parser.add_argument(
            "--errors",
            type=int,
            nargs="+",
            default=[1],
            metavar="N",
            help="how many errors in one answer; several numbers, such as 1 2 4 8, make a ladder",
        )
        parser.add_argument("--limit", type=int, metavar="N", help="of the first N gold answers")
        parser.add_argument("--seed", metavar="WORD", help="the same word makes the same errors")
        parser.add_argument("--dry-run", action="store_true", help="say what it would make")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']!r}.", returncode=2)
        _check("number", [options["number"]], MOST)
        _check("errors", options["errors"], MOST_ERRORS)
        if options["seed"] and not re.fullmatch(r"[A-Za-z0-9-]{1,20}", options["seed"]):
            raise CommandError(
                "--seed must be 1 to 20 letters, digits or hyphens: it stands in the keys.",
                returncode=2,
            )
        if options["limit"] is not None and options["limit"] < 1:
            raise CommandError("--limit must be 1 or more.", returncode=2)
        wish = Wish(
            perturbers=tuple(dict.fromkeys(options["perturbers"])),
            seed=options["seed"] or secrets.token_hex(4),
            number=options["number"],
            doses=tuple(dict.fromkeys(options["errors"])),
            limit=options["limit"],
        )
        try:
            done = perturbing.make(project, wish, dry_run=options["dry_run"])
        except Unfit as error:
            raise CommandError(str(error), returncode=2) from error
        self._say(wish, done, dry_run=options["dry_run"])

    def _say(self, wish: Wish, done: Tally, *, dry_run: bool) -> None:
        for slug in wish.perturbers:
            lacking = done.lacking[slug]
            rest = f", {lacking:,} had no place for" if lacking else ""
            self.stdout.write(f"{PERTURBERS[slug].category:<16} {done.made[slug]:>7,} made{rest}")
        report = done.report
        for bad in (*report.bad, *report.conflicts):
            self.stderr.write(f"row {bad.line}: {bad.field} {bad.reason}")
        stored = "would be stored" if dry_run else "stored"
        self.stdout.write(
            f"{report.new:,} {stored}, {report.unchanged:,} were there, seed {wish.seed}"
        )
        if report.bad or report.conflicts:
            raise CommandError("Some were not stored, for the reasons above.")


def _check(name: str, numbers: list[int], most: int) -> None:
    if not all(1 <= one <= most for one in numbers):
        raise CommandError(f"--{name} must lie between 1 and {most}.", returncode=2)
