"""`make setup` on machines unlike this one, played by small scripts in place of Python."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = "/usr/bin:/bin"

# Says yes to being new enough and no to having a venv module, as Debian's python3 alone does.
WITHOUT_VENV = """
case "$2" in
    *ensurepip*) exit 1 ;;
    *"%d.%d"*) echo 3.12 ;;
esac
"""
# Says yes to both, and which it is in what it makes.
WHOLE = """
case "$2" in
    venv) mkdir -p "$4/bin" && echo "$0" > "$4/made-by" && cp "$0" "$4/bin/python" ;;
esac
"""
OLD = """
case "$1" in
    --version) echo Python 3.9.2 ;;
    *) exit 1 ;;
esac
"""


def fake(folder: Path, name: str, body: str) -> Path:
    script = folder / name
    script.write_text(f"#!/bin/sh{body}", encoding="ascii")
    script.chmod(0o755)
    return script


def make_venv(target: Path, *wanted: str, path: str = TOOLS) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "requirements/venv", target, *wanted],
        cwd=ROOT,
        env={"PATH": path},
        capture_output=True,
        text=True,
    )


def test_a_python_that_is_too_old_is_refused_with_its_version(tmp_path: Path) -> None:
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        fake(tmp_path, name, OLD)
    refused = make_venv(tmp_path / "venv", path=f"{tmp_path}:{TOOLS}")
    assert refused.returncode == 1
    assert "Python 3.11 or newer is needed; python3 here is Python 3.9.2" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_the_first_python_that_is_new_enough_and_has_a_venv_module_is_taken(
    tmp_path: Path,
) -> None:
    fake(tmp_path, "python3", OLD)
    fake(tmp_path, "python3.14", WITHOUT_VENV)
    fake(tmp_path, "python3.13", WHOLE)
    fake(tmp_path, "python3.12", OLD)
    made = make_venv(tmp_path / "venv", path=f"{tmp_path}:{TOOLS}")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "venv" / "made-by").read_text().strip() == f"{tmp_path}/python3.13"


def test_the_system_s_python_comes_before_others_on_the_path(tmp_path: Path) -> None:
    fake(tmp_path, "python3", OLD)
    command = ["make", "--dry-run", "setup", f"VENV={tmp_path}/venv", "PYTHON="]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f'PATH=/usr/bin:$PATH requirements/venv {tmp_path}/venv ""' in planned.stdout


def test_a_missing_venv_module_is_named_with_its_debian_package(tmp_path: Path) -> None:
    python = fake(tmp_path, "python3", WITHOUT_VENV)
    refused = make_venv(tmp_path / "venv", str(python))
    assert refused.returncode == 1
    assert "apt install python3.12-venv" in refused.stderr


@pytest.mark.parametrize(("body", "words"), [(OLD, "is Python 3.9.2"), (None, "there is no")])
def test_a_named_python_is_the_only_one_tried(tmp_path: Path, body: str | None, words: str) -> None:
    python = fake(tmp_path, "named", body) if body else tmp_path / "named"
    refused = make_venv(tmp_path / "venv", str(python))
    assert refused.returncode == 1
    assert words in refused.stderr


def test_what_is_set_up_is_not_set_up_again(tmp_path: Path) -> None:
    for stamp in ("python.stamp", "runtime.stamp"):
        (tmp_path / stamp).touch()
    command = ["make", "--question", "setup", f"VENV={tmp_path}", "PYTHON="]
    again = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True)
    assert again.returncode == 0


def test_a_changed_lock_is_synced(tmp_path: Path) -> None:
    for stamp in ("python.stamp", "runtime.stamp"):
        (tmp_path / stamp).touch()
        os.utime(tmp_path / stamp, (0, 0))
    command = ["make", "--question", "setup", f"VENV={tmp_path}", "PYTHON="]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 1


@pytest.mark.parametrize(("set_to", "compiles"), [("1", True), ("", False)])
def test_packages_are_compiled_once_where_python_may_write_no_bytecode(
    tmp_path: Path, set_to: str, compiles: bool
) -> None:
    (tmp_path / "bin").mkdir()
    fake(tmp_path / "bin", "python", "\n")
    fake(tmp_path / "bin", "uv", '\necho "$@"\n')
    done = subprocess.run(
        ["/bin/bash", "requirements/install", tmp_path, "requirements/runtime.txt"],
        cwd=ROOT,
        env={"PATH": TOOLS, "PYTHONDONTWRITEBYTECODE": set_to},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("--compile-bytecode" in done.stdout) is compiles
