"""Checks of the `doctor` command beyond readiness: settings, clock, files, mail and others."""

import os
import secrets
import shutil
import socket
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.core import mail
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from annotation.db import clock
from annotation.importing.jobs import WAITS_FOR_PERSON
from annotation.models import Job
from judging.evaluators import keys
from judging.models import Endpoint, Run
from operation import identity, readiness
from operation.findings import Finding, report_error, report_ok, report_warning

# A worker polls every two seconds; slices and programs end within minutes.
LONG_WAIT = timedelta(minutes=10)
# Limits for the number of free bytes where files are kept.
LOW_DISK_BYTES, MIN_DISK_BYTES = 5 * 2**30, 2**29
# In a random key, at least this share of the three-character substrings is distinct, even in hex.
MIN_KEY_VARIETY = 0.8
# The largest share of the server's maximum number of connections that may be in use.
MAX_CONNECTION_SHARE = 0.8
# In seconds; leases are shorter than a minute.
MAX_CLOCK_SECONDS = 2.0


OPENID_REMEDY = (
    f"Check that OPENID_ISSUER is exactly the `issuer` given at {identity.DISCOVERY_PATH}, and "
    "that this machine can reach the service."
)


def check_settings() -> Finding:
    """Check the settings that control access."""
    if "*" in settings.ALLOWED_HOSTS:
        return report_error(
            "ALLOWED_HOSTS accepts every name, so an attacker can make links in e-mail lead to "
            "another site.",
            "List only the host names of this site.",
        )
    elsewhere = set(settings.ALLOWED_HOSTS) - {"localhost", "127.0.0.1", "[::1]"}
    if settings.DEBUG and elsewhere:
        return report_error(
            "DEBUG shows program code to everybody who gets an error.", "Set DEBUG=0."
        )
    if elsewhere and not settings.SITE_URL.startswith("https://"):
        return report_warning(
            "Other machines can reach the site, but SITE_URL is not an https:// address.",
            "Put a TLS proxy in front and set SITE_URL: it turns on HSTS and secure cookies.",
        )
    return report_ok("The settings can be read and are consistent.")


def check_secret_key() -> Finding:
    """Check that SECRET_KEY is random, and that the file with it cannot be read by other users."""
    key = settings.SECRET_KEY
    threes = {key[at : at + 3] for at in range(len(key) - 2)}
    kept = settings.VAR_DIR / "secret_key"
    if len(threes) < MIN_KEY_VARIETY * len(key) or key.startswith("django-insecure"):
        return report_error(
            "SECRET_KEY can be guessed: it repeats itself or comes from an example.",
            "Set one of 50 random characters or more. Everybody must then sign in again.",
        )
    if settings.EMBEDDED and kept.exists() and kept.stat().st_mode & 0o077:
        return report_warning(f"Others can read {kept}.", f"Run `chmod 600 {kept}`.")
    return report_ok("SECRET_KEY is long and looks random.")


def check_clock() -> Finding:
    """Check this machine's clock against the clock of the database server."""
    if connection.vendor != "postgresql":
        return report_ok(f"The time here is {timezone.now():%Y-%m-%d %H:%M:%S} UTC.")
    off = abs((timezone.now() - clock.now()).total_seconds())
    if off > MAX_CLOCK_SECONDS:
        says = f"This clock differs by {off:.0f} s from the database server's clock."
        return report_warning(says, "Synchronise both clocks with NTP.")
    return report_ok("This clock agrees with the database server's clock.")


def check_connections() -> Finding:
    """Check how many connections to the database server are in use; SQLite needs no connections."""
    if connection.vendor != "postgresql":
        return report_ok("SQLite needs no connections.")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity"
        )
        [used, most] = cursor.fetchone()
    says = f"{used} of {most} connections of the database server are in use."
    if used > MAX_CONNECTION_SHARE * most:
        remedy = "Raise max_connections, start fewer processes, or put PgBouncer in front."
        return report_warning(says, remedy)
    return report_ok(says)


def check_files() -> Finding:
    """Check that data files can be written and that style sheets are collected."""
    made = settings.VAR_DIR.iterdir() if settings.VAR_DIR.is_dir() else ()
    for folder in (settings.VAR_DIR, *(each for each in made if each.is_dir())):
        if not _can_write(folder):
            who = f"Give the user who runs this (uid {os.getuid()}) permission to write there."
            return report_error(f"{folder} cannot be written.", who)
    collected = settings.STATIC_ROOT / "staticfiles.json"
    if not (settings.EMBEDDED or settings.DEBUG or collected.exists()):
        remedy = "Run `python manage.py collectstatic --no-input`, as the image does."
        return report_error(
            "Style sheets and scripts are not collected, so no page can open.", remedy
        )
    return report_ok(f"{settings.VAR_DIR} can be written.")


