"""What is loaded without a chart being drawn."""

import subprocess
import sys

LOADED = "import sys, charts, charts.axes, charts.files; print('altair' in sys.modules)"
DRAWING = "import charts.marks; from altair.utils import schemapi; print(schemapi.DEBUG_MODE)"


def said(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_altair_is_loaded_by_what_draws_alone() -> None:
    assert said(LOADED) == "False"


def test_charts_are_not_checked_against_the_schema_outside_tests() -> None:
    assert said(DRAWING) == "False"
