"""The import process: reads the whole file and reports the result of each row."""

import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import chain, islice
from typing import Any

from django.conf import settings

from annotation import importing, tasktypes
from annotation.db import transactions
from annotation.errors import Stale
from annotation.importing import sources, upload_files
from annotation.items import taxonomy
from annotation.jobs import subprocesses
from annotation.models import Job
from annotation.projects import encrypted_archives
from formats import bundles
from formats.readers import PICKABLE, pick_rows
from formats.rows import DEFAULT_LIMITS, BadRow, FormatError, Row
from formats.writers import write_csv

# Progress is stored after this many rows.
PROGRESS_EVERY = 1_000
# At most this many rejected rows are shown on the page; the table contains all rejected rows.
MAX_SHOWN = 100
# At most so many characters of these rows are kept, to correct them on the page.
MAX_KEPT_LENGTH = 20_000_000
# This many rows are named of those with the same problem.
FIRST_ROWS = 5
PROBLEM_COLUMNS = ("place", "problem", "file", "line", "field", "reason", "row", "key")
# The report also says whether the row could be read, and be corrected on the page.
IS_READ = "is_read"


def run_import(job: Job) -> None:
    """Check the file of a job or store its items, and write the outcome to a file.

    A file that cannot be read at all is refused before anything is stored.
    """
    source = upload_files.build_source(job)
    if source.password and job.result["step"] == upload_files.STORE:
        encrypted_archives.seal_project(job.project, job.member_id)
    task = tasktypes.load_version(job.project.task_type)
    known = taxonomy.load_taxonomy(job.project)
    try:
        drafts = importing.parse_items(sources.read_rows(source), task, known, accept=source.accept)
        report = importing.store_items(
            job.project,
            _count_rows(job, importing.read_in_subprocess(drafts)),
            accept=source.accept,
            dry_run=job.result["step"] == upload_files.CHECK,
            member=job.member,
        )
    except (FormatError, Stale) as error:
        upload_files.write_outcome(job, {"refused": restore_file_name(job, str(error))})
        return
    upload_files.write_outcome(job, {"refused": "", "report": _summarise(job, report)})


def restore_file_name(job: Job, told: str) -> str:
    """Replace the file's name in a message by the name that the person used."""
    path = upload_files.uploaded_path(job)
    return told.replace(str(path), job.result["name"]).replace(path.name, job.result["name"])


def _count_rows(job: Job, rows: Iterator[Any]) -> Iterator[Any]:
    for count, row in enumerate(rows):
        if count % PROGRESS_EVERY == 0:
            _report_progress(job, count)
        if count == settings.IMPORT_ROWS:
            name = job.result["name"]
            raise FormatError(f"{name}: has more than {count:,} rows. Split it.")
        yield row


def _report_progress(job: Job, count: int) -> None:
    with transactions.transact():
        Job.objects.filter(pk=job.pk, finished_at=None).update(done=count)
    subprocesses.send_heartbeat()


def _summarise(job: Job, report: importing.ItemImportReport) -> dict[str, Any]:
    """Return the counts, the first rejected rows and the first missing answers. All of them are
    also written to files."""
    told = [*islice(_problems(job, report), MAX_SHOWN)]
    subprocesses.send_heartbeat()
    if job.result["step"] == upload_files.CHECK:
        _write_shown_rows(job, told)
    with upload_files.problems_path(job).open("w", encoding="utf-8", newline="") as stream:
        every = chain(_problems(job, report), _missing(job, report))
        rows = ({name: row[name] for name in PROBLEM_COLUMNS} for row in every)
        write_csv(rows, PROBLEM_COLUMNS, stream)
    return {
        "rows": report.rows,
        "new": report.new,
        "equal": report.equal,
        "unchanged": report.unchanged,
        "alone": report.alone,
        "conflicts": len(report.conflicts),
        "bad": len(report.bad),
        "unknown": _unknown_categories(report),
        "problems": told,
        "groups": _group_problems(job, report),
        "off_scale": len(report.off_scale),
        "missing": [*islice(_missing(job, report), MAX_SHOWN)],
        "mend": bool(told) and _write_rows(job, [*report.bad, *report.conflicts]),
    }


def _unknown_categories(report: importing.ItemImportReport) -> list[dict[str, Any]]:
    """Return the words that are no category of the project, each with its number of rows, the most
    frequent first."""
    words = Counter(row.value for row in report.bad if row.field == "category" and row.value)
    return [{"word": word, "rows": rows} for word, rows in words.most_common(MAX_SHOWN)]