def _can_write(folder: Path) -> bool:
    part = folder / f".doctor-{secrets.token_hex(4)}"
    try:
        part.touch()
        part.unlink()
    except OSError:
        return False
    return True


def check_disk() -> Finding:
    """Check the free space where data files are. Less than `MIN_DISK_BYTES` is an error, less than
    `LOW_DISK_BYTES` a warning."""
    free = shutil.disk_usage(settings.VAR_DIR).free
    says = f"{free / 2**30:.1f} GB are free on the disk of {settings.VAR_DIR}."
    remedy = "Free some space: exports, archives and the SQLite database are there."
    if free < MIN_DISK_BYTES:
        return report_error(says, remedy)
    return report_warning(says, remedy) if free < LOW_DISK_BYTES else report_ok(says)


def check_jobs() -> Finding:
    """Check for jobs that have been waiting for a long time or have failed recently."""
    now = timezone.now()
    due = Job.objects.filter(~WAITS_FOR_PERSON, state=Job.State.WAITING)
    if waiting := due.filter(created_at__lt=now - LONG_WAIT).count():
        says = f"{waiting} jobs have waited for more than {LONG_WAIT.seconds // 60} minutes."
        return report_error(says, "See the `worker` check and the worker's log.")
    day = now - timedelta(days=1)
    if failed := Job.objects.filter(state=Job.State.FAILED, finished_at__gt=day).count():
        says = f"{failed} jobs failed or were cancelled in the last 24 hours."
        return report_warning(says, "The Jobs page of each project gives the reasons.")
    return report_ok("No job has waited long, and none failed in the last 24 hours.")


def check_evaluator_keys() -> Finding:
    """Check that this process has the API keys of the endpoints."""
    used = Endpoint.objects.filter(Q(archived_at=None) | Q(runs__in=Run.objects.going_on()))
    named = used.exclude(key_variable="").values_list("key_variable", flat=True)
    missing = sorted({name for name in named if not keys.is_key_set(name)})
    if missing:
        says = f"Not set here: {', '.join(missing)}."
        remedy = "Set them in the environment of server and workers, or remove their endpoints."
        return report_warning(says, remedy)
    return report_ok("All keys that endpoints need are set here.")


def check_email() -> Finding:
    """Check that the mail server accepts a connection with the user and password. No mail is
    sent."""
    if not settings.EMAIL_HOST:
        says = "E-mail goes to the server's output, so nobody receives links."
        if not settings.SITE_URL:
            return report_ok(says)
        return report_warning(says, "Set EMAIL_URL and EMAIL_FROM.")
    link: Any = mail.get_connection()
    try:
        link.open()
        link.close()
    except OSError as error:
        says = "refuses the connection" if isinstance(error, SMTPException) else "does not answer"
        remedy = "Check host, port, user and password in EMAIL_URL."
        return report_error(f"The mail server {says}.", remedy)
    return report_ok("The mail server accepts our sign-in.")


def check_sign_in() -> Finding:
    """Check that the single sign-on service works."""
    if settings.OPENID is None:
        return report_ok("With password only: OPENID_ISSUER is not set.")
    try:
        identity.fetch_json(identity.discover(settings.OPENID.issuer)["jwks_uri"])
    except identity.DiscoveryError as error:
        return report_error(f"The service of OPENID_ISSUER cannot be used. {error}", OPENID_REMEDY)
    return report_ok(f"{settings.OPENID.name} answers.")


def check_local_worker() -> Finding:
    """Check that a worker on this machine is alive."""
    return readiness.check_workers_on(socket.gethostname())


CHECKS: dict[str, Callable[[], Finding]] = {
    "settings": check_settings,
    "secret-key": check_secret_key,
    **readiness.CHECKS,
    "connections": check_connections,
    "clock": check_clock,
    "jobs": check_jobs,
    "files": check_files,
    "disk": check_disk,
    "evaluator-keys": check_evaluator_keys,
    "e-mail": check_email,
    "sign-in": check_sign_in,
}
# Run only on request, since not every machine has a worker.
OPTIONAL_CHECKS = {"worker-here": check_local_worker}
