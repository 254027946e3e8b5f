from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.importing import jobs, program
from annotation.management.files import command_error
from annotation.models import Job


class Command(BaseCommand):
    help = "Check or import a file that was uploaded in the browser. Used by workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", type=int, metavar="ID", help="the job")

    def handle(self, *args: Any, **options: Any) -> None:
        found = Job.objects.filter(pk=options["job"], kind=jobs.JOB_KIND, finished_at=None)
        job = found.filter(state=Job.State.RUNNING)
        waits = job.select_related("project__task_type", "member").first()
        if waits is None:
            raise command_error(f"No import {options['job']} is running.")
        try:
            program.run_import(waits)
        except OSError as error:
            raise CommandError(f"The file cannot be read or written: {error.strerror}.") from error
