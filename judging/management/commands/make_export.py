from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.management.files import command_error
from annotation.models import Job
from judging.exporting import jobs


class Command(BaseCommand):
    help = "Write an export that was requested in the browser. Used by workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("job", type=int, metavar="ID", help="the job")

    def handle(self, *args: Any, **options: Any) -> None:
        found = Job.objects.filter(pk=options["job"], kind=jobs.KIND, finished_at=None)
        job = found.select_related("project__task_type").first()
        if job is None:
            raise command_error(f"No export job {options['job']} is waiting.")
        try:
            # The worker reads the number of written rows and stores it as progress.
            jobs.write_export(job, lambda done: print(done, flush=True))
        except Refused as problem:
            raise CommandError(str(problem)) from problem
        except ValueError as error:
            raise CommandError(f"The export failed: {error}.") from error
        except OSError as error:
            raise CommandError(f"The file cannot be written: {error.strerror}.") from error
