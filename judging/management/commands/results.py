import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from annotation.management.files import command_error, get_project
from annotation.models import Project
from formats.rows import FormatError
from formats.writers import FIGURE_FORMATS, write_figures
from judging.archive import reproduce
from judging.management import run_commands
from judging.models import Run
from judging.results import figures, run_marks, tables
from judging.results.columns import DEFAULT_BY, parse_fields
from judging.results.counted import UnknownField
from judging.results.tables import methods

METHODS = "methods"


class Command(BaseCommand):
    help = "Print a table of figures; rates are fractions of 1, unrounded."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "table",
            nargs="?",
            choices=[*tables.RESULT_TABLES, METHODS],
            help="which table; methods: the methods paragraph. With --from and without a table:"
            " compare all tables with the archive",
        )
        parser.add_argument("--project", metavar="SLUG", help="the project")
        parser.add_argument(
            "--from",
            dest="archive",
            type=Path,
            metavar="ARCHIVE.zip",
            help="compute it from an archive of freeze_results, in a temporary database",
        )
        _add_rows(parser)
        parser.add_argument(
            "--format",
            choices=[*FIGURE_FORMATS, "text"],
            help="default: json, or text for methods (methods: json, latex or text)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["archive"]:
            self._from(options)
            return
        if not options["table"] or not options["project"]:
            raise command_error("Give a table and a --project, or an archive with --from.")
        project = get_project(options["project"])
        every = run_marks.load_marked_runs(project)
        if options["run"]:
            runs = _named(project, every, options["run"])
        else:
            runs, left = run_marks.select_default(every), run_marks.describe_set_aside(every)
            if left and _is_of_runs(options["table"]):
                self.stderr.write(f"Left out: {left}. Use --run to include them.")
        if options["table"] == METHODS:
            self._say(methods.write_methods(project, runs), options["format"] or "text")
        else:
            _print(project, runs, options)

    def _say(self, said: methods.MethodsText, form: str) -> None:
        forms = {"text": said.text, "latex": said.latex}
        forms["json"] = json.dumps({"paragraphs": said.paragraphs}, ensure_ascii=False) + "\n"
        if form not in forms:
            raise command_error(f"methods has no format {form}. Choose one of {', '.join(forms)}.")
        self.stdout.write(forms[form], ending="")

    def _from(self, options: dict[str, Any]) -> None:
        try:
            with reproduce.load_archive(options["archive"], compare=not options["table"]) as there:
                said = there.run(*_asked(there, options)) if options["table"] else there.said
        except (FormatError, reproduce.ReproductionFailed) as error:
            raise command_error(str(error)) from error
        self.stdout.write(said, ending="")


def _add_rows(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("rows")
    run_commands.add_runs(group)
    group.add_argument(
        "--by",
        default=DEFAULT_BY,
        metavar="FIELD,...",
        help=f"group by these fields; by table: {figures.describe_grouping()}",
    )
    group.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="COLUMN=VALUE",
        help="only rows with these values",
    )
    group.add_argument(
        "--names-alone",
        action="store_true",
        help="leave out the numbers of runs, if each run has a name of its own",
    )


def _print(project: Project, runs: list[Run], options: dict[str, Any]) -> None:
    table, by, form = (
        options["table"],
        parse_fields(options["by"]),
        options["format"] or "json",
    )
    if form not in FIGURE_FORMATS:
        raise command_error(
            f"{table} has no format {form}. Choose one of {', '.join(FIGURE_FORMATS)}."
        )
    try:
        asked = figures.build_request(project, tables.RESULT_TABLES[table], runs, by)
    except UnknownField as error:
        raise command_error(str(error)) from error
    only = _only(table, asked.columns, options["only"])
    made = figures.filter_rows(figures.compute_or_fetch(asked), only)
    if options["names_alone"]:
        made = figures.drop_run_numbers(made)
    write_figures(form, table, made.rows, made.columns, sys.stdout)


def _only(table: str, columns: Sequence[str], said: Sequence[str]) -> dict[str, str]:
    """Return the required values by column. The name of a column may contain "="."""
    narrowing = sorted((name for name in columns if name != "run"), key=len, reverse=True)
    found: dict[str, str] = {}
    for one in said:
        if "=" not in one:
            raise command_error(f"{one!r} is not COLUMN=VALUE.")
        name = next((name for name in narrowing if one.startswith(f"{name}=")), None)
        if name is None or name in found:
            raise command_error(_refusal(table, columns, one, name))
        found[name] = one.removeprefix(f"{name}=")
    return found


def _refusal(table: str, columns: Sequence[str], one: str, name: str | None) -> str:
    if name:
        return f"--only has two values for {name}. Give one value per column."
    unknown = one.split("=", 1)[0]
    if unknown == "run":
        return f"--only {one}: use --run NUMBER to choose runs."
    listed = ", ".join(one for one in columns if one != "run")
    return f"--only {one}: the table {table} has no column {unknown!r}. Its columns: {listed}."


def _asked(there: reproduce.LoadedArchive, options: dict[str, Any]) -> list[str]:
    """The same command for the project of an archive, by default with the runs in the archive."""
    if options["project"] not in (None, there.facts["project"]):
        raise command_error(f"The archive contains the project {there.facts['project']}.")
    command = ["results", options["table"], "--project", there.facts["project"]]
    command += ["--by", options["by"]]
    command += ["--only", *options["only"]] if options["only"] else []
    command += ["--names-alone"] if options["names_alone"] else []
    if numbers := options["run"] or there.facts["runs"]:
        command += ["--run", *map(str, numbers)]
    return command + (["--format", options["format"]] if options["format"] else [])


def _is_of_runs(table: str) -> bool:
    return table == METHODS or any(
        column.name.startswith("run") for column in tables.RESULT_TABLES[table].columns
    )


def _named(project: Project, every: Sequence[Run], numbers: list[int]) -> list[Run]:
    chosen = [run for run in every if run.number in numbers]
    if unknown := sorted(set(numbers) - {run.number for run in chosen}):
        listed = ", ".join(map(str, unknown))
        raise command_error(f"{project.slug} has no run {listed}.")
    return chosen
