import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import FieldError
from annotation.items.snapshots import create
from annotation.management.files import command_error, get_project
from annotation.models import Job, Snapshot

LOOK_EVERY = 0.5


class Command(BaseCommand):
    help = "Save the current items, texts, final labels and labels of a project under a name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument("--name", required=True, help="such as v1")
        parser.add_argument("--note", default="", help="a note about its purpose")

    def handle(self, *args: Any, **options: Any) -> None:
        project = get_project(options["project"])
        name = options["name"].strip()
        try:
            snapshot = create.enqueue(project, None, name, options["note"])
        except FieldError as error:
            raise command_error(str(error)) from error
        job = _ended(snapshot)
        if job.state != Job.State.FINISHED:
            raise CommandError(f"{name} was not created. {job.message}")
        snapshot.refresh_from_db()
        self.stdout.write(f"{name}: {snapshot.items:,} items, digest {snapshot.digest}")


def _ended(snapshot: Snapshot) -> Job:
    """Run the job of a snapshot, or wait for the worker that runs it. Return the ended job."""
    job = snapshot.job
    assert job is not None
    create.run_job(job.pk)
    while Job.objects.filter(pk=job.pk, finished_at=None).exists():
        time.sleep(LOOK_EVERY)
        create.run_job(job.pk)
    job.refresh_from_db()
    return job
