"""Create an archive of results: the data that figures need, the figures, and the methods.

Everything is read from one consistent state of the database, and rows are written as soon as they
are read, so archives can be large.
"""

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Any, BinaryIO, TextIO, cast

from django.conf import settings
from django.db import models
from django.template.loader import render_to_string

from annotation.db import snapshot_reads
from annotation.db.batches import bulky_id_batches
from annotation.items.diffing import stored
from annotation.items.diffing.difference import ALGORITHM
from annotation.jobs import subprocesses
from annotation.models import Project
from annotation.projects import encrypted_archives
from charts import files
from formats.sealed import ArchiveWriter
from formats.writers import write_figures
from judging.archive import versions
from judging.archive.redact import ArchiveScope
from judging.archive.tables import PARTS, ArchivePart, judged_revisions, lookup_paths
from judging.models import Run
from judging.results import progress, tables
from judging.results.columns import DEFAULT_BY, parse_fields
from judging.results.frames import EXPLANATION_FRAME
from judging.results.tables import methods

FORMAT = "blindspot-results"
VERSION = 1
AT_A_TIME = 2_000
# These tables depend on the current date, so they are left out.
DATE_DEPENDENT_TABLES = frozenset({"pace", "forecast"})
TABLE_FORMATS = ("csv", "json")

ProgressCallback = Callable[[str, int], None]
# A function that returns the charts of runs, by name, as Vega-Lite specifications.
ChartSource = Callable[[Project, Sequence[Run]], Iterable[tuple[str, dict[str, Any]]]]


def _no_charts(project: Project, runs: Sequence[Run]) -> Iterable[tuple[str, dict[str, Any]]]:
    return ()


@dataclass(frozen=True)
class ArchiveOptions:
    """What an archive includes besides the masked data: texts, replies, the licence of the data,
    and charts."""

    texts: bool = False
    replies: bool = False
    licence: str = ""
    draw: ChartSource = _no_charts


def write_archive(
    project: Project,
    runs: Sequence[Run],
    wanted: ArchiveOptions,
    stream: BinaryIO,
    tell: ProgressCallback,
) -> None:
    """Write an archive of these runs, and of the runs that their figures depend on.

    The same state of the database gives the same bytes. `tell` is called for each file with its
    number of rows. If texts are not included, each text is replaced by "x" with the same numbers of
    words and characters, and texts that people wrote are left out. Raises `files.ConversionFailed`
    for a chart that cannot be drawn.
    """
    check_sealed(project, texts=wanted.texts, replies=wanted.replies)
    # Diffs are stored beforehand, since the consistent read below cannot write.
    measured = Run.objects.filter(
        pk__in=_build_scope(project, runs, wanted).runs, diff_algorithm=ALGORITHM
    )
    for done in stored.store_missing(project, judged_revisions(measured.values("pk"))):
        tell("diffs made", done)
        subprocesses.send_heartbeat()
    with (
        snapshot_reads.consistent_reads(),
        progress.with_progress_callback(lambda *_: subprocesses.send_heartbeat()),
        closing(ArchiveWriter(stream, alive=subprocesses.send_heartbeat)) as sealing,
    ):
        # Texts of an encrypted archive may have come while the diffs were made.
        check_sealed(project, texts=wanted.texts, replies=wanted.replies)
        scope = _build_scope(project, runs, wanted)
        for part in PARTS:
            tell(part.path, _write_part(part, scope, sealing))
        made = [name for name in tables.RESULT_TABLES if _write_figures(name, scope, sealing, tell)]
        charts = {}
        for name, spec in wanted.draw(project, runs):
            charts[name] = spec
            subprocesses.send_heartbeat()
        drawn = files.render_all([*charts.values()], "svg")
        for name, chart in zip(charts, drawn, strict=True):
            sealing.put(f"charts/{name}.svg", chart)
        _write_texts(scope, wanted, made, sealing)
        sealing.seal(_manifest_facts(scope, made))


def check_sealed(project: Project, *, texts: bool, replies: bool) -> None:
    """Raise FieldError if the archive would contain unencrypted texts of a sealed project."""
    if texts or replies:
        encrypted_archives.check_not_sealed(project, "Leave out texts and replies.", "texts")


