"""What a command loads although it may not need it: that decides how long each takes to start."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import django, sys
django.setup()
import judging.tasks
print(*sorted({"aiohttp", "redis", "psycopg", "judging.results.figures"} & {*sys.modules}))
"""


def test_clients_and_figures_are_loaded_by_what_uses_them_alone() -> None:
    command = [sys.executable, "-c", PROGRAM]
    environment = {"DJANGO_SETTINGS_MODULE": "config.settings", "DEBUG": "1"}
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (said.stdout.strip(), said.returncode) == ("", 0), said.stderr
