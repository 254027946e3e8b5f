"""Figures of an archive, made in a database of their own that is gone when they are there.

Programs that read an archive are processes of their own, so that neither the project's database nor
what is kept in its cache can have a part in what they say.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings

from formats import sealed
from judging.archive import load

# What says where this installation keeps what it knows.
_OWN_SETTINGS = frozenset({"DATABASE_URL", "REDIS_URL", "SITE_URL", "SECRET_KEY", "VAR_DIR"})


class ReproductionFailed(Exception):
    """An archive of which no figures can be made; the message says why."""


@dataclass(frozen=True)
class LoadedArchive:
    """An archive that was loaded, what was said of it, and how commands are run over it."""

    facts: dict[str, Any]
    said: str
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """What a command prints there. Raises `NotThawed` with what it says if it fails."""
        return _run_command(command, self.environment)


@contextmanager
def load_archive(archive: Path, *, compare: bool = False) -> Iterator[LoadedArchive]:
    """An archive in a database of its own; `compare` has all its figures made anew.

    Raises FormatError for one that was changed since it was made.
    """
    with sealed.open_sealed(archive, load.LIMITS) as (facts, _):
        load.check_manifest(archive, facts)
    with TemporaryDirectory(prefix="blindspot-") as folder:
        own = {"DATABASE_URL": f"sqlite:///{folder}/results.sqlite3", "VAR_DIR": folder}
        own["PYTHONIOENCODING"] = "utf-8"
        held = {name: value for name, value in os.environ.items() if name not in _OWN_SETTINGS}
        command = ["thaw_results", str(archive.resolve()), *(["--compare"] if compare else [])]
        yield LoadedArchive(facts, _run_command(command, held | own), held | own)


def _run_command(command: Sequence[str], environment: dict[str, str]) -> str:
    whole = [sys.executable, str(settings.BASE_DIR / "manage.py"), *command]
    made = subprocess.run(whole, env=environment, capture_output=True)
    # As it was printed: CSV has line ends of its own.
    printed = made.stdout.decode()
    if made.returncode:
        said = made.stderr.decode(errors="replace").strip().splitlines() or ["it was stopped"]
        raise ReproductionFailed("\n".join([*printed.splitlines(), said[-1]]))
    return printed
