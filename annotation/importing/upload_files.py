"""The paths of an import's files; their names do not depend on the names that the person used."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.importing.sources import Source
from annotation.models import Job
from formats import readers
from formats.rows import Row

# The next step of an import, in `result["step"]`.
CHOOSE, CHECK, READY, STORE = "choose", "check", "ready", "store"
PASSWORD_SUFFIX = ".password"  # noqa: S105


def list_suffixes() -> list[str]:
    """The suffixes of the files that can be uploaded."""
    return [*readers.list_suffixes(), ".zip"]


def uploads_folder() -> Path:
    """Return the folder of all import files; create it if necessary."""
    found: Path = settings.VAR_DIR / "imports"
    found.mkdir(parents=True, exist_ok=True)
    return found


def uploaded_path(job: Job) -> Path:
    """Return the path of the file as it was uploaded."""
    return _job_path(job, str(job.result["ending"]))


def problems_path(job: Job) -> Path:
    """Return the path of the table of all rejected rows, with place and reason."""
    return _job_path(job, ".problems.csv")


def rejected_rows_path(job: Job) -> Path:
    """Return the path of the rejected rows, which are unchanged."""
    return _job_path(job, f".mend{job.result['ending']}")


def shown_rows_path(job: Job) -> Path:
    """Return the path of the rows that people see as rejected or corrected, as they are in the
    file, under the names of item columns."""
    return _job_path(job, ".shown.json")


def load_shown_row(job: Job, file: str, line: int) -> Row | None:
    """Return a row of that file; None if it has none there."""
    path = shown_rows_path(job)
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    found = (Row(**one) for one in rows if (one["file"], one["line"]) == (file, line))
    return next(found, None)


def outcome_path(job: Job) -> Path:
    """Return the path of the outcome of the import process, until it is stored in the job."""
    return _job_path(job, ".outcome.json")


def password_path(job: Job) -> Path:
    """Return the path of the password of an archive. Only the file's owner can read it; it is
    deleted with the archive."""
    return _job_path(job, PASSWORD_SUFFIX)


def save_password(job: Job, written: str) -> None:
    """Store the password of the job's archive; only the owner of the file can read it."""
    path = password_path(job)
    path.touch(mode=0o600)
    path.write_text(written, encoding="utf-8")


def is_fixed(job: Job) -> bool:
    """True if the columns of the file have a fixed meaning, so that nobody chooses them."""
    return readers.FORMATS[job.result["form"]].is_fixed


def list_choosable(job: Job) -> list[str]:
    """Return the columns of the file from which people choose."""
    return [] if is_fixed(job) else job.result["found"]


def inner_name(job: Job, shown: str) -> str:
    """Return the name under which the rows of a file are read that people see under this name."""
    return shown if job.result["ending"] == ".zip" else uploaded_path(job).name


def list_corrections(job: Job) -> list[dict[str, Any]]:
    """The rows that were corrected on the page, each with its file, line and corrected values.
    Those that the last check has seen are `checked`."""
    found: list[dict[str, Any]] = job.result.get("corrections", [])
    return found


def build_source(job: Job) -> Source:
    """Return the source that this job reads."""
    kept, said = password_path(job), job.result
    columns = column_renames(said["columns"], said["found"])
    secret = kept.read_text(encoding="utf-8") if kept.exists() else ""
    meant = said.get("categories", {})
    corrected = {
        (inner_name(job, one["file"]), one["line"]): one["values"] for one in list_corrections(job)
    }
    path, accept = uploaded_path(job), said["accept"]
    return Source(path, said["form"], columns, secret, accept, meant, corrected)


def column_renames(chosen: dict[str, str], found: list[str]) -> dict[str, str]:
    """Map the item columns whose file column has another name to that name. An item column maps to
    "" if the file column of the same name must not be used for it."""
    return {
        name: column
        for name, column in chosen.items()
        if column != name and (column or name in found)
    }


def write_outcome(job: Job, said: dict[str, Any]) -> None:
    """Write the outcome, for the process that started this process."""
    outcome_path(job).write_text(json.dumps(said), encoding="utf-8")


def pop_outcome(job: Job) -> dict[str, Any]:
    """Read the outcome of the import process and delete it."""
    path = outcome_path(job)
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return said


def delete_files(job: Job) -> None:
    """Delete all files of the import."""
    for path in (
        uploaded_path(job),
        problems_path(job),
        rejected_rows_path(job),
        shown_rows_path(job),
        outcome_path(job),
        password_path(job),
    ):
        path.unlink(missing_ok=True)


def _job_path(job: Job, ending: str) -> Path:
    return uploads_folder() / f"import-{job.pk}{ending}"
