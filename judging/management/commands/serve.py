import signal
from argparse import ArgumentParser
from contextlib import nullcontext
from types import FrameType
from typing import Any, NoReturn

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.wsgi import get_wsgi_application
from django.urls import reverse
from waitress.server import create_server

from annotation.models import Account
from judging.jobs import embedded_worker
from judging.runs.engine import ask

THREADS = 8
FIRST_ADMIN = "admin"
WORKER_COMMAND = "celery -A config worker --without-gossip --without-mingle"


class Command(BaseCommand):
    help = "Start the server in one process; without REDIS_URL, it runs the worker too."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        if not settings.WHITENOISE_USE_FINDERS:
            # With Redis, names of style sheets contain a digest, so they must be collected first.
            call_command("collectstatic", interactive=False, verbosity=0)
        server = _server(host, port)
        call_command("migrate", interactive=False, verbosity=0)
        with nullcontext() if settings.REDIS_URL else embedded_worker.running_worker():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _leave)
            address = f"http://{host}:{port}"
            self.stdout.write(f"Blindspot is at {address} (Ctrl-C stops it).")
            if settings.EMBEDDED and not _has_accounts():
                self.stdout.write(
                    "Nobody can sign in yet. Choose the password of the site admin, "
                    f"{FIRST_ADMIN!r}, at {address}{_first_admin_link()}"
                )
            if settings.REDIS_URL:
                self.stdout.write(f"Start workers separately: {WORKER_COMMAND}")
            self.stdout.flush()
            server.run()
            server.close()


def _has_accounts() -> bool:
    """True if there is another account than one that was made for the first site admin and waits
    for its password."""
    waits = {"username": FIRST_ADMIN, "last_login": None}
    return Account.objects.exclude(password__startswith=UNUSABLE_PASSWORD_PREFIX, **waits).exists()


def _first_admin_link() -> str:
    """Return the path at which the first site admin sets a password, once; the account is made if
    it is not there."""
    account, made = Account.objects.get_or_create(
        username=FIRST_ADMIN, defaults={"is_staff": True, "is_superuser": True}
    )
    if made:
        account.set_unusable_password()
        account.save()
    key = default_token_generator.make_token(account)
    return reverse("account_reset_password_from_key", args=[user_pk_to_url_str(account), key])


def _server(host: str, port: int) -> Any:
    try:
        return create_server(
            get_wsgi_application(),
            host=host,
            port=port,
            threads=THREADS,
            clear_untrusted_proxy_headers=True,
        )
    except OSError as error:
        raise CommandError(
            f"Cannot listen at {host}:{port} ({error.strerror or error}). Stop the program that"
            " uses this port, or choose another one with --port."
        ) from error


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Shut down cleanly; a second signal ends the process at once."""
    signal.signal(number, signal.SIG_DFL)
    # Slices end while the last pages are served; together this takes less than 10 s.
    ask.STOP.set()
    raise SystemExit(0)
