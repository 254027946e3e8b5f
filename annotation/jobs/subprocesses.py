"""Run work in a subprocess, so that it does not block anything else in a worker."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

POLL_SECONDS = 0.2
REPORT_SECONDS = 1.0
# A program that writes nothing for this many seconds counts as hung; each of its steps is far
# shorter.
MAX_SILENT_SECONDS = 300.0
# For a program that failed without a word: what it says goes to the same disk.
STOPPED_MESSAGE = (
    "The program was stopped, perhaps because the disk is full or memory ran out. Try again. If it "
    "happens again, tell the site admin."
)
HANG_MESSAGE = (
    "The program made no progress for five minutes and was stopped. Try again. If it happens "
    "again, tell the site admin."
)
# For programs that were started by a worker, which reads their output: the worker's process id.
HEARTBEAT_VARIABLE = "BLINDSPOT_WORKER_HEARS"
# The last line of an output must fit in this size: a job prints its result as one line of JSON,
# including the first problems, which may be in any script.
TAIL_BYTES = 64_000


@dataclass(frozen=True)
class ProgramResult:
    """The end of a program: its exit code (None if it was stopped), and its last lines on stderr
    (`said`) and stdout (`printed`)."""

    code: int | None
    said: str
    printed: str = ""


def run_program(
    command: Sequence[str],
    *,
    stopped: Callable[[], bool],
    hold: Callable[[], object],
    every: float,
    told: Callable[[str], object] = str,
) -> ProgramResult:
    """Run a program until it ends or `stopped` returns true. `hold` is called every `every` seconds
    to extend the lease, and `told` every `REPORT_SECONDS` with the last printed line. The program
    is killed however the waiting ends, also after `MAX_SILENT_SECONDS` without output, which counts
    as a failure."""
    with TemporaryFile() as said, TemporaryFile() as printed:
        heard = os.environ | {HEARTBEAT_VARIABLE: str(os.getpid())}
        made = subprocess.Popen(command, stdout=printed, stderr=said, env=heard)
        regularly = [
            _PeriodicCall(every, hold),
            _PeriodicCall(REPORT_SECONDS, lambda: told(_last_line(printed))),
        ]
        try:
            ended = _wait_for_end(made, stopped, regularly, lambda: _size(said) + _size(printed))
        except _ProgramHangs:
            return ProgramResult(1, HANG_MESSAGE)
        finally:
            made.kill()
            made.wait()
        last = _last_line(said) or STOPPED_MESSAGE
        return ProgramResult(made.returncode if ended else None, last[:500], _last_line(printed))


def send_heartbeat() -> None:
    """Tell the worker that started this program that the program makes progress; without a worker,
    do nothing. Exit if the worker was killed, since another worker does the work again.

    Programs run by a worker call this after each step, and split work that takes longer than some
    seconds into steps.
    """
    worker = os.environ.get(HEARTBEAT_VARIABLE)
    if not worker:
        return
    if os.getppid() != int(worker) and multiprocessing.parent_process() is None:
        raise SystemExit("The worker that started this program has ended.")
    sys.stdout.write("\n")
    sys.stdout.flush()


class _ProgramHangs(Exception):
    """The program wrote nothing for `MAX_SILENT_SECONDS`."""


@dataclass
class _PeriodicCall:
    """Call `do` every `every` seconds, for the first time after `every` seconds."""

    every: float
    do: Callable[[], object]

    def __post_init__(self) -> None:
        self.done = time.monotonic()

    def look(self) -> None:
        if time.monotonic() - self.done > self.every:
            self.do()
            self.done = time.monotonic()


def _wait_for_end(
    made: "subprocess.Popen[bytes]",
    stopped: Callable[[], bool],
    regularly: Sequence[_PeriodicCall],
    written: Callable[[], int],
) -> bool:
    """Wait until the program ends or is stopped; return True if it ended.

    Raises `_ProgramHangs`.
    """
    heard, since = written(), time.monotonic()
    while made.poll() is None:
        if stopped():
            return False
        if written() > heard:
            heard, since = written(), time.monotonic()
        elif time.monotonic() - since > MAX_SILENT_SECONDS:
            raise _ProgramHangs
        for each in regularly:
            each.look()
        time.sleep(POLL_SECONDS)
    return True


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _last_line(file: IO[bytes]) -> str:
    # The program writes at the position of the file, so reading must not move this position.
    end = os.pread(file.fileno(), TAIL_BYTES, max(0, _size(file) - TAIL_BYTES))
    lines = end.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
