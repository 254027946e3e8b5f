"""A Parquet file as JSON Lines, made by a program of its own, which no file can make take what it
likes, and whose end ends nothing else."""

import resource
import sys
from pathlib import Path

from formats.rows import FormatError, Limits

MEMORY, SECONDS = 2 << 30, 60
REFUSED = 3


def main(packed: str, rows: str, size: str) -> None:
    """Write the rows of one file to the other, which becomes no larger than `size`. Ends with
    REFUSED, after words that say why, if the file cannot be used."""
    path, to, most = Path(packed), Path(rows), int(size)
    for what, limit in (("AS", MEMORY), ("CPU", SECONDS), ("FSIZE", most), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (limit, limit))
    # Only within the limits.
    from formats import parquet

    try:
        with to.open("w", encoding="utf-8") as stream:
            stream.writelines(parquet.lines(path, Limits(total_bytes=most)))
    except OSError as error:
        _refuse(f"{path.name}: unpacks to more than {most:,} bytes ({error.strerror}). Split it.")
    except FormatError as error:
        _refuse(str(error))


def _refuse(words: str) -> None:
    sys.stderr.write(words + "\n")
    raise SystemExit(REFUSED)
