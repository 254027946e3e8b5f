from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from annotation import tasktypes
from annotation.importing import label_rows, labels
from annotation.importing.label_rows import ParsedLabel
from annotation.management import files
from annotation.models import Project
from formats.readers import READERS
from formats.rows import DEFAULT_LIMITS, BadRow, FormatError

FORMATS = ("csv", "tsv", "jsonl")


class Command(BaseCommand):
    help = (
        "Import labels that people made elsewhere; raters become members without an account. "
        "Needed columns: item (its key), rater, time (ISO 8601, without a zone it is UTC), and "
        "one for each field of the task type that is asked for; optional: "
        f"{', '.join(label_rows.OPTIONAL_COLUMNS)}. Rows that cannot be used are reported and the "
        "others "
        "imported; of a row with a number off its scale that answer alone is missing. Again is "
        "nothing new."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the file")
        parser.add_argument("--project", required=True, metavar="SLUG")
        parser.add_argument("--format", choices=FORMATS, help="default: by the suffix")
        parser.add_argument(
            "--ignore",
            default="",
            metavar="COLUMN,...",
            help="columns that are none of ours; any other unknown one makes its row bad",
        )
        parser.add_argument(
            "--as-members",
            action="store_true",
            help="take raters with the alias of a member with an account for that person",
        )
        parser.add_argument("--dry-run", action="store_true", help="check and count, store nothing")
        parser.add_argument(
            "--errors", type=Path, metavar="FILE", help="write every bad row to this CSV file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        project = _project(options["project"])
        now = timezone.now()
        found = _statements(options, tasktypes.load_task_type(project), now)
        with files.open_error_file(options["errors"]) as file:
            report = labels.store_labels(
                project,
                files.show_progress(found, self.stderr),
                now=now,
                dry_run=options["dry_run"],
                as_members=options["as_members"],
            )
            told = [("bad", row) for row in report.bad]
            told += [("missing", row) for row in report.off_scale]
            files.report_problems(told, self.stderr, file)
        if report.bad and not report.new + report.unchanged:
            raise files.command_error("No row can be used; nothing was imported.")
        for line in _summary(report, project.slug, options["dry_run"]):
            self.stdout.write(line)


def _project(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).select_related("task_type").first()
    if project is None:
        raise files.command_error(f"There is no project {slug!r}. Import its items first.")
    if project.archived_at:
        raise files.command_error(f"The project {slug!r} is archived. Choose another one.")
    return project


def _statements(
    options: dict[str, Any], task: tasktypes.TaskType, now: Any
) -> Iterator[ParsedLabel | BadRow]:
    """The file's rows, checked; every fault of the whole file is raised before the first."""
    path, ignored = options["path"], [name.strip() for name in options["ignore"].split(",")]
    try:
        rows = READERS[files.detect_format(path, options["format"])](path, DEFAULT_LIMITS)
        rows = files.require_columns(rows, lambda found: label_rows.REQUIRED_COLUMNS)
    except FormatError as error:
        raise files.command_error(str(error)) from error
    return label_rows.parse_labels(rows, task, now=now, ignored=ignored)


def _summary(report: labels.LabelImportReport, slug: str, dry_run: bool) -> Iterator[str]:
    verb = "would be imported" if dry_run else "imported"
    older = f" ({report.older:,} of them superseded by later ones)" if report.older else ""
    yield (
        f"{slug}: {report.rows:,} rows: {report.new:,} labels {verb}{older}, "
        f"{report.unchanged:,} unchanged, {len(report.bad):,} bad; {report.raters:,} new raters."
    )
    if report.off_scale:
        yield (
            f"Missing, since off their scale: {len(report.off_scale):,}. What was given is kept"
            " with the labels."
        )
    if report.promoted:
        yield f"{report.promoted:,} that were extra before count now."
    if report.extra:
        yield (
            f"{report.extra:,} are kept as extra and do not count: raise the overlap to "
            f"{report.overlap} and import the file again to count them."
        )
