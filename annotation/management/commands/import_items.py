from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any, TextIO

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand
from django.core.validators import validate_slug

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.errors import Stale
from annotation.importing import sources
from annotation.importing.column_mapping import guess_columns, needed_columns
from annotation.importing.exported_rows import EXPORT_COLUMNS
from annotation.importing.item_rows import ParsedItem
from annotation.importing.sources import Source
from annotation.items import taxonomy
from annotation.items.taxonomy import Taxonomy
from annotation.management import files
from annotation.models import Account, Project
from annotation.projects import creation, encrypted_archives
from formats import bundles
from formats.readers import FORMATS, pick_rows
from formats.rows import DEFAULT_LIMITS, BadRow, FormatError, Row

DEFAULT_TASK = "perturbation-vetting"
TASK_OF_FORMAT = {"realmistake": "error-detection"}


class Command(BaseCommand):
    help = (
        "Import items. Bad rows are reported and skipped. Importing a file again adds nothing. "
        "If a text has changed, the row is reported as a conflict and nothing is overwritten."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", type=Path, help="a file, or the archive or folder of study 000 or 001"
        )
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--create", action="store_true", help="create the project if it does not exist"
        )
        parser.add_argument("--name", help="name of a new project; default: its slug")
        parser.add_argument(
            "--lead", metavar="USERNAME", help="user name of the lead of a new project"
        )
        parser.add_argument(
            "--task-type",
            metavar="SLUG",
            help=f"task type of a new project; default: {DEFAULT_TASK}",
        )
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="NAME=FOUND",
            help="map a column of the file: response=llm_response, key=metadata.id",
        )
        parser.add_argument(
            "--format", choices=sorted(FORMATS), help="format of the file; default: by the suffix"
        )
        parser.add_argument("--password", default="", help="password of an encrypted archive")
        parser.add_argument(
            "--accept",
            action="store_true",
            help="import items with their final labels, as in published data: from the category, "
            "or from columns named like the fields of the task type",
        )
        files.add_check_arguments(parser)
        parser.add_argument(
            "--mend",
            type=Path,
            metavar="FILE",
            help="write the rejected rows unchanged to this new file, to fix them and import it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        form = _format(options["path"], options["format"])
        files.check_mend_path(options["mend"], form)
        lead = files.get_account(options["lead"]) if options["lead"] else None
        wanted = options["task_type"] or TASK_OF_FORMAT.get(form)
        project = _project(options["project"], options["create"], options["task_type"])
        if project and lead:
            raise files.command_error("--lead is for a new project. See Members on its page.")
        task = _task_type(project, wanted)
        columns = _columns(options["column"])
        source = Source(options["path"], form, columns, options["password"], options["accept"])
        known = taxonomy.load_taxonomy(project) if project else taxonomy.load_shipped()
        drafts = _drafts(_rows(source), source, task, known)
        bad, first = _until_good(drafts)
        with files.open_error_file(options["errors"]) as report_file:
            if first is None:
                self._report(importing.ItemImportReport(bad=bad), report_file, form, options)
                raise files.command_error(
                    f"No valid rows; nothing was imported. {_advise(bad)}".rstrip()
                )
            if project is None and not options["dry_run"]:
                project = _create(options["project"], options["name"], task, lead)
            if project and source.password and not options["dry_run"]:
                encrypted_archives.seal_project(project)
            stream = files.show_progress(chain(bad, [first], drafts), self.stderr)
            try:
                report = importing.store_items(
                    project, stream, accept=options["accept"], dry_run=options["dry_run"]
                )
            except (FormatError, Stale) as error:
                raise files.command_error(str(error)) from error
            self._report(report, report_file, form, options)
        self._sum_up(report, options["project"], options["dry_run"])
        if advice := _advise(report.bad):
            self.stdout.write(advice)
        if project and not project.members.exists():
            self.stdout.write(files.NO_LEAD)

    def _report(
        self,
        report: importing.ItemImportReport,
        file: TextIO | None,
        form: str,
        options: dict[str, Any],
    ) -> None:
        problems = [("bad", row) for row in report.bad]
        problems += [("conflict", row) for row in report.conflicts]
        missing = [("missing", row) for row in report.off_scale]
        files.report_problems([*problems, *missing], self.stderr, file)
        if options["mend"] and problems:
            starts = {row.line for _, row in problems}
            files.write_lines(options["mend"], pick_rows(form, options["path"], starts))
            self.stdout.write(
                f"The {len(starts):,} rejected rows are in {options['mend']}. "
                "Fix them and import that file."
            )

    def _sum_up(self, report: importing.ItemImportReport, slug: str, dry_run: bool) -> None:
        verb = "would be imported" if dry_run else "imported"
        self.stdout.write(
            f"{slug}: {report.rows:,} rows: {report.new:,} {verb}, {report.unchanged:,} unchanged, "
            f"{len(report.conflicts):,} in conflict, {len(report.bad):,} bad."
        )
        if report.off_scale:
            self.stdout.write(
                f"{len(report.off_scale):,} numbers are outside their scale and count as missing. "
                "The original values are kept in the fields of the items."
            )
        if report.alone:
            again = "" if dry_run else " and import into a new project"
            self.stdout.write(
                f"Each of the {report.alone:,} new items counts as its own source question. If "
                f"several share a question, give the column of the question{again}: --column "
                "cluster=NAME."
            )


def _project(slug: str, create: bool, task_type: str | None) -> Project | None:
    """Return the project, or None if it must be created."""
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    if project is None and not create:
        raise files.command_error(f"There is no project {slug!r}. Add --create to create it.")
    if project:
        files.check_open(project)
    slugs = {project.task_type.slug, project.task_type.file_slug} if project else set()
    if project and task_type not in {None, *slugs}:
        raise files.command_error(
            f"The project {slug!r} has the task type {project.task_type.slug!r}. "
            "Leave --task-type out or choose another project."
        )
    return project


def _task_type(project: Project | None, slug: str | None) -> tasktypes.TaskType:
    if project:
        return tasktypes.load_version(project.task_type)
    known = tasktypes.load_definitions()
    slug = slug or DEFAULT_TASK
    if slug not in known:
        raise files.command_error(
            f"There is no task type {slug!r}; choose one of {', '.join(known)}."
        )
    return tasktypes.parse_definition(known[slug])


def _create(slug: str, name: str | None, task: tasktypes.TaskType, lead: Account | None) -> Project:
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise files.command_error(
            f"{slug!r} is not a valid project slug. Use letters, digits, hyphens and underscores."
        ) from error
    named = {"name": name} if name else {}
    with transactions.transact():
        project = creation.create_audited_project(slug, task_type=task.slug, **named)
        if lead:
            creation.add_lead(project, lead, by_command=True)
    return project


def _format(path: Path, given: str | None) -> str:
    guess = given or ("fbi" if path.is_dir() else None)
    if guess is None and path.suffix.lower() == ".zip":
        try:
            guess = bundles.detect_layout(path, DEFAULT_LIMITS)
        except FormatError as error:
            raise files.command_error(str(error)) from error
    return files.detect_format(path, guess)


def _columns(given: list[str]) -> dict[str, str]:
    """Map columns of items to columns of the file; a dot means a value inside an object."""
    pairs = [one.partition("=") for one in given]
    if wrong := [one for one, (name, _, found) in zip(given, pairs, strict=True) if not found]:
        raise files.command_error(f"--column {wrong[0]}: write it as NAME=FOUND.")
    return {name: found for name, _, found in pairs}


def _rows(source: Source) -> Iterator[Row | BadRow]:
    """Return the rows of the file. Errors of the whole file are raised before the first row."""
    try:
        return sources.read_rows(source)
    except FormatError as error:
        raise files.command_error(str(error)) from error


def _drafts(
    rows: Iterator[Row | BadRow], source: Source, task: tasktypes.TaskType, known: Taxonomy
) -> Iterator[ParsedItem | BadRow]:
    decides = (task.deciding.name,) if source.accept and not task.categories else ()

    def needed(found: list[str]) -> tuple[str, ...]:
        # An export has the final label in columns of its own.
        return (*needed_columns(task, found), *(() if {*found} >= EXPORT_COLUMNS else decides))

    try:
        if source.form in {"csv", "tsv"}:
            rows = files.require_columns(rows, needed, partial(_hint, task))
    except FormatError as error:
        raise files.command_error(str(error)) from error
    return importing.read_in_subprocess(
        importing.parse_items(rows, task, known, accept=source.accept)
    )


def _hint(task: tasktypes.TaskType, found: Sequence[str]) -> str:
    """Suggest --column options for the columns that the user probably meant."""
    pairs = [
        f"--column {quote(f'{name}={column}')}"
        for name, column in guess_columns(task, found).items()
    ]
    return f" Did you mean {' '.join(pairs)}" if pairs else ""


def _advise(bad: list[BadRow]) -> str:
    if not any(row.field == "category" for row in bad):
        return ""
    return (
        "Add categories on the project's page Categories, or import the file in the browser, "
        "where each of its words can become a category."
    )


def _until_good(drafts: Iterator[ParsedItem | BadRow]) -> tuple[list[BadRow], ParsedItem | None]:
    """Return the bad rows before the first good row, and this good row (None if every row is
    bad)."""
    bad: list[BadRow] = []
    for draft in drafts:
        if isinstance(draft, ParsedItem):
            return bad, draft
        bad.append(draft)
    return bad, None
