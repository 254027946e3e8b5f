"""Work that is done by a program of its own."""

import sys

import pytest

from annotation import programs

PRINTS = "import time; print('1\\n2', flush=True); time.sleep(60)"


def test_what_a_program_printed_last_is_told_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "TOLD_EVERY", 0)
    lines: list[str] = []
    ended = programs.run(
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
    ended = programs.run(command, stopped=bool, hold=int, every=60)
    assert ended == programs.Ended(3, "No space is left.")
