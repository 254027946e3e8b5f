"""Convert a Parquet file to JSON Lines in a separate process.

No file can make that process exceed its limits. If the process crashes, nothing else is affected.
"""

import resource
import subprocess
import sys
from pathlib import Path

from formats.rows import FormatError, Limits

MEMORY_LIMIT, TIME_LIMIT = 2 << 30, 60
EXIT_REFUSED = 3
# Works whatever directory the current process was started in.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from formats import unpacking;"
    " unpacking.main(*sys.argv[2:])"
)


def unpack(packed: Path, rows: Path, limits: Limits) -> None:
    """Write the rows of a Parquet file to another file as JSON Lines. Raises FormatError for a file
    that cannot be read within the limits of size, memory and time."""
    words = map(str, (Path(__file__).parents[1], packed, rows, limits.total_bytes))
    command = [sys.executable, "-c", _PROGRAM, *words]
    try:
        # An empty environment, since the process needs none of the secrets in the environment of
        # this one.
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
    """Write the rows of the first file to the second, which grows to at most `size` bytes. If the
    first file cannot be used, print why and exit with EXIT_REFUSED."""
    path, to, most = Path(packed), Path(rows), int(size)
    for what, limit in (("AS", MEMORY_LIMIT), ("CPU", TIME_LIMIT), ("FSIZE", most), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (limit, limit))
    # Imported after the limits are set, so that the limits apply to the import.
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
        f"{path.name}: is damaged, or too large to be read as Parquet. Write it again in smaller "
        "parts."
    )


def _refuse(words: str) -> None:
    sys.stderr.write(words + "\n")
    raise SystemExit(EXIT_REFUSED)
