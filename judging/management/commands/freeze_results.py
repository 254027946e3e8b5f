from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotation.errors import Refused
from annotation.management.files import command_error, get_project
from annotation.models import Event, Membership, Project
from charts import files
from judging.archive import create
from judging.archive.create import ArchiveOptions
from judging.management import run_commands
from judging.models import Run
from judging.results import run_marks
from judging.results.views import charts


class Command(BaseCommand):
    help = (
        "Write an archive of results: data, figures, charts, methods and digests. Others can"
        " reproduce the figures with results --from."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        run_commands.add_runs(parser)
        parser.add_argument(
            "-o", "--output", type=Path, required=True, metavar="FILE.zip", help="the file to write"
        )
        parser.add_argument(
            "--with-texts",
            action="store_true",
            help="include the texts of items and what people wrote",
        )
        parser.add_argument(
            "--with-replies", action="store_true", help="include the texts of the replies"
        )
        parser.add_argument(
            "--license",
            type=Path,
            metavar="FILE",
            help="a text file with the terms of the data, included as LICENSE",
        )
        parser.add_argument(
            "--member", metavar="ALIAS", help="the member whom the audit names as the creator"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = get_project(options["project"])
        runs = _runs(project, options["run"])
        output, wanted = options["output"], _wanted(options)
        asked = Membership.objects.in_project(project).called([options["member"] or ""]).first()
        tell = self._tell if options["verbosity"] else _nothing
        # Written to a temporary file and moved when complete: a failed archive leaves no file.
        part = output.with_name(output.name + ".part")
        try:
            with part.open("w+b") as stream:
                create.write_archive(project, runs, wanted, stream, tell)
            part.replace(output)
        except OSError as error:
            raise command_error(
                f"{output}: cannot be written ({error.strerror or error}). Choose another file."
            ) from error
        except (files.ConversionFailed, Refused) as error:
            raise CommandError(str(error)) from error
        finally:
            part.unlink(missing_ok=True)
        numbers = [run.number for run in runs]
        Event.record(
            "freeze",
            project.slug,
            project_id=project.pk,
            member_id=asked.pk if asked else None,
            runs=numbers,
            texts=wanted.texts,
            replies=wanted.replies,
        )
        tell(str(output), output.stat().st_size, "bytes")

    def _tell(self, name: str, number: int, of: str = "rows") -> None:
        if number:
            self.stderr.write(f"{name}: {number:,} {of}")


def _nothing(name: str, number: int, of: str = "rows") -> None:
    """Print nothing; used with verbosity 0."""


def _runs(project: Project, numbers: list[int] | None) -> list[Run]:
    if numbers:
        run_commands.get_runs(project, numbers)
        return list(Run.objects.in_project(project).judging().for_results().numbered(numbers))
    return run_marks.select_default(run_marks.load_marked_runs(project))


def _wanted(options: dict[str, Any]) -> ArchiveOptions:
    licence = options["license"]
    try:
        terms = licence.read_text(encoding="utf-8") if licence else ""
    except (OSError, ValueError) as error:
        raise command_error(f"{licence}: cannot be read as text ({error}).") from error
    return ArchiveOptions(options["with_texts"], options["with_replies"], terms, _charts)


def _charts(project: Project, runs: Sequence[Run]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, drawing in charts.draw_all(project, runs):
        yield name, drawing.spec
