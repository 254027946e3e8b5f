"""An installation under trial: a scratch folder, a database, its processes, and what is in it."""

import http.client
import json
import os
import random
import secrets
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from benchmarks.soak import processes
from benchmarks.soak.processes import ROOT, Missing, Postgres, Supervised, wait_for
from benchmarks.workbench.scratch import free_port

EVALUATOR = ROOT / "tests" / "services" / "scripted_evaluator.py"
# 20 to 200 ms a reply; 5 % errors, 2 % broken replies, 0.4 % that never end, 0.4 % cut.
EVALUATOR_OPTIONS = (
    "--latency", "0.02", "--spread", "0.18", "--fault", "server_error=0.05",
    "--fault", "broken_json=0.02", "--fault", "hang=0.004", "--fault", "cut=0.004",
)  # fmt: skip
DISK_BYTES = "96m"
WORDS = ["river", "stone", "lamp", "harbour", "clerk", "orchard", "window", "copper", "margin"]
# Tries of a step of the upgrade, since a fault may end it.
MOST_TRIES = 20
CATEGORIES = ("grammar", "spelling", "number-errors", "incorrect-fact")


class Installation:
    """The processes of docker-compose.yml on PostgreSQL, or `manage.py serve` on SQLite."""

    def __init__(self, kind: str, folder: Path, upgrade_from: str = "") -> None:
        self.kind, self.folder, self.upgrade_from = kind, folder, upgrade_from
        # The code that all processes run.
        self.code = ROOT
        self.port, self.redis_port = free_port(), free_port()
        self.var = folder / "var"
        self.processes: dict[str, Supervised] = {}
        self.postgres: Postgres | None = None
        self.untried: list[str] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._prepare()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _prepare(self) -> None:
        (self.var / "exports").mkdir(parents=True)
        (self.folder / "metrics").mkdir()
        given = {
            "VAR_DIR": str(self.var),
            "EVALUATOR_HOSTS": "127.0.0.1",
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "API_PER_MINUTE": "1000000000",
        }
        if self.kind == "postgresql":
            self.postgres = Postgres(self.folder)
            self._stack.callback(self.postgres.close)
            self.postgres.wait_until_ready()
            given |= {
                "DATABASE_URL": self.postgres.address("soak"),
                "REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
                "SECRET_KEY": secrets.token_urlsafe(50),
                "ALLOWED_HOSTS": "127.0.0.1",
                "PROMETHEUS_MULTIPROC_DIR": str(self.folder / "metrics"),
            }
        else:
            # As for someone who tries it: the database is in the folder of data.
            given["DATABASE_URL"] = f"sqlite:///{self.var / 'blindspot.sqlite3'}"
        for name in ("SITE_URL", "DEBUG", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS"):
            os.environ.pop(name, None)
        os.environ.update(given)
        if self.upgrade_from:
            self.code = self._check_out(self.upgrade_from)
        self._mount_small_disk()

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.stop()
        self._stack.close()

    def start(self) -> None:
        """Start the evaluator, the server and the workers, and wait until the server answers."""
        self.evaluator_port = free_port()
        log = ["--port", str(self.evaluator_port), "--log", str(self.evaluator_log)]
        self._supervise("evaluator", [sys.executable, str(EVALUATOR), *log, *EVALUATOR_OPTIONS])
        if self.kind == "sqlite":
            self._start_server()
        else:
            self._supervise("redis", processes.redis_command(self.redis_port))
            self._start_server()
            self._supervise("worker1", processes.celery_command("one"))
            self._start_odd_workers()
        wait_for(self.answers, "the server answers")

    def upgrade(self) -> list[str]:
        """Replace the former version by this one while people work, as docs/operation.md says: the
        tables first, then the workers, then the server. Return why a step had to be tried again."""
        self.code, failures = ROOT, []
        for step in ("migrate", "collectstatic"):
            while (done := self.manage(step, "--no-input")).returncode:
                failures.append(f"{step}: {done.stderr.strip()[-200:]}")
                if len(failures) > MOST_TRIES:
                    raise RuntimeError(f"The upgrade failed: {failures[-1]}")
                time.sleep(2)
        for name in [name for name in self.processes if name.startswith("worker")]:
            self.processes[name].replace(cwd=ROOT)
        self.processes["server"].replace(cwd=ROOT)
        return failures

    @property
    def evaluator_log(self) -> Path:
        return self.folder / "evaluator.jsonl"

    @property
    def disk(self) -> Path:
        """The folder of exports; on a disk of its own if this process may mount one."""
        return self.var / "exports"

    def answers(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3)
            asked.request("GET", "/healthz")
            return asked.getresponse().status == 200
        return False

    def manage(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a management command in a process of its own."""
        return self.run("manage.py", *words, **environment)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program with the code that is installed now."""
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.code,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )

    def stop(self) -> None:
        """End all processes but the database."""
        for name in ("server", "worker1", "worker2", "worker-old", "evaluator", "redis"):
            if name in self.processes:
                self.processes.pop(name).stop()

    def _supervise(self, name: str, command: list[str], **more: Any) -> None:
        environment = os.environ | more.pop("environment", {})
        more = {"cwd": self.code, **more}
        self.processes[name] = Supervised(name, command, self.folder, environment, **more)

    def _start_server(self) -> None:
        serve = [sys.executable, "manage.py", "serve", "--port", str(self.port)]
        self._supervise("server", serve if self.kind == "sqlite" else self._gunicorn())

    def _gunicorn(self) -> list[str]:
        options = ["--workers", "2", "--threads", "8", "--reuse-port", "--no-control-socket"]
        bind = ["--bind", f"127.0.0.1:{self.port}", "--worker-tmp-dir", "/dev/shm"]
        return [sys.executable, "-m", "gunicorn", "config.wsgi", *bind, *options]

    def _start_odd_workers(self) -> None:
        """Start a worker whose clock is an hour ahead, and a worker of the commit before this."""
        library, clock = processes.faketime_library(), {}
        if library:
            clock = {
                "LD_PRELOAD": library,
                "FAKETIME": "+3600s",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        else:
            self.untried.append("a worker's clock that is wrong (`apt install libfaketime`)")
        command = processes.celery_command("two", own_clock=bool(library))
        self._supervise("worker2", command, environment=clock)
        if self.upgrade_from:
            return
        if _has_same_tables("HEAD~1"):
            older = self._check_out("HEAD~1")
            self._supervise("worker-old", processes.celery_command("old"), cwd=older)
        else:
            self.untried.append("a worker of older code (the commit before has other migrations)")

    def _check_out(self, commit: str) -> Path:
        """Copy the code of a commit. Raises `Missing` if there is no such commit."""
        older = self.folder / "older"
        older.mkdir()
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
        if packed.returncode:
            raise Missing(f"There is no commit {commit} here: {packed.stderr.decode().strip()}")
        subprocess.run(["tar", "x"], cwd=older, input=packed.stdout, check=True)
        return older

    def _mount_small_disk(self) -> None:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(self.disk)]
        if shutil.which("mount") and not subprocess.run(mount, capture_output=True).returncode:
            self._stack.callback(subprocess.run, ["umount", "--lazy", str(self.disk)], check=False)
        else:
            self.untried.append("a full disk (mounting one needs root)")


def _has_same_tables(commit: str) -> bool:
    """True if the migrations of a commit are those of this one."""
    migrations = ["git", "diff", "--name-only", commit, "HEAD", "--", "*/migrations/*.py"]
    made = subprocess.run(migrations, cwd=ROOT, capture_output=True, text=True)
    return not made.returncode and not made.stdout.strip()


def write_items(path: Path, prefix: str, count: int) -> Path:
    """Write a file of items of about the usual size; two items share a source question."""
    chance = random.Random(prefix)
    with path.open("w", encoding="utf-8") as out:
        for number in range(count):
            gold = f"{prefix} {number}: {' '.join(chance.choices(WORDS, k=60))}."
            row = {
                "key": f"{prefix}-{number}",
                "category": CATEGORIES[number % len(CATEGORIES)],
                "source_ability": "long-form",
                "cluster": f"{prefix}-{number // 2}",
                "prompt": f"What happened at the {prefix} in year {number}?",
                "gold": gold,
                "perturbed": gold.replace("river", "rivar", 1) + " It was late.",
                "claim": "A word is misspelt.",
                "rationale": "It reads badly.",
            }
            out.write(json.dumps(row) + "\n")
    return path
