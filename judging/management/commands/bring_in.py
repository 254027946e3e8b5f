import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count

from annotation.generation.release import ReleasePolicy
from annotation.management import release_options
from annotation.management.files import command_error, get_project
from annotation.models import Job
from judging.generation import bring_in
from judging.generation.bring_in import BringInRequest
from judging.management import run_commands
from judging.models import Outcome, Run
from judging.strategies.replies.causes import name_cause


class Command(BaseCommand):
    help = (
        "Add the generated texts of a run: as new items, or as the gold answers of prompts that"
        " have none. Repeating it adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG", help="the project")
        parser.add_argument("--run", type=int, metavar="NUMBER", help="number of the run")
        parser.add_argument(
            "--into",
            metavar="SLUG",
            help="add items to this project; default: the project of the run",
        )
        release_options.add_arguments(
            parser, accept="accept the rest without review; only for score-invariant items"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["job"] is not None:
            job = _job(options["job"])
            done = run_commands.call_service(
                lambda: bring_in.bring_in_replies(bring_in.load_request(job), job.member)
            )
            self.stdout.write(json.dumps(done.summary()))
            return
        if options["project"] is None or options["run"] is None:
            raise command_error("Give --project and --run.")
        run = run_commands.get_run(options["project"], options["run"])
        target = get_project(options["into"]) if options["into"] else run.project
        wish = BringInRequest(run, target, ReleasePolicy.from_values(options))
        said = run_commands.call_service(lambda: bring_in.bring_in_replies(wish, None)).summary()
        for problem in said["problems"]:
            self.stderr.write(problem)
        self.stdout.write(
            f"{said['new']:,} added, {said['unchanged']:,} unchanged; {said['opened']:,} released,"
            f" {said['accepted']:,} accepted without review, {said['waiting']:,} held back"
        )
        if not run.outcomes.filter(result=Outcome.Result.MADE).exists():
            self.stderr.write(_explain_nothing(run))
        if said["bad"] or said["conflicts"]:
            raise CommandError("Some items were not added; see the reasons above.")


def _explain_nothing(run: Run) -> str:
    """Why there is nothing to add from a run without a usable answer."""
    missing = run.outcomes.filter(result=Outcome.Result.MISSING).order_by()
    causes = missing.values_list("cause").annotate(n=Count("pk")).order_by("-n", "cause")
    listed = ", ".join(f"{name_cause(cause)} {n:,}" for cause, n in causes)
    why = f" Missing, by cause: {listed}. The page of the run has the replies." if listed else ""
    return f"No item of run {run.number} has a usable answer.{why}"


def _job(pk: int) -> Job:
    found = Job.objects.filter(pk=pk, kind=bring_in.KIND, finished_at=None)
    job = found.select_related("project", "member").first()
    if job is None:
        raise command_error(f"No job {pk} is waiting.")
    return job
