"""Run checks in parallel with a time limit, even if one hangs."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from django.db import DatabaseError, connections

from operation.findings import Finding, report_error

log = logging.getLogger(__name__)
# Time limit in seconds for all checks of one call together.
TIMEOUT_SECONDS = 3.0

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
            self.finding = report_error(
                "The database does not answer.", "See the `database` check."
            )
        except Exception:
            log.exception("Checking %s failed.", self.name)
            self.finding = report_error("The check itself failed.", "See the log.")
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
    return {name: each.finding or _timeout_finding(seconds) for name, each in asked.items()}


def _start_check(name: str, check: Callable[[], Finding]) -> _RunningCheck:
    with _lock:
        asked = _running.get(name)
        if asked is None or not asked.thread.is_alive():
            asked = _running[name] = _RunningCheck(name, check)
        return asked


def _timeout_finding(seconds: float) -> Finding:
    return report_error(
        f"The check did not finish within {seconds:g} s.",
        "Check whether the server that it asks hangs.",
    )
