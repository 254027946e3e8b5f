"""Reproduce the figures of an archive, in a separate temporary database.

Commands that read the archive run in separate processes, so that this installation's database and
cache cannot influence the results.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from annotation.jobs.job_queue import manage_command
from formats import sealed
from judging.archive import load

# Environment variables with the location of this installation's data.
_OWN_SETTINGS = frozenset({"DATABASE_URL", "REDIS_URL", "SITE_URL", "SECRET_KEY", "VAR_DIR"})


class ReproductionFailed(Exception):
    """The figures of an archive cannot be reproduced; the message says why."""


@dataclass(frozen=True)
class LoadedArchive:
    """A loaded archive: its facts, the output of loading it, and the environment for commands."""

    facts: dict[str, Any]
    said: str
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """Run a command and return its output. Raises `ReproductionFailed` with the command's error
        message.
        """
        return _run_command(command, self.environment)


@contextmanager
def load_archive(archive: Path, *, compare: bool = False) -> Iterator[LoadedArchive]:
    """Load an archive into a temporary database; `compare` computes all its figures again.

    Raises FormatError for an archive that was changed since it was created.
    """
    with sealed.open_sealed(archive, load.LIMITS) as (facts, _):
        load.check_manifest(archive, facts)
    # Archives from before the site had a currency do not name one.
    amounts = {"CURRENCY": facts["currency"]} if "currency" in facts else {}
    with TemporaryDirectory(prefix="blindspot-") as folder:
        own = {"DATABASE_URL": f"sqlite:///{folder}/results.sqlite3", "VAR_DIR": folder}
        own |= {"PYTHONIOENCODING": "utf-8", **amounts}
        held = {name: value for name, value in os.environ.items() if name not in _OWN_SETTINGS}
        command = ["thaw_results", str(archive.resolve()), *(["--compare"] if compare else [])]
        yield LoadedArchive(facts, _run_command(command, held | own), held | own)


def _run_command(command: Sequence[str], environment: dict[str, str]) -> str:
    made = subprocess.run(manage_command(*command), env=environment, capture_output=True)
    # Do not translate line ends, since CSV has its own.
    printed = made.stdout.decode()
    if made.returncode:
        said = made.stderr.decode(errors="replace").strip().splitlines() or ["it was stopped"]
        raise ReproductionFailed("\n".join([*printed.splitlines(), said[-1]]))
    return printed
