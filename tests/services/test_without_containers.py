"""What docs/operation.md says under *Without containers*, done line by line as a stranger would."""

import hashlib
import os
import pty
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import databases
from tests.services.processes import free_port
from tests.services.visitor import Visitor

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operation.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Without containers\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
# The first prepares the machine: packages, a user and a database.
_, INSTALL, STAY_UP, CHECK = (text for kind, text in BLOCKS if kind == "sh")
SETTINGS, UNIT = (text for kind, text in BLOCKS if kind == "ini")
SETTINGS_FILE = "/etc/blindspot.env"
# A test has neither an address to clone from nor minutes for an environment.
MADE_BY_THE_TEST = ("git clone ADDRESS app\n", "make setup\n")
PASSWORD = secrets.token_urlsafe(20)
ANSWERS = {
    "Username": "admin",
    "Email address": "admin@blindspot.example",
    "Password:": PASSWORD,
    "Password (again):": PASSWORD,
}
# Seconds that a process may take to stop, as long as systemd waits.
STOP = int(dict(line.split("=", 1) for line in UNIT.split() if "=" in line)["TimeoutStopSec"])


@dataclass
class Machine:
    """A home with a checkout in `app`, its settings in a file, and a free port."""

    home: Path
    settings: Path
    port: int

    def here(self, commands: str) -> list[str]:
        """These lines of the page, for a shell that stops at the first error."""
        for line in MADE_BY_THE_TEST:
            commands = commands.replace(line, "")
        commands = commands.replace(SETTINGS_FILE, str(self.settings))
        commands = commands.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
        return ["bash", "-euo", "pipefail", "-c", commands]

    def with_settings(self, commands: str) -> list[str]:
        return self.here(f"set -a; . {SETTINGS_FILE}; set +a\n{commands}")


@pytest.fixture
def machine(postgres_server: str, redis_url: str, tmp_path: Path) -> Iterator[Machine]:
    """A copy of the tracked files, and an empty database. What is kept in Redis has a prefix that
    depends on the name of the database."""
    name = f"blindspot_bare_{os.getpid()}"
    given = dict(line.split("=", 1) for line in SETTINGS.splitlines()) | {
        "SECRET_KEY": secrets.token_urlsafe(50),
        "DATABASE_URL": databases.make_postgresql(postgres_server, name),
        "REDIS_URL": redis_url,
        "VAR_DIR": str(tmp_path / "var"),
    }
    settings = tmp_path / "blindspot.env"
    lines = [f"{variable}={shlex.quote(value)}\n" for variable, value in given.items()]
    settings.write_text("".join(lines), encoding="utf-8")
    check_out(tmp_path / "app")
    yield Machine(tmp_path, settings, free_port())
    databases.drop_postgresql(postgres_server, name)


def check_out(target: Path) -> None:
    listed = ["git", "ls-files", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    (target / ".venv").symlink_to(sys.prefix)


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes, each with a group of its own, of which nothing is left in the end."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.processes
def test_the_commands_make_an_installation_that_can_be_used_and_stopped(
    machine: Machine, started: list[subprocess.Popen[bytes]]
) -> None:
    """Some twenty seconds, half of them for the tables: commands run in a fresh checkout one after
    the other, then a web server and a worker start. The environment is the one of the tests, since
    `make setup` takes a minute."""
    assert all(line in INSTALL for line in MADE_BY_THE_TEST)
    type_at_a_terminal(machine.here(INSTALL), machine.home, ANSWERS)
    with (machine.home / "log.txt").open("ab") as log:
        for command in STAY_UP.splitlines():
            words = machine.with_settings(f"exec {command}")
            place = {"cwd": machine.home / "app", "env": nothing_inherited()}
            one = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, **place)
            started.append(one)
    visitor = Visitor(machine.port)
    wait_until_ready(visitor, machine, started)
    assert visitor.get("/healthz") == (200, "ok\n")
    look_at_the_sign_in_page(visitor)
    assert visitor.post("/accounts/login/", login="admin", password=PASSWORD)[0] == 302
    assert visitor.get("/")[0] == 200
    said = subprocess.run(
        machine.with_settings(CHECK),
        cwd=machine.home / "app",
        env=nothing_inherited(),
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    stop(started)


def nothing_inherited() -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def type_at_a_terminal(command: list[str], folder: Path, answers: dict[str, str]) -> None:
    """Run a command that asks, and type each answer once its question is on the screen."""
    keyboard, terminal = pty.openpty()
    ends = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
    process = subprocess.Popen(command, cwd=folder, env=nothing_inherited(), **ends)
    os.close(terminal)
    asked, screen, seen = list(answers), "", 0
    # Reading fails once the last process that had the terminal is gone.
    with suppress(OSError):
        while read := os.read(keyboard, 4096):
            screen += read.decode("utf-8", "replace")
            if asked and asked[0] in screen[seen:]:
                os.write(keyboard, f"{answers[asked.pop(0)]}\n".encode())
                seen = len(screen)
    os.close(keyboard)
    assert process.wait() == 0, screen
    assert asked == [], screen
    assert PASSWORD not in screen


def wait_until_ready(
    visitor: Visitor, machine: Machine, started: list[subprocess.Popen[bytes]]
) -> None:
    """With a worker that works: `/readyz` says all of it."""
    deadline, text = time.monotonic() + 90, ""
    while True:
        with suppress(OSError):
            status, text = visitor.get("/readyz")
            if status == 200:
                return
        log = (machine.home / "log.txt").read_text("utf-8", "replace")
        assert [process.poll() for process in started] == [None, None], log
        assert time.monotonic() < deadline, text + log
        time.sleep(0.1)


def look_at_the_sign_in_page(visitor: Visitor) -> None:
    """Its style sheets and scripts are served under names that have the digest of their content."""
    status, page = visitor.get("/accounts/login/")
    assert status == 200
    found = re.findall(r'(?:href|src)="(/static/[^"]+\.(?:css|js))"', page)
    assert "css" in {path.rpartition(".")[2] for path in found}
    for path in found:
        status, text = visitor.get(path)
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        assert (status, path.split(".")[-2]) == (200, digest[:12]), path


def stop(started: list[subprocess.Popen[bytes]]) -> None:
    """Each by its own process id, as systemd does; nothing that it started is left behind."""
    for process in started:
        process.terminate()
    deadline = time.monotonic() + STOP
    codes = [process.wait(max(0.1, deadline - time.monotonic())) for process in started]
    assert codes == [0, 0]
    while any(map(is_left, started)):
        assert time.monotonic() < deadline, "what they started goes on"
        time.sleep(0.1)


def is_left(process: subprocess.Popen[bytes]) -> bool:
    """Whether anything of its group still runs."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 0)
        return True
    return False
