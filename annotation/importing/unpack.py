"""Parquet files that are sent, as JSON Lines: read by a program of its own, within limits."""

from pathlib import Path

from formats import unpacking
from formats.rows import DEFAULT_LIMITS

MAGIC = b"PAR1"
ENDING = ".jsonl"


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does, whatever it is called."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def rows_path(path: Path) -> Path:
    """Where the rows of a file lie while it is looked at."""
    return path.with_suffix(f".rows{ENDING}")


def unpack_rows(path: Path) -> Path:
    """Write the rows to a file beside it. Raises FormatError as
    `annotation.importing.unpack:unpack_rows`."""
    unpacking.unpack(path, rows_path(path), DEFAULT_LIMITS)
    return rows_path(path)
