"""The built package in an environment of its own, away from the checkout."""

import os
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from operation import command
from tests.services.processes import free_port, wait_for

pytestmark = pytest.mark.processes
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, folder], cwd=ROOT, check=True, capture_output=True)
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, in an environment that takes all other packages from the one of the tests."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    [site] = venv.glob("lib/python*/site-packages")
    (site / "tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    uv = Path(sys.executable).with_name("uv")
    install = [uv, "pip", "install", "--quiet", "--offline", "--no-index", "--no-deps"]
    subprocess.run([*install, "--python", python, wheel], check=True, capture_output=True)
    return venv / "bin" / "blindspot"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home without anything; nothing of the checkout is on the path."""
    return {"HOME": str(tmp_path), "PATH": os.defpath, "LANG": "C.UTF-8"}


@pytest.fixture
def served(
    installed: Path, environment: dict[str, str], tmp_path: Path
) -> Iterator[tuple[str, Path]]:
    """The address of the demo, and its output."""
    port, log = free_port(), tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [installed, "demo", "--port", str(port)],
            env=environment,
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: process.poll() is not None or "Ctrl-C" in log.read_text(), "the demo")
        yield f"http://127.0.0.1:{port}", log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_all_of_it_lies_in_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"blindspot"}
    tracked = subprocess.run(
        ["git", "ls-files", "annotation", "judging", "templates", "static", "docs", "examples"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert {f"blindspot/{name}" for name in tracked} <= set(names)


def test_without_a_checkout_the_demo_is_served_and_commands_draw_and_export(
    served: tuple[str, Path], installed: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """Some twenty seconds: the demo is set up, and three commands start."""
    address, log = served
    assert f"Blindspot is at {address}" in log.read_text()
    for path in ("/accounts/login/", "/docs/overview/", "/static/docs/pictures/results.png"):
        assert urllib.request.urlopen(address + path).status == 200
    data = tmp_path / ".local" / "share" / "blindspot"
    assert (data / "blindspot.sqlite3").is_file()
    labels, chart = tmp_path / "labels.csv", tmp_path / "chart.svg"
    for words in (
        ["export", "labels", "--project", "demo", "--format", "csv", "--output", str(labels)],
        ["chart", "overview", "--project", "demo", "--output", str(chart)],
    ):
        run = subprocess.run(
            [installed, "manage", *words], env=environment, cwd=tmp_path, capture_output=True
        )
        assert run.returncode == 0, run.stderr
    assert "item" in labels.read_text(encoding="utf-8").splitlines()[0]
    assert chart.read_text().startswith("<svg")


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--help"], 0), (["migrate"], 2)])
def test_the_command_says_what_it_takes_and_where_data_is(
    installed: Path, environment: dict[str, str], tmp_path: Path, words: list[str], code: int
) -> None:
    run = subprocess.run([installed, *words], env=environment, capture_output=True, text=True)
    assert run.returncode == code
    assert run.stdout.startswith("Usage: blindspot COMMAND")
    assert str(tmp_path / ".local" / "share" / "blindspot") in run.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("platform", "variable", "ends"),
    [
        ("linux", "XDG_DATA_HOME", "given/blindspot"),
        ("linux", "", "home/.local/share/blindspot"),
        ("darwin", "", "home/Library/Application Support/Blindspot"),
        ("win32", "LOCALAPPDATA", "given/Blindspot"),
        ("win32", "", "home/AppData/Local/Blindspot"),
    ],
)
def test_data_lies_where_programs_of_a_system_keep_it(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, ends: str
) -> None:
    monkeypatch.setattr(command.sys, "platform", platform)
    monkeypatch.setenv("HOME", "/home")
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "/given")
    assert command.data_folder() == Path(f"/{ends}")
