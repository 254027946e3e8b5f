"""Checks are asked for a bounded time."""

import threading
import time

from django.db import OperationalError

from operation import timed_checks
from operation.findings import Finding, Grade, report_ok


def well() -> Finding:
    return report_ok("It is.")


def test_a_check_that_hangs_is_wrong_in_time_and_holds_up_no_other() -> None:
    freed = threading.Event()

    def hangs() -> Finding:
        freed.wait(20)
        return report_ok("At last.")

    begun = time.monotonic()
    found = timed_checks.run_checks({"hangs": hangs, "well": well}, seconds=0.2)
    assert time.monotonic() - begun < 5
    assert [one.grade for one in found.values()] == [Grade.WRONG, Grade.FINE]
    assert found["hangs"].says == "The check did not finish within 0.2 s."
    freed.set()


def test_what_hangs_is_asked_by_one_thread_however_often() -> None:
    freed, begun = threading.Event(), []

    def hangs() -> Finding:
        begun.append(1)
        freed.wait(20)
        return report_ok("At last.")

    for _ in range(3):
        timed_checks.run_checks({"once": hangs}, seconds=0.05)
    assert len(begun) == 1
    freed.set()


def test_a_check_that_fails_says_nothing_that_an_error_holds() -> None:
    def refused() -> Finding:
        raise OperationalError("password=hunter2 at db.internal")

    def broken() -> Finding:
        raise RuntimeError("token=hunter2")

    found = timed_checks.run_checks({"refused": refused, "broken": broken})
    assert all(one.grade == Grade.WRONG for one in found.values())
    assert "hunter2" not in str(found)
    assert found["refused"].says == "The database does not answer."
