"""What must hold on every database is run on PostgreSQL too, whatever the other tests run on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.processes
def test_what_must_hold_on_every_database_holds_on_postgresql(postgres: str) -> None:
    environment = {**os.environ, "DATABASE_URL": postgres, "SECRET_KEY": "x" * 50}
    marked = [sys.executable, "-m", "pytest", "-q", "-m", "databases or postgresql"]
    run = subprocess.run(marked, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
