"""Parquet files that are sent, as JSON Lines: read by a program of its own, within limits."""

import sys
import time
from pathlib import Path

from django.conf import settings

from annotation import programs
from formats.rows import DEFAULT_LIMITS, FormatError
from formats.unpacking import REFUSED, SECONDS

MAGIC = b"PAR1"
ENDING = ".jsonl"
# Wherever this one was started.
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from formats import unpacking;"
    " unpacking.main(*sys.argv[2:])"
)


def is_packed(path: Path) -> bool:
    """Whether a file begins as Parquet does, whatever it is called."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def beside(path: Path) -> Path:
    """Where the rows of a file lie while it is looked at."""
    return path.with_suffix(f".rows{ENDING}")


def unpack(path: Path) -> Path:
    """Write the rows to a file beside it. FormatError on what cannot be read within the limits of
    size, memory and time."""
    to, ends = beside(path), time.monotonic() + SECONDS
    words = map(str, (settings.BASE_DIR, path, to, DEFAULT_LIMITS.total_bytes))
    ended = programs.run(
        [sys.executable, "-c", PROGRAM, *words],
        stopped=lambda: time.monotonic() > ends,
        hold=lambda: None,
        every=SECONDS,
    )
    if ended.code == REFUSED:
        raise FormatError(ended.said)
    if ended.code != 0:
        raise FormatError(
            f"{path.name}: is damaged, or takes too much to be read as Parquet. Write it anew, in"
            " smaller parts."
        )
    return to
