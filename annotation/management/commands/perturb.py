import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import FieldError, Stale
from annotation.generation import perturber_jobs, perturbers
from annotation.generation.perturbers import PerturbRequest, PerturbResult, UnsuitableProject
from annotation.generation.release import ReleasePolicy
from annotation.labelling import correct_answers
from annotation.management import release_options
from annotation.management.files import command_error, get_project
from annotation.models import Job
from formats.rows import as_printable
from perturbers.registry import PERTURBERS


class Command(BaseCommand):
    help = (
        "Generate perturbed answers by rule, without a model. Each becomes an item with an exact "
        "claim, which annotators check. Repeating a command adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="the project")
        parser.add_argument(
            "--with",
            dest="perturbers",
            nargs="+",
            choices=PERTURBERS,
            default=[*PERTURBERS],
            metavar="NAME",
            help=f"use only these perturbers: {', '.join(PERTURBERS)}; each makes errors of one "
            "category, in gold answers of that category's ability",
        )
        parser.add_argument(
            "--number", type=int, default=1, metavar="N", help="perturbed answers per gold answer"
        )
        parser.add_argument(
            "--errors",
            type=int,
            nargs="+",
            default=[1],
            metavar="N",
            help="errors per answer; several numbers, such as 1 2 4 8, make a ladder; default: 1",
        )
        parser.add_argument(
            "--limit", type=int, metavar="N", help="use only the first N gold answers"
        )
        parser.add_argument("--seed", metavar="WORD", help="the same seed makes the same errors")
        parser.add_argument(
            "--purpose",
            choices=[perturbers.TEST_PURPOSE, *correct_answers.PURPOSES],
            default=perturbers.TEST_PURPOSE,
            help="test items, or items with a known answer: qualification or control items",
        )
        release_options.add_arguments(parser, accept="accept the rest without review")
        parser.add_argument(
            "--dry-run", action="store_true", help="show what would be generated, store nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["job"] is not None:
            try:
                made = perturber_jobs.make_job_items(_job(options["job"]))
            except Stale as error:
                raise command_error(str(error)) from error
            self.stdout.write(json.dumps(perturber_jobs.summarise_result(made)))
            return
        if options["project"] is None:
            raise command_error("Give --project.")
        project = get_project(options["project"])
        wish, dry_run = _wish(options), options["dry_run"]
        wanted = ReleasePolicy.from_values(options)
        try:
            wanted.check()
            done = perturbers.make_items(project, wish, wanted, dry_run=dry_run)
        except FieldError as error:
            raise command_error(f"--{error.field} {error}") from error
        except (UnsuitableProject, Stale) as error:
            raise command_error(str(error)) from error
        self._say(wish, done, dry_run=dry_run)

    def _say(self, wish: PerturbRequest, done: PerturbResult, *, dry_run: bool) -> None:
        for slug in wish.perturbers:
            lacking = done.lacking[slug]
            rest = f"; {lacking:,} texts skipped (too few suitable spots)" if lacking else ""
            self.stdout.write(
                f"{PERTURBERS[slug].category:<16} {done.made[slug]:>7,} generated{rest}"
            )
        report = done.report
        for bad in (*report.bad, *report.conflicts):
            self.stderr.write(f"{as_printable(bad.key)}: {bad.field} {bad.reason}")
        stored = "would be added" if dry_run else "added"
        self.stdout.write(
            f"{report.new:,} {stored}, {report.unchanged:,} unchanged, seed {wish.seed}"
        )
        for rule, n in sorted(done.flagged.items()):
            self.stdout.write(f"{n:,} flagged as {rule}")
        if done.brought.waiting or done.brought.accepted:
            self.stdout.write(
                f"{done.brought.opened:,} released, {done.brought.accepted:,} accepted without"
                f" review, {done.brought.waiting:,} held back"
            )
        if report.bad or report.conflicts:
            raise CommandError("Some items were not added; see the reasons above.")


def _wish(options: dict[str, Any]) -> PerturbRequest:
    return PerturbRequest(
        perturbers=tuple(dict.fromkeys(options["perturbers"])),
        seed=options["seed"] or perturbers.new_seed(),
        number=options["number"],
        doses=tuple(dict.fromkeys(options["errors"])),
        limit=options["limit"],
        purpose=options["purpose"],
    )


def _job(pk: int) -> Job:
    found = Job.objects.filter(pk=pk, kind=perturber_jobs.JOB_KIND, finished_at=None)
    job = found.select_related("project__task_type", "member").first()
    if job is None:
        raise command_error(f"No job {pk} is waiting.")
    return job
