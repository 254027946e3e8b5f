"""Parquet files that are sent, as JSON Lines: read by a program of its own, within limits."""

from pathlib import Path

from formats import unpacking
from formats.rows import DEFAULT_LIMITS

MAGIC = b"PAR1"
ENDING = ".jsonl"


def is_packed(path: Path) -> bool:
    """Whether a file begins as Parquet does, whatever it is called."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def beside(path: Path) -> Path:
    """Where the rows of a file lie while it is looked at."""
    return path.with_suffix(f".rows{ENDING}")


def unpack(path: Path) -> Path:
    """Write the rows to a file beside it. Raises FormatError as `formats.unpacking.unpack`."""
    unpacking.unpack(path, beside(path), DEFAULT_LIMITS)
    return beside(path)
