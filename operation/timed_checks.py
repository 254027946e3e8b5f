"""Run checks in parallel with a time limit, even if one hangs."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from django.db import DatabaseError, connections

from operation.findings import Finding, declare_error

log = logging.getLogger(__name__)
# Time limit in seconds for all checks of one call together.
TIMEOUT_SECONDS = 3.0

NO_ANSWER = declare_error(
    "The database does not answer.",
    means="The check needs the database, so nothing is known of what it looks at.",
    remedy="See the `database` check.",
)
CHECK_FAILED = declare_error(
    "The check itself failed.",
    means="This is a fault of Blindspot, or a state that nobody expected. Nothing is known of what "
    "the check looks at.",
    remedy="See the log.",
)
TOO_SLOW = declare_error(
    "The check did not finish within {seconds:g} s.",
    means="A server hangs, or a network drops what is sent to it. Pages that ask it hang as well.",
    remedy="Check whether the server that it asks hangs.",
)
# What can happen to every check.
PROBLEMS = (NO_ANSWER, CHECK_FAILED, TOO_SLOW)

Checks = Mapping[str, Callable[[], Finding]]


class _RunningCheck:
    """Runs a check in its own thread with its own connection."""

    def __init__(self, name: str, check: Callable[[], Finding]) -> None:
        self.name, self.check = name, check
        self.finding: Finding | None = None
        self.thread = threading.Thread(target=self._run, name=f"check-{name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.finding = self.check()
        except DatabaseError:
            self.finding = NO_ANSWER.found()
        except Exception:
            log.exception("Checking %s failed.", self.name)
            self.finding = CHECK_FAILED.found()
        finally:
            connections.close_all()


_lock = threading.Lock()
# However many requests ask for a check that hangs, it has only one thread.
_running: dict[str, _RunningCheck] = {}


def run_checks(checks: Checks, *, seconds: float = TIMEOUT_SECONDS) -> dict[str, Finding]:
    """Run the checks and return the findings by check. A check that takes too long is reported as
    wrong."""
    until = time.monotonic() + seconds
    asked = {name: _start_check(name, check) for name, check in checks.items()}
    for each in asked.values():
        each.thread.join(max(0.0, until - time.monotonic()))
    late = TOO_SLOW.found(seconds=seconds)
    return {name: each.finding or late for name, each in asked.items()}


def _start_check(name: str, check: Callable[[], Finding]) -> _RunningCheck:
    with _lock:
        asked = _running.get(name)
        if asked is None or not asked.thread.is_alive():
            asked = _running[name] = _RunningCheck(name, check)
        return asked
