"""What the doctor looks at besides what has to be there at all: settings, clock, files, mail."""

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
from django.utils import timezone

from annotation.models import Job
from annotation.uploads.jobs import FOR_A_PERSON
from judging import clock
from judging.models import Endpoint
from judging.providers import keys
from operation import identity, readiness
from operation.findings import Finding, doubtful, fine, wrong

# A worker looks every two seconds, and slices and programs end within minutes.
WAITS_LONG = timedelta(minutes=10)
# Bytes free where files are kept.
LITTLE, HARDLY_ANY = 5 * 2**30, 2**29
# Of the threes of characters in a random key, so many differ, even if it is hexadecimal.
VARIED = 0.8
# Of the connections that the server takes.
NEARLY_ALL = 0.8
# Seconds; leases are shorter than a minute.
CLOCKS_APART = 2.0


OPENID_REMEDY = (
    "See that OPENID_ISSUER is, to the last letter, what the service calls `issuer` at"
    f" {identity.PLACE}, and that this machine reaches it."
)


def site() -> Finding:
    """The settings that decide who can reach what, and how."""
    if "*" in settings.ALLOWED_HOSTS:
        return wrong(
            "ALLOWED_HOSTS takes every name, so links in e-mail can be made to lead elsewhere.",
            "Name the hosts under which people reach the site.",
        )
    elsewhere = set(settings.ALLOWED_HOSTS) - {"localhost", "127.0.0.1", "[::1]"}
    if settings.DEBUG and elsewhere:
        return wrong("DEBUG shows the program to whoever meets an error.", "Set DEBUG=0.")
    if elsewhere and not settings.SITE_URL.startswith("https://"):
        return doubtful(
            "Others reach the site, and SITE_URL names no https:// address.",
            "Put a TLS proxy in front and set SITE_URL: it turns on HSTS and secure cookies.",
        )
    return fine("They are read and fit together.")


def secret_key() -> Finding:
    key = settings.SECRET_KEY
    threes = {key[at : at + 3] for at in range(len(key) - 2)}
    kept = settings.VAR_DIR / "secret_key"
    if len(threes) < VARIED * len(key) or key.startswith("django-insecure"):
        return wrong(
            "SECRET_KEY can be guessed: it repeats itself, or came with an example.",
            "Set one of 50 random characters or more; everybody has to sign in again.",
        )
    if settings.EMBEDDED and kept.exists() and kept.stat().st_mode & 0o077:
        return doubtful(f"Others can read {kept}.", f"Run `chmod 600 {kept}`.")
    return fine("It is long and looks random.")


def hours() -> Finding:
    """Whether this machine's clock is the database server's."""
    if connection.vendor != "postgresql":
        return fine(f"It is {timezone.now():%Y-%m-%d %H:%M:%S} UTC here.")
    off = abs((timezone.now() - clock.now()).total_seconds())
    if off > CLOCKS_APART:
        says = f"It differs by {off:.0f} s from the database server's."
        return doubtful(says, "Let both machines keep time by NTP.")
    return fine("It is the database server's.")


def connections() -> Finding:
    if connection.vendor != "postgresql":
        return fine("SQLite needs none.")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity"
        )
        [used, most] = cursor.fetchone()
    says = f"{used} of {most} connections of the database server are in use."
    if used > NEARLY_ALL * most:
        remedy = "Raise max_connections, start fewer processes, or put PgBouncer before it."
        return doubtful(says, remedy)
    return fine(says)


def files() -> Finding:
    """Whether what is made while running can be kept, and pages find their style sheets."""
    made = settings.VAR_DIR.iterdir() if settings.VAR_DIR.is_dir() else ()
    for folder in (settings.VAR_DIR, *(each for each in made if each.is_dir())):
        if not _can_write(folder):
            who = f"Let the user who runs this write there (uid {os.getuid()})."
            return wrong(f"{folder} cannot be written.", who)
    collected = settings.STATIC_ROOT / "staticfiles.json"
    if not (settings.EMBEDDED or settings.DEBUG or collected.exists()):
        remedy = "Run `python manage.py collectstatic --no-input`, as the image does."
        return wrong("Style sheets and scripts are not collected: no page opens.", remedy)
    return fine(f"{settings.VAR_DIR} can be written.")


