"""`manage.py` as a process, whose output somebody may stop reading."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


# One writes more than a pipe holds, one less than Python's buffer.
@pytest.mark.parametrize("words", [["spectacular"], ["version"]])
def test_output_that_nobody_reads_to_its_end_ends_the_command_quietly(words: list[str]) -> None:
    """Six seconds for the description of the API, which a program of its own makes."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    complaints = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(), complaints) == (141, "")
