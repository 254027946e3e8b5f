"""A worker that needs no broker, as a process: it looks for due work until SIGTERM.

    python tests/services/one_worker.py [--jump SECONDS]

With `--jump` its own clock is set forward and back by so much, in turns of a second.
"""

import argparse
import os
import signal
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jump", type=float, default=0.0)
    options = parser.parse_args()
    import django

    django.setup()
    if options.jump:
        _let_jump(options.jump)
    from judging.bell import Bell

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    bell = Bell(every=0.2)
    bell.start()
    ended.wait()
    bell.stop()


def _let_jump(seconds: float) -> None:
    from django.utils import timezone

    true = timezone.now

    def jumped() -> datetime:
        return true() + timedelta(seconds=seconds if int(time.monotonic()) % 2 else -seconds)

    timezone.now = jumped


if __name__ == "__main__":
    main()
