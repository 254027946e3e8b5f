"""Workers that need no broker, as processes: they look for due work until SIGTERM.

    python tests/services/one_worker.py [--workers N] [--jump SECONDS | --ahead SECONDS]

Several workers come from one start-up, which is most of what a short-lived one costs; a signal
has to go to their process group. With `--jump` their own clock is set forward and back by so much,
in turns of a second, with `--ahead` it is wrong by so much all the time.
"""

import argparse
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--jump", type=float, default=0.0)
    parser.add_argument("--ahead", type=float, default=0.0)
    options = parser.parse_args()
    import django

    django.setup()
    # Before the fork, or each worker would import it all for itself.
    importlib.import_module("judging.jobs.worker")
    if options.jump:
        _set_clock(lambda: options.jump if int(time.monotonic()) % 2 else -options.jump)
    if options.ahead:
        _set_clock(lambda: options.ahead)
    for _ in range(options.workers - 1):
        if os.fork() == 0:
            break
    _work()


def _work() -> None:
    from judging.jobs.worker import WorkLoop

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    loop = WorkLoop(every=0.2)
    loop.start()
    ended.wait()
    loop.stop()


def _set_clock(wrong_by: Callable[[], float]) -> None:
    from django.utils import timezone

    true = timezone.now

    def wrong() -> datetime:
        return true() + timedelta(seconds=wrong_by())

    timezone.now = wrong


if __name__ == "__main__":
    main()