def _can_write(folder: Path) -> bool:
    part = folder / f".doctor-{secrets.token_hex(4)}"
    try:
        part.touch()
        part.unlink()
    except OSError:
        return False
    return True


def disk() -> Finding:
    free = shutil.disk_usage(settings.VAR_DIR).free
    says = f"{free / 2**30:.1f} GB are free where {settings.VAR_DIR} is."
    remedy = "Make room: exports and archives are kept there, and SQLite's database."
    if free < HARDLY_ANY:
        return wrong(says, remedy)
    return doubtful(says, remedy) if free < LITTLE else fine(says)


def jobs() -> Finding:
    """Whether imports, exports and archives wait for long, or failed lately."""
    now = timezone.now()
    due = Job.objects.filter(~FOR_A_PERSON, state=Job.State.WAITING)
    if waiting := due.filter(created_at__lt=now - WAITS_LONG).count():
        says = f"{waiting} wait for more than {WAITS_LONG.seconds // 60} minutes."
        return wrong(says, "See what is said of `worker`, and the worker's log.")
    day = now - timedelta(days=1)
    if failed := Job.objects.filter(state=Job.State.FAILED, finished_at__gt=day).count():
        says = f"{failed} failed or were cancelled within a day."
        return doubtful(says, "Each says why on its project's page of jobs.")
    return fine("None waits for long, none failed within a day.")


def evaluator_keys() -> Finding:
    """Whether this process finds the keys of the endpoints."""
    named = Endpoint.objects.exclude(key_variable="").values_list("key_variable", flat=True)
    missing = sorted({name for name in named if not keys.is_set(name)})
    if missing:
        says = f"Not set here: {', '.join(missing)}."
        remedy = "Set them in the environment of server and workers, or drop their endpoints."
        return doubtful(says, remedy)
    return fine("All that endpoints name are set here.")


def email() -> Finding:
    if not settings.EMAIL_HOST:
        says = "It is written to the server's output: nobody gets links by it."
        if not settings.SITE_URL:
            return fine(says)
        return doubtful(says, "Set EMAIL_URL and EMAIL_FROM.")
    link: Any = mail.get_connection()
    try:
        link.open()
        link.close()
    except OSError as error:
        says = "refuses us" if isinstance(error, SMTPException) else "does not answer"
        remedy = "See that EMAIL_URL has its host, port, user and password."
        return wrong(f"The mail server {says}.", remedy)
    return fine("The mail server takes what we hand in.")


def sign_in() -> Finding:
    """Whether the service by which people sign in besides can be used."""
    if settings.OPENID is None:
        return fine("By password alone: no OPENID_ISSUER is set.")
    try:
        identity.fetch(identity.discover(settings.OPENID.issuer)["jwks_uri"])
    except identity.Unusable as error:
        return wrong(f"The service of OPENID_ISSUER cannot be used. {error}", OPENID_REMEDY)
    return fine(f"{settings.OPENID.name} answers.")


def worker_here() -> Finding:
    return readiness.worker_here(socket.gethostname())


CHECKS: dict[str, Callable[[], Finding]] = {
    "settings": site,
    "secret-key": secret_key,
    **readiness.CHECKS,
    "connections": connections,
    "clock": hours,
    "jobs": jobs,
    "files": files,
    "disk": disk,
    "evaluator-keys": evaluator_keys,
    "e-mail": email,
    "sign-in": sign_in,
}
# Only asked for by name: not every machine has a worker.
BY_NAME = {"worker-here": worker_here}
