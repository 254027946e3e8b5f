"""What a benchmark prints, and what it reads of a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def figures_of(*words: str) -> Iterator[dict[str, Any]]:
    """Run a module with these arguments in its own process, and yield the figures that it prints,
    one JSON object per line. Each database needs its own Django process.
    """
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)
        finally:
            process.terminate()
    if process.returncode:
        raise SystemExit(process.returncode)


def limit_line(fine: bool, what: str) -> str:
    """Say whether a limit is kept."""
    return f"{'ok' if fine else 'MISSED'} {what}"
