"""Work that is done by a program of its own, so that it holds up nothing else in a worker."""

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
# Seconds after which a program that tells nothing hangs: far longer than any of its steps takes.
MAX_SILENT_SECONDS = 300.0
HANG_MESSAGE = (
    "It made no progress for five minutes and was stopped. Try again. If it happens again, tell "
    "the site admin."
)
# Set for programs that a worker started, which hears what they tell.
HEARTBEAT_VARIABLE = "BLINDSPOT_WORKER_HEARS"
# In which the last line that is said ends, and most begin: what a job tells as JSON, with the first
# problems in whatever script, has to be whole.
TAIL_BYTES = 64_000


@dataclass(frozen=True)
class ProgramResult:
    """How a program ended: its code, None if it was stopped, and the last line that it said of
    what went wrong, and that it printed."""

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
    """Run a program until it ends or is `stopped`, and `hold` what it works on every so many
    seconds; often enough for who looks on, the last line that it printed is `told`. Whatever ends
    the waiting ends the program; so does SILENT seconds in which it wrote nothing at all."""
    with TemporaryFile() as said, TemporaryFile() as printed:
        heard = os.environ | {HEARTBEAT_VARIABLE: "1"}
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
        last = _last_line(said) or "It was ended."
        return ProgramResult(made.returncode if ended else None, last[:500], _last_line(printed))


def send_heartbeat() -> None:
    """Tell the worker that started this program that it gets on; nothing where there is none.

    Whatever a worker has done by a program calls this after each step: all that takes longer than
    some seconds is done in steps.
    """
    if os.environ.get(HEARTBEAT_VARIABLE):
        sys.stdout.write("\n")
        sys.stdout.flush()


class _ProgramHangs(Exception):
    """The program told nothing for SILENT seconds."""


@dataclass
class _PeriodicCall:
    """What is done every so many seconds, not at once."""

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
    """Until the program ends or is to be stopped; whether it ended. `_ProgramHangs` if it hangs."""
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
    # The program writes where the file's own place is: reading must not move it.
    end = os.pread(file.fileno(), TAIL_BYTES, max(0, _size(file) - TAIL_BYTES))
    lines = end.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
