"""`manage.py doctor`: what is wrong, in words, and what to do about it."""

import string
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotation.db import clock
from annotation.models import Job
from judging.jobs import heartbeat
from judging.models import Worker
from operation import doctor
from operation.findings import Finding, Grade
from operation.management.commands import doctor as doctor_command
from tests.builders import make_project
from tests.config.scripted_identity import running
from tests.judging.builders_judging import make_endpoint

ROOT = Path(__file__).resolve().parents[2]


def told(*only: str) -> str:
    out = StringIO()
    try:
        call_command("doctor", *(["--only", *only] if only else []), stdout=out)
    except CommandError as error:
        out.write(str(error))
    return " ".join(out.getvalue().split())


@pytest.mark.django_db(transaction=True)
def test_it_names_every_part_and_ends_badly_only_where_something_is_wrong(
    settings: SimpleNamespace, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "staticfiles.json").touch()
    with pytest.raises(CommandError) as ended:
        call_command("doctor", stdout=StringIO())
    assert ended.value.returncode == 1
    life = heartbeat.WorkerStatus()
    heartbeat.record(life, clock.now())
    Worker.objects.update(progressed_at=clock.now())
    said = told()
    assert all(f" {name} " in said for name in doctor.CHECKS)
    assert "wrong" not in said


@pytest.mark.django_db(transaction=True)
def test_what_is_wrong_comes_with_its_remedy() -> None:
    assert "No worker is running. Start one with `celery --app config worker`" in told("worker")


def test_an_address_and_a_word_with_hyphens_are_never_cut_at_the_end_of_a_line() -> None:
    address = f"https://{'a' * 100}.example/sign-in"
    said = f"{'It says so. ' * 5}read-write {address} of {'well-known ' * 10}"
    lines = doctor_command._line("worker", Finding(Grade.WRONG, said.strip(), "Mend it."))
    first, *others = lines.splitlines()
    assert first.startswith("wrong     worker          It says so.")
    assert all(line.startswith(" " * 26) and line[26] != " " for line in others)
    assert all(len(line) <= 100 or address in line for line in lines.splitlines())
    assert lines.split() == ["wrong", "worker", *said.split(), "Mend", "it."]


