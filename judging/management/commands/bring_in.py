import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.making import Vetting
from annotation.models import Job
from judging.making import bringing
from judging.making.bringing import Wish
from judging.management import told


class Command(BaseCommand):
    help = (
        "Make items of what a generator run made, or give its items the answers that they wait"
        " for. The same again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", metavar="SLUG")
        parser.add_argument("--run", type=int, metavar="NUMBER")
        parser.add_argument("--into", metavar="SLUG", help="items of this project; else of its own")
        parser.add_argument(
            "--share",
            type=int,
            default=100,
            metavar="PERCENT",
            help="so many of each category people get at once, drawn at random; the rest waits",
        )
        parser.add_argument(
            "--accept",
            action="store_true",
            help="take the rest for what it was made for, where that should cost nothing",
        )
        parser.add_argument(
            "--aside", nargs="+", default=[], metavar="FLAG", help="what is flagged so waits"
        )
        parser.add_argument(
            "--job", type=int, metavar="ID", help="as a job asks; a worker starts it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["job"] is not None:
            job = _job(options["job"])
            done = told.done(lambda: bringing.bring(bringing.asked(job), job.member))
            self.stdout.write(json.dumps(bringing.told(done)))
            return
        if options["project"] is None or options["run"] is None:
            raise CommandError("Name --project and --run.", returncode=2)
        run = told.run(options["project"], options["run"])
        target = told.project(options["into"]) if options["into"] else run.project
        vetting = Vetting(
            share=options["share"], accept=options["accept"], aside=frozenset(options["aside"])
        )
        said = bringing.told(told.done(lambda: bringing.bring(Wish(run, target, vetting), None)))
        for problem in said["problems"]:
            self.stderr.write(problem)
        self.stdout.write(
            f"{said['new']:,} new, {said['unchanged']:,} were there; people get {said['opened']:,},"
            f" {said['accepted']:,} accepted unseen, {said['waiting']:,} wait"
        )
        if said["bad"] or said["conflicts"]:
            raise CommandError("Some did not come in, for the reasons above.")


def _job(pk: int) -> Job:
    found = Job.objects.filter(pk=pk, kind=bringing.KIND, finished_at=None)
    job = found.select_related("project", "member").first()
    if job is None:
        raise CommandError(f"No job {pk} waits.", returncode=2)
    return job
