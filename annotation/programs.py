"""Work that is done by a program of its own, so that it holds up nothing else in a worker."""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

LOOK_EVERY = 0.2


@dataclass(frozen=True)
class Ended:
    """How a program ended: its code, None if it was stopped, and the last line that it said."""

    code: int | None
    said: str


def run(
    command: Sequence[str], *, stopped: Callable[[], bool], hold: Callable[[], object], every: float
) -> Ended:
    """Run a program until it ends or is `stopped`, and `hold` what it works on every so many
    seconds. Whatever ends the waiting ends the program."""
    with TemporaryFile() as said:
        made = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        try:
            ended = _wait(made, stopped, hold, every)
        finally:
            made.kill()
            made.wait()
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    return Ended(made.returncode if ended else None, (lines or ["It was ended."])[-1][:500])


def _wait(
    made: "subprocess.Popen[bytes]",
    stopped: Callable[[], bool],
    hold: Callable[[], object],
    every: float,
) -> bool:
    """Until the program ends or is to be stopped; whether it ended."""
    held = time.monotonic()
    while made.poll() is None:
        if stopped():
            return False
        if time.monotonic() - held > every:
            hold()
            held = time.monotonic()
        time.sleep(LOOK_EVERY)
    return True
