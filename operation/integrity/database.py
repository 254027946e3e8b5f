"""Checks of jobs, archives, and of the database's own protections."""

from collections.abc import Iterator

from django.db import connection

from annotation.db import clock
from annotation.jobs.job_queue import MAX_LEASE_TIME
from annotation.models import Job
from formats.rows import FormatError
from formats.sealed import open_sealed
from judging.archive import jobs as archive_jobs
from judging.archive.load import LIMITS
from judging.results import change_counters
from operation.integrity.checks import Breach, Check, build_sql_check, stream_rows

# What the database itself refuses, by table: changes of the audit log and of complete snapshots.
_REFUSED_CHANGES = {
    "annotation_event": ("UPDATE", "DELETE"),
    "annotation_snapshot": ("UPDATE", "DELETE"),
    "annotation_frozen": ("UPDATE", "DELETE"),
    "annotation_frozenin": ("INSERT", "UPDATE", "DELETE"),
}


def find_long_leases() -> Iterator[Breach]:
    """Yield the running jobs whose lease ends later than any lease that a correct clock sets."""
    latest = (clock.now() + MAX_LEASE_TIME).timestamp()
    for job in Job.objects.filter(state=Job.State.RUNNING).select_related("project"):
        until = job.result.get("until")
        if until is not None and until > latest:
            yield {"project": job.project.slug, "job": f"{job.kind} {job.pk}", "until": until}


def find_changed_archives() -> Iterator[Breach]:
    """Yield the archives of results whose file is missing or does not have the digests of its
    manifest."""
    made = Job.objects.filter(kind=archive_jobs.KIND, state=Job.State.FINISHED)
    for job in made.select_related("project").order_by("pk"):
        path, problem = archive_jobs.get_path(job), ""
        try:
            if path.exists():
                with open_sealed(path, LIMITS):
                    pass
            else:
                problem = "the file is missing"
        except (FormatError, OSError) as error:
            problem = str(error)
        if problem:
            number = job.result.get("number")
            yield {"project": job.project.slug, "archive": number, "problem": problem}


def find_missing_triggers() -> Iterator[Breach]:
    """Yield the triggers that are not in the database or are disabled."""
    on_postgresql = connection.vendor == "postgresql"
    found = (
        "SELECT t.tgname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " WHERE t.tgenabled <> 'D' AND pg_table_is_visible(c.oid)"
        if on_postgresql
        else "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    )
    installed = {row["name"] for row in stream_rows(found)}
    required = {
        # On PostgreSQL, one trigger refuses both changes of an event.
        "annotation_event_kept"
        if table == "annotation_event" and on_postgresql
        else f"{table}_kept_{change.lower()}": table
        for table, changes in _REFUSED_CHANGES.items()
        for change in changes
    } | change_counters.list_triggers()
    for name, table in sorted(required.items()):
        if name not in installed:
            yield {"table": table, "trigger": name}


def find_broken_references() -> Iterator[Breach]:
    """Yield the rows of a SQLite database that refer to rows that do not exist. PostgreSQL checks
    references itself."""
    if connection.vendor == "sqlite":
        for row in stream_rows("PRAGMA foreign_key_check"):
            yield {"table": row["table"], "row": row["rowid"], "refers_to": row["parent"]}


CHECKS = (
    build_sql_check(
        "job-ends",
        "A job has an end if and only if it is finished, failed or cancelled.",
        "A worker would run the job again, or nobody would ever run it.",
        """
        SELECT p.slug AS project, j.kind, j.state, j.id AS job
        FROM annotation_job j JOIN annotation_project p ON p.id = j.project_id
        WHERE (j.finished_at IS NULL) <> (j.state IN ('waiting', 'running'))
        """,
    ),
    Check(
        "job-leases",
        "The lease of a running job ends soon, unless its worker extends it.",
        "A clock was ahead when the lease was set. Another worker takes the job over at once; "
        "synchronise the clocks with NTP.",
        find_long_leases,
    ),
    Check(
        "archives",
        "Every archive of results is there and has the digests of its manifest.",
        "The file was changed or deleted. Make the archive again.",
        find_changed_archives,
    ),
    Check(
        "triggers",
        "The database refuses changes of the audit log and of snapshots, and counts the changes "
        "that make figures outdated.",
        "The audit log could have been changed, or figures can be outdated. Run `migrate`; if the "
        "trigger is still missing, restore a backup.",
        find_missing_triggers,
    ),
    Check(
        "references",
        "Every row refers to rows that exist.",
        "The database file is damaged or was changed by hand. Restore a backup.",
        find_broken_references,
    ),
)
