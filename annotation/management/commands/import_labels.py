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
from formats.readers import FORMATS, PICKABLE
from formats.rows import BadRow, FormatError


class Command(BaseCommand):
    help = (
        "Import labels from another tool. Raters become members without an account. Required "
        "columns: item (its key), rater, time (ISO 8601; UTC if no zone is given), and one for "
        "each required field of the task type. Optional columns: "
        f"{', '.join(label_rows.OPTIONAL_COLUMNS)}. Bad rows are reported and skipped. A number "
        "outside its scale counts as missing; the rest of the row is imported. Importing a file "
        "again adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the file")
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--format", choices=PICKABLE, help="format of the file; default: by the suffix"
        )
        parser.add_argument(
            "--ignore",
            default="",
            metavar="COLUMN,...",
            help="columns to ignore; any other unknown column is an error",
        )
        parser.add_argument(
            "--as-members",
            action="store_true",
            help="if a rater has the alias of a member, assign the labels to that member",
        )
        files.add_check_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        project = files.get_open_project(options["project"])
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
            raise files.command_error("No valid rows; nothing was imported.")
        for line in _summary(report, project.slug, options["dry_run"]):
            self.stdout.write(line)


def _statements(
    options: dict[str, Any], task: tasktypes.TaskType, now: Any
) -> Iterator[ParsedLabel | BadRow]:
    """Return the checked rows of the file. Errors of the whole file are raised before the first
    row."""
    path, ignored = options["path"], [name.strip() for name in options["ignore"].split(",")]
    try:
        rows = FORMATS[files.detect_format(path, options["format"])].read(path)
        rows = files.require_columns(rows, lambda found: label_rows.REQUIRED_COLUMNS)
    except FormatError as error:
        raise files.command_error(str(error)) from error
    return label_rows.parse_labels(rows, task, now=now, ignored=ignored)


def _summary(report: labels.LabelImportReport, slug: str, dry_run: bool) -> Iterator[str]:
    verb = "would be imported" if dry_run else "imported"
    older = f" ({report.older:,} of them superseded by later ones)" if report.older else ""
    yield (
        f"{slug}: {report.rows:,} rows: {report.new:,} labels {verb}{older}, "
        f"{report.unchanged:,} unchanged, {len(report.bad):,} bad; "
        f"{report.raters:,} new rater{'' if report.raters == 1 else 's'}."
    )
    if report.off_scale:
        yield (
            f"{len(report.off_scale):,} numbers are outside their scale and count as missing. The "
            "original values are kept with the labels."
        )
    if report.promoted:
        yield f"{report.promoted:,} labels that were extra now count."
    if report.extra:
        yield (
            f"{report.extra:,} labels are extra and do not count. To count them, raise annotators "
            f"per item to {report.overlap} and import the file again."
        )
