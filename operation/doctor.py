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
from operation.findings import Finding, Problem, declare_error, declare_warning, report_ok

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


ANY_HOST = declare_error(
    "ALLOWED_HOSTS accepts every name, so an attacker can make links in e-mail lead to another "
    "site.",
    means="People who ask for a new password could be led to a copy of the sign-in page.",
    remedy="List only the host names of this site.",
)
DEBUG_SHOWN = declare_error(
    "DEBUG shows program code to everybody who gets an error.",
    means="An error page also has settings and texts that were being worked on.",
    remedy="Set DEBUG=0.",
)
NO_TLS = declare_warning(
    "Other machines can reach the site, but SITE_URL is not an https:// address.",
    means="Passwords and labels cross the network in the clear, and passkeys do not work.",
    remedy="Put a TLS proxy in front and set SITE_URL: it turns on HSTS and secure cookies.",
)
WEAK_KEY = declare_error(
    "SECRET_KEY can be guessed: it repeats itself or comes from an example.",
    means="What the site signs or encrypts with it can be forged or read, such as links to new "
    "passwords and the secrets of webhooks and of two-step sign-in.",
    remedy="Set one of 50 random characters or more. Everybody must then sign in again.",
)
OPEN_KEY = declare_warning(
    "Others can read {file}.",
    means="Other users of this machine can read SECRET_KEY.",
    remedy="Run `chmod 600 {file}`.",
)
CLOCKS_DIFFER = declare_warning(
    "This clock differs by {seconds:.0f} s from the database server's clock.",
    means="Times of logs and labels do not fit together. Codes of two-step sign-in may be refused.",
    remedy="Synchronise both clocks with NTP.",
)
MANY_CONNECTIONS = declare_warning(
    "{used} of {most} connections of the database server are in use.",
    means="Once all are in use, pages answer 503 until one is free.",
    remedy="Raise max_connections, start fewer processes, or put PgBouncer in front.",
)
NOT_WRITABLE = declare_error(
    "{folder} cannot be written.",
    means="Uploads, exports and archives fail. With SQLite, nothing can be saved.",
    remedy="Give the user who runs this (uid {user}) permission to write there.",
)
NOT_COLLECTED = declare_error(
    "Style sheets and scripts are not collected, so no page can open.",
    means="Every page ends in an error of the server.",
    remedy="Run `python manage.py collectstatic --no-input`, as the image does.",
)
_FREE_SPACE = {
    "says": "{number} GB are free on the disk of {folder}.",
    "remedy": "Free some space: exports, archives and the SQLite database are there.",
}
DISK_FULL = declare_error(
    **_FREE_SPACE,
    means="Uploads, exports and backups soon fail. With SQLite, so do labels.",
)
DISK_NEARLY_FULL = declare_warning(**_FREE_SPACE, means="A large export or a backup may not fit.")
JOBS_WAIT = declare_error(
    "{number} jobs have waited for more than {minutes} minutes.",
    means="Imports, exports or archives do not begin. Most often no worker is running.",
    remedy="See the `worker` check and the worker's log.",
)
JOBS_FAILED = declare_warning(
    "{number} jobs failed or were cancelled in the last 24 hours.",
    means="Somebody may wait for a file or an import that will not come.",
    remedy="The Jobs page of each project gives the reasons.",
)
KEYS_MISSING = declare_warning(
    "Not set here: {names}.",
    means="Runs at the endpoints that name these variables pause, and their test calls fail.",
    remedy="Set them in the environment of server and workers, or remove their endpoints.",
)
NO_EMAIL = declare_warning(
    "E-mail goes to the server's output, so nobody receives links.",
    means="People who forget their password need a sign-in link from a lead. Invitations must be "
    "handed over.",
    remedy="Set EMAIL_URL and EMAIL_FROM.",
)
_MAIL = {
    "means": "People who ask for a new password wait for an e-mail that does not come.",
    "remedy": "Check host, port, user and password in EMAIL_URL.",
}
EMAIL_REFUSED = declare_error("The mail server refuses the connection.", **_MAIL)
EMAIL_AWAY = declare_error("The mail server does not answer.", **_MAIL)
SIGN_IN_FAILS = declare_error(
    "The service of OPENID_ISSUER cannot be used. {reason}",
    means="The button of the sign-in service does not work. Passwords do.",
    remedy="Check that OPENID_ISSUER is exactly the `issuer` given at "
    f"{identity.DISCOVERY_PATH}, and that this machine can reach the service.",
)


def check_settings() -> Finding:
    """Check the settings that control access."""
    if "*" in settings.ALLOWED_HOSTS:
        return ANY_HOST.found()
    elsewhere = set(settings.ALLOWED_HOSTS) - {"localhost", "127.0.0.1", "[::1]"}
    if settings.DEBUG and elsewhere:
        return DEBUG_SHOWN.found()
    if elsewhere and not settings.SITE_URL.startswith("https://"):
        return NO_TLS.found()
    return report_ok("The settings can be read and are consistent.")


