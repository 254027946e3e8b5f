from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from annotation.management import files
from annotation.models import Project
from annotation.projects import encrypted_archives
from formats.readers import REPLY_FORMATS
from formats.rows import BadRow, FormatError, Row
from judging.errors import Refused
from judging.management import run_commands
from judging.models import StrategyVersion
from judging.runs import selection
from judging.runs.recorded import record, transcripts
from judging.runs.recorded.record import ImportReport
from judging.runs.recorded.storage import RecordedPart
from judging.runs.recorded.transcripts import Transcript
from judging.runs.recorded.verdicts import VERDICT_CHOICES
from judging.strategies import catalogue, descriptions

REASON = "Nothing was imported. Fix or remove these rows."


class Command(BaseCommand):
    help = (
        "Create runs from existing replies without calling an evaluator: study 001's published "
        "detectors (one file, the folder or its zip), output and error files of an OpenAI batch "
        "(custom_id: the item's key, or KEY|ROLE|ORDER|SAMPLE), or JSON Lines with item, text "
        "and / or value (one) or values (by metric), and optionally revision, role, order, axis, "
        "sample, finish, model, tokens_in, tokens_out, tokens_cached, tokens_reasoning, thinking, "
        "cause. If one row is bad, nothing is imported. "
        "Importing a file again adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", type=Path, nargs="+", help="files that belong together, a folder, or a zip"
        )
        parser.add_argument("--project", required=True, metavar="SLUG", help="the project")
        parser.add_argument(
            "--endpoint",
            default="",
            metavar="NAME",
            help="the evaluator; created if it does not exist",
        )
        parser.add_argument(
            "--strategy", default="", metavar="SLUG", help="the strategy that was used"
        )
        parser.add_argument(
            "--format", choices=sorted(REPLY_FORMATS), required=True, help="format of the files"
        )
        parser.add_argument(
            "--verdicts",
            choices=VERDICT_CHOICES,
            default="",
            help="use the verdicts stored in the file, or parse the texts; default: stored if the "
            "file has any. Both are kept",
        )
        parser.add_argument("--password", default="", help="password of an encrypted archive")
        run_commands.add_while_labelling(parser)
        files.add_check_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        project = files.get_open_project(options["project"])
        if options["password"] and not options["dry_run"]:
            encrypted_archives.seal_project(project)
        with files.open_error_file(options["errors"]) as file:
            try:
                parts, bad = _parts(project, _rows(options), options)
                report = record.record_replies(
                    project,
                    parts,
                    now=timezone.now(),
                    wanted=options["verdicts"],
                    dry_run=options["dry_run"] or bool(bad),
                    while_labelling=options["while_labelling"],
                )
            except Refused as refused:
                raise files.command_error(str(refused)) from refused
            bad += report.bad
            files.report_problems([("bad", row) for row in bad], self.stderr, file)
        if bad:
            raise files.command_error(f"{len(bad):,} bad rows. {REASON}")
        for line in _summary(report, project.slug, options["dry_run"]):
            self.stdout.write(line)


def _rows(options: dict[str, Any]) -> Iterator[Row | BadRow]:
    try:
        form, password = REPLY_FORMATS[options["format"]], options["password"]
        # Each file is checked before the first row is used.
        return chain.from_iterable([form.read(path, password=password) for path in options["path"]])
    except FormatError as error:
        raise files.command_error(str(error)) from error


def _parts(
    project: Project, rows: Iterable[Row | BadRow], options: dict[str, Any]
) -> tuple[list[RecordedPart], list[BadRow]]:
    """Return the checked rows by endpoint and strategy, and the invalid rows."""
    bad: list[BadRow] = []
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            found[_endpoint(row, options), _slug(project, row, options)].append(row)
    parts = []
    for (endpoint, slug), told in sorted(found.items()):
        version = _version(project, slug, options)
        checked = list(
            transcripts.parse_rows(told, record.build_project_strategy(project, version))
        )
        bad += [one for one in checked if isinstance(one, BadRow)]
        if good := [one for one in checked if isinstance(one, Transcript)]:
            parts.append(RecordedPart(endpoint, version, good))
    return parts, bad


def _endpoint(row: Row, options: dict[str, Any]) -> str:
    name = options["endpoint"] or row.values.get("endpoint") or ""
    if not isinstance(name, str) or not 0 < len(name) <= 80:
        raise files.command_error(f"{row.file} does not name an evaluator. Add --endpoint NAME.")
    return name


def _slug(project: Project, row: Row, options: dict[str, Any]) -> str:
    slug = options["strategy"] or transcripts.PUBLISHED_STRATEGIES.get(
        str(row.values.get("prompt")), ""
    )
    if not slug:
        raise files.command_error(
            f"{row.file} does not name a strategy. Add --strategy SLUG, one of {_known(project)}."
        )
    return str(slug)


def _version(project: Project, slug: str, options: dict[str, Any]) -> StrategyVersion:
    """Return the strategy given by --strategy, or the built-in strategy with the name of the
    folder.
    """
    if not options["strategy"]:
        return selection.get_strategy_version(slug)
    version = catalogue.find_version(project, slug)
    if version is None:
        raise files.command_error(
            f"There is no strategy {slug!r}; choose one of {_known(project)}."
        )
    return catalogue.store_version(version)


def _known(project: Project) -> str:
    return ", ".join(one.strategy.slug for one in catalogue.list_strategies(project))


def _summary(report: ImportReport, slug: str, dry_run: bool) -> Iterator[str]:
    verb = "would be recorded" if dry_run else "recorded"
    told = []
    if report.replies:
        told.append(f"{report.replies:,} {'reply' if report.replies == 1 else 'replies'}")
    if report.values:
        kinds = {descriptions.describe_values(run.pinned_strategy()) for run in report.runs}
        named = kinds.pop() if len(kinds) == 1 else "values"
        alone = " without a text" if report.replies else ""
        told.append(f"{report.values:,} {named[:-1] if report.values == 1 else named}{alone}")
    runs = f"{len(report.runs):,} run{'s' * (len(report.runs) != 1)}"
    new = f"{' and '.join(told)} {verb} in {runs}" if told else "nothing new"
    yield f"{slug}: {new}; {len(report.known):,} already imported."
    for run in report.otherwise:
        yield (
            f"{run.endpoint.name}, {run.strategy.slug}: its "
            f"{run.pinned['recorded']['verdicts']} verdicts are used, since there are no others."
        )
    if report.differing:
        yield (
            f"In {report.differing:,} items the stored and the parsed verdict differ; "
            "the pages of the runs list them."
        )
