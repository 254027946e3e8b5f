from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotation.items.snapshots import create
from annotation.management.files import command_error
from annotation.models import Job


class Command(BaseCommand):
    help = "Create a snapshot that was requested in the browser. Used by workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", type=int, metavar="ID", help="the job")

    def handle(self, *args: Any, **options: Any) -> None:
        job = Job.objects.filter(pk=options["job"], kind=create.JOB_KIND, finished_at=None).first()
        if job is None:
            raise command_error(f"No snapshot job {options['job']} is waiting.")
        create.make_snapshot(job)
