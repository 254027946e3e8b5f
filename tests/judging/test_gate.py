"""The command `gate`: a verdict on a run as an exit code, against intervals made by hand."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from annotation.models import Project
from judging.management.commands import gate as command
from judging.models import Run
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

DETECTED, EQUAL, CUT = scores(9, 5), scores(9, 9), scores(9, None)
MET, NOT_MET, TOO_FEW, BROKEN = range(4)


@pytest.fixture
def run(project: Project) -> Run:
    """Of 20 errors 15 are detected, of 12 invariant answers 3 alarm; one of each is cut. Detection
    .75 (.531 to .888), false alarms .25 (.089 to .532), J .5 (.143 to .712)."""
    errors = make_items(project, 21)
    calm = make_items(project, 13, "score-invariant")
    said = [*[DETECTED] * 15, *[EQUAL] * 5, CUT, *[DETECTED] * 3, *[EQUAL] * 9, CUT]
    return make_replied(project, "vanilla", zip([*errors, *calm], said, strict=True))


def ended(*words: str) -> tuple[int, str]:
    """The exit code, and what was printed."""
    said, code = StringIO(), MET
    try:
        call_command("gate", "--project", "fbi", "--run", "1", *words, stdout=said)
    except SystemExit as end:
        code = int(end.code or MET)
    return code, said.getvalue()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            "--min-j 0.1",
            MET,
            "met: J 0.500 (0.143 to 0.712), at least 0.1, n 32 (20 errors, 12 score-invariant "
            "items)\nNo usable reply: 2 of 34 items. J, detection and false "
            "alarms leave them out.\n",
        ),
        ("--min-j 0.6", NOT_MET, "not met: J 0.500 (0.143 to 0.712), at least 0.6, n 32"),
        (
            "--min-j 0.3",
            TOO_FEW,
            "too few items: J 0.500 (0.143 to 0.712), at least 0.3, n 32 (20 er",
        ),
        ("--min-detection 0.5", MET, "met: detection 0.750 (0.531 to 0.888), at least 0.5, n 20"),
        ("--max-false-alarms 0.6", MET, "met: false alarms 0.250 (0.089 to 0.532), at most 0.6"),
        ("--max-false-alarms 0.2", NOT_MET, "not met: false alarms 0.250"),
        ("--max-false-alarms 0.4", TOO_FEW, "too few items: false alarms 0.250"),
        ("--max-missing 0.2", MET, "met: missing 0.059"),
        ("--min-j 0.5", TOO_FEW, "The figure is too close to the limit for any number of items."),
    ],
)
def test_a_limit_is_met_by_the_whole_interval_alone(
    run: Run, words: str, code: int, said: str
) -> None:
    found, printed = ended(*words.split())
    assert (found, said in printed) == (code, True), printed


def test_one_missed_limit_decides_and_then_one_with_too_few_items(run: Run) -> None:
    code, said = ended("--min-j", "0.1", "--min-detection", "0.9", "--max-false-alarms", "0.4")
    assert code == NOT_MET
    assert [line.split(":")[0] for line in said.splitlines()] == [
        "met", "not met", "too few items", "No usable reply",
    ]  # fmt: skip
    assert ended("--min-j", "0.1", "--max-false-alarms", "0.4")[0] == TOO_FEW


def test_so_many_items_as_it_says_would_do(run: Run) -> None:
    _, said = ended("--min-detection", "0.65")
    would_do = int(said.split("About ")[1].split()[0].replace(",", ""))
    # Wilson's lower end of .75 at n: .65 is passed between 80 and 90 items.
    assert 80 < would_do < 90


def test_without_score_invariant_items_there_is_no_j_to_meet(project: Project) -> None:
    make_replied(project, "vanilla", [(one, DETECTED) for one in make_items(project, 5)])
    assert ended("--min-j", "0.1") == (
        TOO_FEW,
        "too few items: J none (no score-invariant item), at least 0.1, n 5 (5 errors, 0 "
        "score-invariant items)\n",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "--run"),
        ("--run 1", "Give one limit or more: --min-j, --min-detection,"),
        ("--run 1 --min-j 30", "--min-j 30.0: give a fraction of 1, such as 0.3."),
        ("--run 1 --min-j nan", "--min-j nan: give a fraction"),
        ("--run 1 --min-j much", "invalid float value"),
        ("--run 7 --min-j 0.3", "fbi has no run 7."),
    ],
)
def test_what_cannot_be_judged_ends_with_three(
    run: Run, words: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        command.Command().run_from_argv(["manage.py", "gate", "--project", "fbi", *words.split()])
    assert end.value.code == BROKEN
    assert said in capfd.readouterr().err


def test_a_run_that_is_not_finished_has_no_verdict(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    Run.objects.update(state="paused")
    with pytest.raises(SystemExit) as end:
        command.Command().run_from_argv(
            ["manage.py", "gate", "--project", "fbi", "--run", "1", "--min-j", "0"]
        )
    assert end.value.code == BROKEN
    assert "Run 1 is not finished but paused." in capfd.readouterr().err


def test_an_error_of_the_program_is_no_verdict(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("no figures today")

    monkeypatch.setattr(command.gate, "judge", broken)
    with pytest.raises(SystemExit) as end:
        command.Command().run_from_argv(
            ["manage.py", "gate", "--project", "fbi", "--run", "1", "--min-j", "0"]
        )
    assert end.value.code == BROKEN
    assert "no figures today" in capfd.readouterr().err


def test_a_shell_sees_the_code() -> None:
    root = Path(command.__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "manage.py", "gate", "--project", "fbi"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "--run" in done.stderr) == (BROKEN, True)


def test_settings_that_cannot_be_read_are_no_verdict() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "gate", "--project", "fbi", "--run", "1", "--min-j", "0"],
        cwd=Path(command.__file__).parents[3],
        env={**os.environ, "DATABASE_URL": "bad://x"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == BROKEN
    assert done.stderr.startswith("The settings are not valid: DATABASE_URL cannot be read")


def test_help_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.Command().run_from_argv(["manage.py", "gate", "--help"])
    assert end.value.code == MET
    assert "3: there is no verdict" in " ".join(capfd.readouterr().out.split())
