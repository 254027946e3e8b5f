"""Convert a file that is hard to read (Parquet, Excel, a JSON list) to CSV or JSON Lines, in a
separate process.

No file can make that process exceed its limits. If the process crashes, nothing else is affected.
"""

import fcntl
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from typing import IO

from formats.rows import FormatError, Limits

MEMORY_LIMIT, TIME_LIMIT = 2 << 30, 60
MOST_AT_ONCE = 2
EXIT_REFUSED = 3
# The module that converts files with each suffix, and the suffix of what it makes of them. Its
# function `convert` yields the parts of the new file, and may add a note on what it did not read.
CONVERTERS = {
    ".parquet": ("parquet", ".jsonl"),
    ".xlsx": ("spreadsheet", ".csv"),
    ".json": ("json_array", ".jsonl"),
}
_PARQUET_MAGIC = b"PAR1"
# Works whatever directory the current process was started in.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from formats import unpacking;"
    " unpacking.main(*sys.argv[2:])"
)


def find_kind(path: Path) -> str:
    """Return the suffix in `CONVERTERS` that stands for the file; "" if it is read as it is. A
    Parquet file is known by its beginning, whatever its name is."""
    with path.open("rb") as stream:
        if stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            return ".parquet"
    suffix = path.suffix.lower()
    return suffix if suffix in CONVERTERS else ""


def unpack(packed: Path, kind: str, rows: Path, limits: Limits) -> str:
    """Convert a file of this kind, and write the result to another file. Return a note on what was
    not read; "" if everything was.

    At most `MOST_AT_ONCE` files are converted at a time, by all processes that share a folder for
    temporary files; the others wait. Raises FormatError for a file that cannot be read within the
    limits of size, memory and time.
    """
    most = limits.most_unpacked(packed.stat().st_size)
    words = map(str, (Path(__file__).parents[1], packed, kind, rows, most))
    command = [sys.executable, "-c", _PROGRAM, *words]
    try:
        # An empty environment, since the process needs none of the secrets in the environment of
        # this one.
        with _turn(packed):
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False, env={}
            )
    except subprocess.TimeoutExpired as error:
        raise _unreadable_error(packed) from error
    if ended.returncode == EXIT_REFUSED:
        raise FormatError(ended.stderr.strip())
    if ended.returncode != 0:
        raise _unreadable_error(packed)
    return ended.stdout.strip()


@contextmanager
def _turn(packed: Path) -> Iterator[None]:
    """Wait until fewer than `MOST_AT_ONCE` processes hold a turn, and hold one meanwhile. Whatever
    ends a process gives its turn back."""
    folder, until = Path(gettempdir()), time.monotonic() + TIME_LIMIT
    with ExitStack() as stack:
        names = [f"unpacking-{number}.lock" for number in range(MOST_AT_ONCE)]
        turns = [stack.enter_context((folder / name).open("a")) for name in names]
        while not any(_take(turn) for turn in turns):
            if time.monotonic() > until:
                raise FormatError(
                    f"{packed.name}: other large files are being read. Try again in a minute."
                )
            time.sleep(0.1)
        yield


def _take(turn: IO[str]) -> bool:
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unpack_whole(packed: Path, kind: str, rows: Path, limits: Limits, name: str) -> None:
    """Convert a file as `unpack` does, where nobody would see a note. Raises FormatError also if
    a part of the file, which has this `name`, would not be read."""
    if note := unpack(packed, kind, rows, limits):
        raise FormatError(f"{name}: has more than one sheet. {note} Or delete the other sheets.")


def main(packed: str, kind: str, rows: str, size: str) -> None:
    """Convert the first file and write the result to the second, which grows to at most `size`
    bytes. If the first file cannot be used, print why and exit with EXIT_REFUSED."""
    path, to, most = Path(packed), Path(rows), int(size)
    for what, limit in (("AS", MEMORY_LIMIT), ("CPU", TIME_LIMIT), ("FSIZE", most), ("CORE", 0)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (limit, limit))
    # Imported after the limits are set, so that the limits apply to the import.
    module, _ = CONVERTERS[kind]
    convert = import_module(f"formats.{module}").convert
    try:
        with to.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(convert(path, Limits(total_bytes=most), print))
    except OSError as error:
        _refuse(f"{path.name}: unpacks to more than {most:,} bytes ({error.strerror}). Split it.")
    except FormatError as error:
        _refuse(str(error))


def _unreadable_error(path: Path) -> FormatError:
    return FormatError(
        f"{path.name}: is damaged, or too large to be read. Save it again, in smaller parts if it "
        "is large."
    )


def _refuse(words: str) -> None:
    sys.stderr.write(words + "\n")
    raise SystemExit(EXIT_REFUSED)
