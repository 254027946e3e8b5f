from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.models import Job
from judging.exporting import jobs


class Command(BaseCommand):
    help = "Write the file of an export that was asked for in the browser; a worker starts this."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", type=int, metavar="ID")

    def handle(self, *args: Any, **options: Any) -> None:
        found = Job.objects.filter(pk=options["job"], kind=jobs.KIND, finished_at=None)
        job = found.select_related("project__task_type").first()
        if job is None:
            raise CommandError(f"No export {options['job']} waits.", returncode=2)
        try:
            # What is printed is how many rows are done, for the worker, which notes it.
            jobs.write_export(job, lambda done: print(done, flush=True))
        except ValueError as error:
            raise CommandError(f"The file cannot be made: {error}.") from error
        except OSError as error:
            raise CommandError(f"The file cannot be written: {error.strerror}.") from error