def check_secret_key() -> Finding:
    """Check that SECRET_KEY is random, and that the file with it cannot be read by other users."""
    key = settings.SECRET_KEY
    threes = {key[at : at + 3] for at in range(len(key) - 2)}
    kept = settings.VAR_DIR / "secret_key"
    if len(threes) < MIN_KEY_VARIETY * len(key) or key.startswith("django-insecure"):
        return WEAK_KEY.found()
    if settings.EMBEDDED and kept.exists() and kept.stat().st_mode & 0o077:
        return OPEN_KEY.found(file=kept)
    return report_ok("SECRET_KEY is long and looks random.")


def check_clock() -> Finding:
    """Check this machine's clock against the clock of the database server."""
    if connection.vendor != "postgresql":
        return report_ok(f"The time here is {timezone.now():%Y-%m-%d %H:%M:%S} UTC.")
    off = abs((timezone.now() - clock.now()).total_seconds())
    if off > MAX_CLOCK_SECONDS:
        return CLOCKS_DIFFER.found(seconds=off)
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
    found = MANY_CONNECTIONS.found(used=used, most=most)
    return found if used > MAX_CONNECTION_SHARE * most else report_ok(found.says)


def check_files() -> Finding:
    """Check that data files can be written and that style sheets are collected."""
    made = settings.VAR_DIR.iterdir() if settings.VAR_DIR.is_dir() else ()
    for folder in (settings.VAR_DIR, *(each for each in made if each.is_dir())):
        if not _can_write(folder):
            return NOT_WRITABLE.found(folder=folder, user=os.getuid())
    collected = settings.STATIC_ROOT / "staticfiles.json"
    if not (settings.EMBEDDED or settings.DEBUG or collected.exists()):
        return NOT_COLLECTED.found()
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
    """Check the free space where data files are: less than half a gigabyte is an error, less than
    five a warning."""
    free = shutil.disk_usage(settings.VAR_DIR).free
    problem = DISK_FULL if free < MIN_DISK_BYTES else DISK_NEARLY_FULL
    found = problem.found(number=f"{free / 2**30:.1f}", folder=settings.VAR_DIR)
    return found if free < LOW_DISK_BYTES else report_ok(found.says)


def check_jobs() -> Finding:
    """Check for jobs that have been waiting for a long time or have failed recently."""
    now = timezone.now()
    due = Job.objects.filter(~WAITS_FOR_PERSON, state=Job.State.WAITING)
    if waiting := due.filter(created_at__lt=now - LONG_WAIT).count():
        return JOBS_WAIT.found(number=waiting, minutes=LONG_WAIT.seconds // 60)
    day = now - timedelta(days=1)
    if failed := Job.objects.filter(state=Job.State.FAILED, finished_at__gt=day).count():
        return JOBS_FAILED.found(number=failed)
    return report_ok("No job has waited long, and none failed in the last 24 hours.")


def check_evaluator_keys() -> Finding:
    """Check that this process has the API keys of the endpoints."""
    used = Endpoint.objects.filter(Q(archived_at=None) | Q(runs__in=Run.objects.going_on()))
    named = used.exclude(key_variable="").values_list("key_variable", flat=True)
    missing = sorted({name for name in named if not keys.is_key_set(name)})
    if missing:
        return KEYS_MISSING.found(names=", ".join(missing))
    return report_ok("All keys that endpoints need are set here.")


def check_email() -> Finding:
    """Check that the mail server accepts a connection with the user and password. No mail is
    sent."""
    if not settings.EMAIL_HOST:
        found = NO_EMAIL.found()
        return found if settings.SITE_URL else report_ok(found.says)
    link: Any = mail.get_connection()
    try:
        link.open()
        link.close()
    except OSError as error:
        return (EMAIL_REFUSED if isinstance(error, SMTPException) else EMAIL_AWAY).found()
    return report_ok("The mail server accepts our sign-in.")


def check_sign_in() -> Finding:
    """Check that the single sign-on service works."""
    if settings.OPENID is None:
        return report_ok("With password only: OPENID_ISSUER is not set.")
    try:
        identity.fetch_json(identity.discover(settings.OPENID.issuer)["jwks_uri"])
    except identity.DiscoveryError as error:
        return SIGN_IN_FAILS.found(reason=error)
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
# What each check can find.
PROBLEMS: dict[str, tuple[Problem, ...]] = {
    "settings": (ANY_HOST, DEBUG_SHOWN, NO_TLS),
    "secret-key": (WEAK_KEY, OPEN_KEY),
    **readiness.PROBLEMS,
    "connections": (MANY_CONNECTIONS,),
    "clock": (CLOCKS_DIFFER,),
    "jobs": (JOBS_WAIT, JOBS_FAILED),
    "files": (NOT_WRITABLE, NOT_COLLECTED),
    "disk": (DISK_FULL, DISK_NEARLY_FULL),
    "evaluator-keys": (KEYS_MISSING,),
    "e-mail": (NO_EMAIL, EMAIL_REFUSED, EMAIL_AWAY),
    "sign-in": (SIGN_IN_FAILS,),
    "worker-here": readiness.PROBLEMS["worker"],
}
