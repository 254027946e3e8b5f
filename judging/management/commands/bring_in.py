import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.generation.release import ReleasePolicy
from annotation.management import release_options
from annotation.models import Job
from judging.generation import bring_in
from judging.generation.bring_in import BringInRequest
from judging.management import run_commands


class Command(BaseCommand):
    help = (
        "Make items of what a generator run made, or give its items the answers that they wait"
        " for. The same again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument("--run", type=int, metavar="NUMBER")
        parser.add_argument("--into", metavar="SLUG", help="items of this project; else of its own")
        release_options.add_arguments(
            parser, accept="take the rest for what it was made for, where that should cost nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["job"] is not None:
            job = _job(options["job"])
            done = run_commands.call_service(
                lambda: bring_in.bring_in_replies(bring_in.load_request(job), job.member)
            )
            self.stdout.write(json.dumps(done.told()))
            return
        if options["project"] is None or options["run"] is None:
            raise CommandError("Name --project and --run.", returncode=2)
        run = run_commands.get_run(options["project"], options["run"])
        target = run_commands.get_project(options["into"]) if options["into"] else run.project
        wish = BringInRequest(run, target, ReleasePolicy.of(options))
        said = run_commands.call_service(lambda: bring_in.bring_in_replies(wish, None)).told()
        for problem in said["problems"]:
            self.stderr.write(problem)
        self.stdout.write(
            f"{said['new']:,} new, {said['unchanged']:,} were there; people get {said['opened']:,},"
            f" {said['accepted']:,} accepted unseen, {said['waiting']:,} wait"
        )
        if said["bad"] or said["conflicts"]:
            raise CommandError("Some did not come in, for the reasons above.")


def _job(pk: int) -> Job:
    found = Job.objects.filter(pk=pk, kind=bring_in.KIND, finished_at=None)
    job = found.select_related("project", "member").first()
    if job is None:
        raise CommandError(f"No job {pk} waits.", returncode=2)
    return job
