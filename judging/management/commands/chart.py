from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.http import Http404, QueryDict

from annotation.management.files import command_error, get_project
from charts import files
from judging.management import run_commands
from judging.results.page_parts import RUN_PARAMETER, VIEW_PARAMETER
from judging.results.tables import PAGES
from judging.results.views import charts


class Command(BaseCommand):
    help = "Write the chart of a result page to a file, in colours for print."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("page", choices=PAGES, help="the result page")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        run_commands.add_runs(parser)
        parser.add_argument("--view", help="a view of the page; default: the first")
        parser.add_argument(
            "--with",
            dest="also",
            nargs="+",
            default=[],
            metavar="NAME=VALUE",
            help="other parameters of the page's address, such as measure=undetected",
        )
        parser.add_argument(
            "--format", choices=files.TYPES, help="format of the chart; default: by the file's name"
        )
        parser.add_argument(
            "-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project, output = get_project(options["project"]), options["output"]
        form = options["format"] or output.suffix.removeprefix(".").lower()
        if form not in files.TYPES:
            raise command_error(f"Add --format, one of {', '.join(files.TYPES)}.")
        try:
            drawing = charts.draw_query(project, options["page"], _query(options))
            if drawing is None:
                raise command_error("These runs have no data for this chart.")
            output.write_bytes(files.render(drawing.spec, form))
        except Http404 as error:
            raise command_error(str(error) or "There is no such view.") from error
        except files.ConversionFailed as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise command_error(
                f"{output}: cannot be written ({error.strerror or error}). Choose another file."
            ) from error
        self.stderr.write(f"{output}: {drawing.caption}")


def _query(options: dict[str, Any]) -> QueryDict:
    query = QueryDict(mutable=True)
    query.setlist(RUN_PARAMETER, [str(number) for number in options["run"] or ()])
    if options["view"]:
        query[VIEW_PARAMETER] = options["view"]
    for one in options["also"]:
        name, _, value = one.partition("=")
        query[name] = value
    return query