def _group_problems(job: Job, report: importing.ItemImportReport) -> list[dict[str, Any]]:
    """Return what is wrong with the rejected rows, each with its number of rows and the first of
    them, the most frequent first."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in _problems(job, report):
        groups[row["field"], row["reason"]].append({"row": row["row"], "key": row["key"]})
    often = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [
        {"field": field, "reason": reason, "rows": len(found), "first": found[:FIRST_ROWS]}
        for (field, reason), found in often[:MAX_SHOWN]
    ]


def _problems(job: Job, report: importing.ItemImportReport) -> Iterator[dict[str, Any]]:
    """Yield every rejected row, sorted by file and line, with the column names of the file. `place`
    is the number of the row in the file of rejected rows."""
    kinds = chain((("bad", row) for row in report.bad), (("changed", r) for r in report.conflicts))
    found = sorted(kinds, key=lambda pair: (pair[1].file, pair[1].line))
    spots: dict[tuple[str, int], int] = {}
    for kind, row in found:
        place = spots.setdefault((row.file, row.line), len(spots) + 1)
        yield _named(job, place, kind, row)


def _missing(job: Job, report: importing.ItemImportReport) -> Iterator[dict[str, Any]]:
    """Return every missing answer of the imported rows, which are not in the file of rejected
    rows."""
    return (_named(job, None, "missing", row) for row in report.off_scale)


def _named(job: Job, place: int | None, kind: str, row: BadRow) -> dict[str, Any]:
    """Describe a row, with the names that the person uses for the file and its columns."""
    file = _shown_name(job, row.file)
    field = job.result["columns"].get(row.field) or row.field
    shown = (place, kind, file, row.line, field, row.reason, row.row, row.key)
    return dict(zip((*PROBLEM_COLUMNS, IS_READ), (*shown, row.is_read), strict=True))


def _write_shown_rows(job: Job, told: list[dict[str, Any]]) -> None:
    """Keep the rejected rows that the page shows, and the corrected ones, so that they can be
    corrected there. Rows of an archive with a password are not kept, nor are those that are too
    long together: they are told as if they could not be read."""
    rejected = [row for row in told if row[IS_READ]]
    wanted = {
        (row["file"], row["line"]) for row in (*rejected, *upload_files.list_corrections(job))
    }
    source = replace(upload_files.build_source(job), corrections={})
    kept: list[str] = []
    left, long = MAX_KEPT_LENGTH, set[tuple[str, int]]()
    if wanted and not source.password:
        for row in sources.stream_rows(source):
            place = (_shown_name(job, row.file), row.line)
            if not (isinstance(row, Row) and place in wanted):
                continue
            written = json.dumps(asdict(row) | {"file": place[0]})
            if len(written) > left:
                long.add(place)
            else:
                kept.append(written)
                left -= len(written)
            if len(kept) + len(long) == len(wanted):
                break
    for one in rejected:
        one[IS_READ] = (one["file"], one["line"]) not in long
    path = upload_files.shown_rows_path(job)
    path.unlink(missing_ok=True)
    if kept:
        path.write_text(f"[{', '.join(kept)}]", encoding="utf-8")


def _shown_name(job: Job, file: str) -> str:
    """Return the name that the person uses for a file."""
    return job.result["name"] if file == upload_files.uploaded_path(job).name else file


def _write_rows(job: Job, rows: list[BadRow]) -> bool:
    """Write the rejected rows unchanged. Return False if they must not be stored unencrypted,
    because the source has a password, or if the format has no rows that can stand alone."""
    if upload_files.password_path(job).exists():
        return False
    starts: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        starts[row.file].add(row.line)
    subprocesses.send_heartbeat()
    path, form = upload_files.uploaded_path(job), job.result["form"]
    if upload_files.rejected_rows_path(job).suffix == ".zip":
        _write_archive(job, starts)
        return True
    form = "jsonl" if form == "realmistake" else form
    if form not in PICKABLE:
        return False
    # Excel takes a CSV file for UTF-8 only with this mark.
    encoding = "utf-8-sig" if form == "csv" else "utf-8"
    with upload_files.rejected_rows_path(job).open("w", encoding=encoding, newline="") as stream:
        stream.writelines(pick_rows(form, path, starts[path.name]))
    return True


def _write_archive(job: Job, starts: dict[str, set[int]]) -> None:
    with zipfile.ZipFile(
        upload_files.rejected_rows_path(job), "w", zipfile.ZIP_DEFLATED
    ) as archive:
        for name, lines in bundles.pick_rows(
            upload_files.uploaded_path(job), DEFAULT_LIMITS, starts
        ):
            subprocesses.send_heartbeat()
            with archive.open(name, "w", force_zip64=True) as stream:
                for line in lines:
                    stream.write(line.encode())
