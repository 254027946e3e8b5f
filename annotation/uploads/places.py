"""Where the files of an import lie: under names of ours, whatever a person called theirs."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings

from annotation.importing.sources import Source
from annotation.models import Job
from formats.bundles import SUFFIXES

# What is asked of whoever works on an import next, in `result["step"]`.
CHOOSE, CHECK, READY, STORE = "choose", "check", "ready", "store"
PACKED = ".parquet"
UNLOCKS = ".password"
ENDINGS = (*SUFFIXES, PACKED, ".zip")


def folder() -> Path:
    """The folder of all of them, made if need be."""
    found: Path = settings.VAR_DIR / "imports"
    found.mkdir(parents=True, exist_ok=True)
    return found


def given(job: Job) -> Path:
    """The file as it was sent."""
    return _of(job, str(job.result["ending"]))


def problems(job: Job) -> Path:
    """A table of every row that was not taken, with its place and why."""
    return _of(job, ".problems.csv")


def mend(job: Job) -> Path:
    """The rows that were not taken, as they stood."""
    return _of(job, f".mend{job.result['ending']}")


def outcome(job: Job) -> Path:
    """What a program found out, until it is noted."""
    return _of(job, ".outcome.json")


def password(job: Job) -> Path:
    """The password of an archive, readable by the owner alone and kept no longer than it."""
    return _of(job, UNLOCKS)


def keep_password(job: Job, written: str) -> None:
    path = password(job)
    path.touch(mode=0o600)
    path.write_text(written, encoding="utf-8")


def source(job: Job) -> Source:
    """What is to be read, and how."""
    kept, said = password(job), job.result
    columns = renaming(said["columns"], said["found"])
    secret = kept.read_text(encoding="utf-8") if kept.exists() else ""
    return Source(given(job), said["form"], columns, secret, said["accept"])


def renaming(chosen: dict[str, str], found: list[str]) -> dict[str, str]:
    """The columns that are called otherwise than an item calls them; of one that is there and
    must not be taken, none."""
    return {
        name: column
        for name, column in chosen.items()
        if column != name and (column or name in found)
    }


def note(job: Job, said: dict[str, Any]) -> None:
    """Leave what was found out to whoever started the program."""
    outcome(job).write_text(json.dumps(said), encoding="utf-8")


def noted(job: Job) -> dict[str, Any]:
    """What the program found out, which is then forgotten."""
    path = outcome(job)
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return said


def forget(job: Job) -> None:
    """Delete every file of the import."""
    for path in (given(job), problems(job), mend(job), outcome(job), password(job)):
        path.unlink(missing_ok=True)


def _of(job: Job, ending: str) -> Path:
    return folder() / f"import-{job.pk}{ending}"