def compute_rows(table: str, project: Project, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Compute a table as in an archive: grouped by ability and category if possible, with the names
    of the runs."""
    found = tables.RESULT_TABLES[table]
    return found.with_run_names(found.rows(project, runs, parse_fields(DEFAULT_BY)), runs)


def _build_scope(project: Project, runs: Sequence[Run], wanted: ArchiveOptions) -> ArchiveScope:
    """Return the scope of an archive of these runs. It also includes their explanation checks, and
    all runs that any of the included runs combine or check.
    """
    over = Run.sources.through.objects
    found = {run.pk for run in runs}
    checks = over.filter(to_run__in=found).select_related("from_run__strategy")
    found |= {
        one.from_run_id
        for one in checks
        if one.from_run.strategy.strategy().frame == EXPLANATION_FRAME
    }
    while more := set(over.filter(from_run__in=found).values_list("to_run", flat=True)) - found:
        found |= more
    # The project may have been sealed since it was read.
    is_sealed = Project.objects.filter(pk=project.pk, sealed=True).exists()
    pks = tuple(sorted(found))
    return ArchiveScope(project, tuple(runs), pks, wanted.texts, wanted.replies, is_sealed)


def _write_part(part: ArchivePart, scope: ArchiveScope, sealing: ArchiveWriter) -> int:
    """Write one JSON object per line, in the order in which the rows were created. If there are no
    rows, no file is written.
    """
    lines = _part_lines(part, scope)
    first = next(lines, None)
    if first is None:
        return 0
    count = 0
    with sealing.member(part.path) as member:
        for line in chain([first], lines):
            member.write(line + "\n")
            count += 1
    return count


def _part_lines(part: ArchivePart, scope: ArchiveScope) -> Iterator[str]:
    named = [list(lookup_paths(part.model, column)) for column in part.columns]
    masks = part.masked(scope)
    for values in _read_rows(part, scope, [*chain.from_iterable(named)]):
        row, place = {}, 0
        for column, names in zip(part.columns, named, strict=True):
            key = values[place : place + len(names)]
            value = key[0] if len(names) == 1 else _compact_key(key)
            place += len(names)
            row[column] = masks[column](scope, value) if column in masks else value
        yield json.dumps(row, ensure_ascii=False, sort_keys=True, default=_json_default)


def _read_rows(
    part: ArchivePart, scope: ArchiveScope, columns: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows by id, and few at a time if their texts or their JSON are long."""
    found, kinds = part.rows(scope).order_by("pk"), (models.TextField, models.JSONField)
    long = [name for name in part.columns if isinstance(part.model._meta.get_field(name), kinds)]
    if not long or not isinstance(part.model._meta.pk, models.AutoField):
        yield from found.values_list(*columns).iterator(chunk_size=AT_A_TIME)
        return
    for ids in bulky_id_batches(found, *long, size=AT_A_TIME):
        rows = part.model._default_manager.filter(pk__among=ids).order_by("pk")
        yield from rows.values_list(*columns)


def _compact_key(key: Sequence[Any]) -> list[Any] | None:
    """Return the key of a referenced row, or None if there is no reference."""
    return None if key[-1] is None else list(key)


def _json_default(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    raise TypeError(f"{type(value).__name__} cannot be written to an archive")


def _write_figures(
    name: str, scope: ArchiveScope, sealing: ArchiveWriter, tell: ProgressCallback
) -> bool:
    """Write a table as CSV and JSON; return True if it has rows."""
    if name in DATE_DEPENDENT_TABLES:
        return False
    subprocesses.send_heartbeat()
    found = compute_rows(name, scope.project, scope.chosen)
    named = tables.RESULT_TABLES[name].list_file_columns(parse_fields(DEFAULT_BY))
    for form in TABLE_FORMATS if found else ():
        with sealing.member(f"figures/{name}.{form}") as member:
            write_figures(form, name, found, named, cast(TextIO, member))
    tell(f"figures/{name}", len(found))
    return bool(found)


def _write_texts(
    scope: ArchiveScope, wanted: ArchiveOptions, made: Sequence[str], sealing: ArchiveWriter
) -> None:
    said = methods.write_methods(scope.project, scope.chosen)
    sealing.put("methods.txt", said.text)
    sealing.put("methods.tex", said.latex)
    context = {"scope": scope, "tables": made, "licence": wanted.licence}
    sealing.put("README.txt", render_to_string("judging/paper/readme.txt", context))
    if wanted.licence:
        sealing.put("LICENSE", wanted.licence)


def _manifest_facts(scope: ArchiveScope, made: Sequence[str]) -> dict[str, Any]:
    rest = Run.objects.filter(pk__in=scope.runs).exclude(pk__in=[run.pk for run in scope.chosen])
    return {
        "format": FORMAT,
        "version": VERSION,
        "project": scope.project.slug,
        "runs": sorted(run.number for run in scope.chosen),
        "rest_on": sorted(rest.values_list("number", flat=True)),
        "texts": scope.texts,
        "replies": scope.replies,
        "tables": list(made),
        "by": DEFAULT_BY,
        "currency": settings.CURRENCY,
        "program": versions.program_version(),
        "python": platform.python_version(),
        "libraries": versions.library_versions(),
        "methods": versions.method_versions(),
        "schema": versions.last_migrations(),
    }
