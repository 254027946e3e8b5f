"""Work that is done by a program of its own."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from annotation.jobs import subprocesses

SleepAs = Callable[[Callable[[float], float]], list[float]]
# Says a line for each that it is given, and hands it back.
ANSWERS = """
import sys
given, back, where = open(sys.argv[1]), open(sys.argv[2], "w"), getattr(sys, sys.argv[3])
for line in given:
    print(line, file=where, flush=True)
    print(line, file=back, flush=True)
"""
PRINTS = "import time; print('1\\n2', flush=True); time.sleep(60)"


def test_what_a_program_printed_last_is_told_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocesses, "REPORT_SECONDS", 0)
    lines: list[str] = []
    ended = subprocesses.run_program(
        [sys.executable, "-c", PRINTS],
        stopped=lambda: "2" in lines,
        hold=int,
        every=60,
        told=lines.append,
    )
    assert (ended.code, lines[-1]) == (None, "2")


def test_the_last_line_of_what_went_wrong_is_kept() -> None:
    fails = "import sys; sys.stderr.write('first\\nNo space is left.\\n'); sys.exit(3)"
    command = [sys.executable, "-c", fails]
    ended = subprocesses.run_program(command, stopped=bool, hold=int, every=60)
    assert ended == subprocesses.ProgramResult(3, "No space is left.")


def test_a_program_that_fails_without_a_word_may_have_met_a_full_disk() -> None:
    killed = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    ended = subprocesses.run_program(killed, stopped=bool, hold=int, every=60)
    assert ended.code == -9
    assert "perhaps because the disk is full or memory ran out. Try again." in ended.said


@pytest.fixture
def sleep_as(monkeypatch: pytest.MonkeyPatch) -> SleepAs:
    """A clock that goes on only while one sleeps, which is done as a test says."""
    now = [0.0]

    def sleep_as(sleep: Callable[[float], float]) -> list[float]:
        def slept(seconds: float) -> None:
            now[0] += sleep(seconds)

        clock = SimpleNamespace(monotonic=lambda: now[0], sleep=slept)
        monkeypatch.setattr(subprocesses, "time", clock)
        return now

    return sleep_as


def test_a_program_that_tells_nothing_for_five_minutes_is_ended_and_the_job_says_so(
    sleep_as: SleepAs,
) -> None:
    now = sleep_as(lambda seconds: seconds)
    ended = subprocesses.run_program(["/bin/sleep", "20"], stopped=bool, hold=int, every=60)
    assert ended.code == 1
    assert "made no progress for five minutes and was stopped" in ended.said
    assert now == [pytest.approx(300, abs=2 * subprocesses.POLL_SECONDS)]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_program_that_tells_something_now_and_then_takes_as_long_as_it_needs(
    sleep_as: SleepAs, tmp_path: Path, stream: str
) -> None:
    given, back = tmp_path / "given", tmp_path / "back"
    os.mkfifo(given)
    os.mkfifo(back)
    pipes: list[IO[str]] = []
    left = ["a", "b", "c", "d"]

    def sleep(seconds: float) -> float:
        """Four minutes until the program says the next line; no time while it ends."""
        if not pipes:
            pipes.extend((given.open("w"), back.open()))
        if not left:
            pipes[0].close()
            return 0
        print(left.pop(), file=pipes[0], flush=True)
        assert pipes[1].readline()
        return 240

    now = sleep_as(sleep)
    command = [sys.executable, "-c", ANSWERS, str(given), str(back), stream]
    assert subprocesses.run_program(command, stopped=bool, hold=int, every=10_000).code == 0
    assert now == [960]


def test_programs_tell_the_worker_that_started_them_that_they_get_on_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocesses.send_heartbeat()
    assert capsys.readouterr().out == ""
    says = [
        sys.executable,
        "-c",
        f"import os; print(os.environ[{subprocesses.HEARTBEAT_VARIABLE!r}])",
    ]
    ended = subprocesses.run_program(says, stopped=bool, hold=int, every=60)
    assert (ended.code, ended.printed) == (0, str(os.getpid()))
    monkeypatch.setenv(subprocesses.HEARTBEAT_VARIABLE, str(os.getppid()))
    subprocesses.send_heartbeat()
    assert capsys.readouterr().out == "\n"


def test_a_program_ends_if_the_worker_that_started_it_was_killed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(subprocesses.HEARTBEAT_VARIABLE, str(os.getpid()))
    with pytest.raises(SystemExit, match="worker that started this program has ended"):
        subprocesses.send_heartbeat()
    assert capsys.readouterr().out == ""
