"""Asks checks side by side and for a bounded time, also where what they look at hangs."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from django.db import DatabaseError, connections

from operation.findings import Finding, wrong

log = logging.getLogger(__name__)
# Seconds that all checks of one look may take together.
PATIENCE = 3.0

Checks = Mapping[str, Callable[[], Finding]]


class _Asked:
    """A check in a thread of its own, with a connection of its own."""

    def __init__(self, name: str, check: Callable[[], Finding]) -> None:
        self.name, self.check = name, check
        self.finding: Finding | None = None
        self.thread = threading.Thread(target=self._run, name=f"check-{name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.finding = self.check()
        except DatabaseError:
            self.finding = wrong("The database does not answer.", "See what is said of `database`.")
        except Exception:
            log.exception("Checking %s failed.", self.name)
            self.finding = wrong("The check itself failed.", "See the log.")
        finally:
            connections.close_all()


_turn = threading.Lock()
# What hangs is asked by one thread, however many people ask meanwhile.
_under_way: dict[str, _Asked] = {}


def ask(checks: Checks, *, seconds: float = PATIENCE) -> dict[str, Finding]:
    """What each check finds, by its name; one that takes longer than that is found wrong."""
    until = time.monotonic() + seconds
    asked = {name: _begin(name, check) for name, check in checks.items()}
    for each in asked.values():
        each.thread.join(max(0.0, until - time.monotonic()))
    return {name: each.finding or _hangs(seconds) for name, each in asked.items()}


def _begin(name: str, check: Callable[[], Finding]) -> _Asked:
    with _turn:
        asked = _under_way.get(name)
        if asked is None or not asked.thread.is_alive():
            asked = _under_way[name] = _Asked(name, check)
        return asked


def _hangs(seconds: float) -> Finding:
    return wrong(f"It did not answer within {seconds:g} s.", "See whether its server hangs.")