def test_settings_that_cannot_be_read_are_told_without_a_traceback() -> None:
    command = [sys.executable, "manage.py", "doctor"]
    run = subprocess.run(
        command, cwd=ROOT, env={"SECRET_KEY": "short"}, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert run.stderr == (
        "The settings are not valid: SECRET_KEY is too short: use 50 random characters or more.\n"
    )


@pytest.mark.parametrize(
    ("values", "grade"),
    [
        ({"ALLOWED_HOSTS": ["*"]}, Grade.WRONG),
        ({"ALLOWED_HOSTS": ["a.example"], "DEBUG": True}, Grade.WRONG),
        ({"ALLOWED_HOSTS": ["a.example"], "SITE_URL": ""}, Grade.DOUBTFUL),
        ({"ALLOWED_HOSTS": ["a.example"], "SITE_URL": "https://a.example"}, Grade.FINE),
        ({"ALLOWED_HOSTS": ["localhost"], "SITE_URL": ""}, Grade.FINE),
    ],
)
def test_settings_that_let_others_in_are_told(
    settings: SimpleNamespace, values: dict[str, object], grade: Grade
) -> None:
    for name, value in values.items():
        setattr(settings, name, value)
    assert doctor.check_settings().grade == grade


@pytest.mark.parametrize(("repeated", "grade"), [(11, Grade.FINE), (12, Grade.WRONG)])
def test_of_a_key_four_in_five_places_must_begin_something_new(
    settings: SimpleNamespace, tmp_path: Path, repeated: int, grade: Grade
) -> None:
    """Of fifty characters begin 48 three in a row; the same sign over and over counts as one."""
    settings.VAR_DIR = tmp_path
    settings.SECRET_KEY = "a" * repeated + string.ascii_letters[1 : 51 - repeated]
    assert len(settings.SECRET_KEY) == 50
    assert doctor.check_secret_key().grade == grade


@pytest.mark.parametrize("key", ["x" * 60, "change-me" * 8, "django-insecure-" + "aB3$k9" * 9])
def test_a_key_that_can_be_guessed_is_wrong_and_never_printed(
    settings: SimpleNamespace, key: str
) -> None:
    settings.SECRET_KEY = key
    found = doctor.check_secret_key()
    assert found.grade == Grade.WRONG
    assert key not in found.says + found.remedy


def test_a_folder_that_cannot_be_written_is_named(
    settings: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR_DIR = tmp_path
    (tmp_path / "exports").mkdir()
    assert doctor.check_files().grade == Grade.FINE
    # Permissions do not hold back root, whom containers of tests run as.
    touch = Path.touch
    monkeypatch.setattr(
        Path, "touch", lambda path: refuse() if path.parent.name == "exports" else touch(path)
    )
    found = doctor.check_files()
    assert found.grade == Grade.WRONG
    assert str(tmp_path / "exports") in found.says


def test_a_folder_that_is_none_is_told_in_one_piece_however_long_its_name(
    settings: SimpleNamespace, tmp_path: Path
) -> None:
    settings.VAR_DIR = tmp_path / ("folder-" * 20)
    settings.VAR_DIR.write_text("a file")
    assert f"{settings.VAR_DIR} cannot be written." in told("files")


def refuse() -> None:
    raise PermissionError


def test_files_that_were_not_collected_are_told(settings: SimpleNamespace, tmp_path: Path) -> None:
    settings.VAR_DIR = settings.STATIC_ROOT = tmp_path
    settings.EMBEDDED = False
    assert "collectstatic" in doctor.check_files().remedy


@pytest.mark.parametrize(("free", "grade"), [(2**28, Grade.WRONG), (2**31, Grade.DOUBTFUL)])
def test_a_disk_that_is_nearly_full_is_told(
    monkeypatch: pytest.MonkeyPatch, free: int, grade: Grade
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    assert doctor.check_disk().grade == grade


@pytest.mark.django_db
def test_jobs_that_wait_or_failed_are_told() -> None:
    project, now = make_project(), timezone.now()
    Job.objects.create(project=project, kind="export", state="cancelled", finished_at=now)
    assert doctor.check_jobs().grade == Grade.FINE
    Job.objects.create(project=project, kind="export", state="failed", finished_at=now)
    assert doctor.check_jobs().grade == Grade.DOUBTFUL
    Job.objects.create(project=project, kind="export", created_at=now - timedelta(hours=1))
    assert doctor.check_jobs().grade == Grade.WRONG


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "ago", "grade"),
    [
        ({"state": "failed"}, timedelta(hours=23), Grade.DOUBTFUL),
        ({"state": "failed"}, timedelta(hours=25), Grade.FINE),
        ({"state": "waiting"}, timedelta(minutes=9), Grade.FINE),
        ({"state": "waiting"}, timedelta(minutes=11), Grade.WRONG),
    ],
)
def test_a_job_is_told_for_a_day_if_it_failed_and_after_ten_minutes_if_it_waits(
    values: dict[str, str], ago: timedelta, grade: Grade
) -> None:
    at = timezone.now() - ago
    ended = {"finished_at": at} if values["state"] == "failed" else {}
    Job.objects.create(project=make_project(), kind="export", created_at=at, **values, **ended)
    assert doctor.check_jobs().grade == grade


@pytest.mark.django_db
def test_an_import_that_waits_for_a_person_is_no_fault_of_a_worker() -> None:
    early, project = timezone.now() - timedelta(days=2), make_project()
    asks = [{"step": "choose"}, {"step": "ready"}]
    for told in asks:
        Job.objects.create(project=project, kind="import", created_at=early, result=told)
    assert doctor.check_jobs().grade == Grade.FINE
    Job.objects.update(result={"step": "store"})
    assert doctor.check_jobs().grade == Grade.WRONG


@pytest.mark.django_db
def test_a_key_that_an_endpoint_wants_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    make_endpoint("https://evaluator.example/v1", key_variable="SOME_API_KEY")
    monkeypatch.delenv("SOME_API_KEY", raising=False)
    assert "SOME_API_KEY" in doctor.check_evaluator_keys().says
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    assert doctor.check_evaluator_keys().grade == Grade.FINE


@pytest.mark.postgresql
@pytest.mark.django_db
def test_a_clock_that_differs_from_the_servers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_clock().grade == Grade.FINE
    ahead = timezone.now() + timedelta(minutes=2)
    monkeypatch.setattr(timezone, "now", lambda: ahead)
    assert doctor.check_clock().grade == Grade.DOUBTFUL


def test_a_mail_server_that_is_away_is_told(settings: SimpleNamespace) -> None:
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    assert doctor.check_email().says == "The mail server does not answer."


@pytest.mark.postgresql
@pytest.mark.django_db
def test_connections_are_counted() -> None:
    assert "connections of the database server are in use" in doctor.check_connections().says


def test_the_service_that_people_sign_in_by_is_asked(settings: SimpleNamespace) -> None:
    settings.OPENID = None
    assert "With password only" in told("sign-in")
    with running() as service:
        settings.OPENID = service.settings
        assert "Lab account answers." in told("sign-in")
        service.itself = {"issuer": f"{service.issuer}/"}
        assert "It gives its issuer as" in told("sign-in")
        service.itself = {"token_endpoint": "ftp://127.0.0.1/token"}
        assert "no safe token_endpoint" in told("sign-in")
    said = told("sign-in")
    assert "It does not answer" in said
    assert "Check that OPENID_ISSUER is" in said
