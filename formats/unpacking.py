"""A Parquet file as JSON Lines, made by a program of its own, which no file can make take what it
likes, and whose end ends nothing else."""

import resource
import subprocess
import sys
from pathlib import Path

from formats.rows import FormatError, Limits

MEMORY_LIMIT, TIME_LIMIT = 2 << 30, 60
EXIT_REFUSED = 3
# Wherever this one was started.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from formats import unpacking;"
    " unpacking.main(*sys.argv[2:])"
)


def unpack(packed: Path, rows: Path, limits: Limits) -> None:
    """Write the rows of a file to the other. FormatError on what cannot be read within the limits
    of size, memory and time."""
    words = map(str, (Path(__file__).parents[1], packed, rows, limits.total_bytes))
    command = [sys.executable, "-c", _PROGRAM, *words]
    try:
        # It needs no secret that this one has in its environment.
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False, env={}
        )
    except subprocess.TimeoutExpired as error:
        raise _unreadable_error(packed) from error
    if ended.returncode == EXIT_REFUSED:
        raise FormatError(ended.stderr.strip())
    if ended.returncode != 0:
        raise _unreadable_error(packed)


def main(packed: str, rows: str, size: str) -> None:
    """Write the rows of one file to the other, which becomes no larger than `size`. Ends with
    REFUSED, after words that say why, if the file cannot be used."""
    path, to, most = Path(packed), Path(rows), int(size)
    for what, limit in (("AS", MEMORY_LIMIT), ("CPU", TIME_LIMIT), ("FSIZE", most), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (limit, limit))
    # Only within the limits.
    from formats import parquet

    try:
        with to.open("w", encoding="utf-8") as stream:
            stream.writelines(parquet.read_json_lines(path, Limits(total_bytes=most)))
    except OSError as error:
        _refuse(f"{path.name}: unpacks to more than {most:,} bytes ({error.strerror}). Split it.")
    except FormatError as error:
        _refuse(str(error))


def _unreadable_error(path: Path) -> FormatError:
    return FormatError(
        f"{path.name}: is damaged, or takes too much to be read as Parquet. Write it anew, in"
        " smaller parts."
    )


def _refuse(words: str) -> None:
    sys.stderr.write(words + "\n")
    raise SystemExit(EXIT_REFUSED)
