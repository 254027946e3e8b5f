import signal
from argparse import ArgumentParser
from contextlib import nullcontext
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.wsgi import get_wsgi_application
from waitress.server import create_server

from judging.jobs import embedded_worker
from judging.runs.engine import ask

THREADS = 8


class Command(BaseCommand):
    help = "Serve the application in one process, with its worker where no REDIS_URL names others."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        if not settings.WHITENOISE_USE_FINDERS:
            # Beside a Redis pages name their style sheets by what is in them, and find none else.
            call_command("collectstatic", interactive=False, verbosity=0)
        server = _server(host, port)
        call_command("migrate", interactive=False, verbosity=0)
        with nullcontext() if settings.REDIS_URL else embedded_worker.running_worker():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _leave)
            self.stdout.write(f"Blindspot is at http://{host}:{port} (Ctrl-C stops it).")
            if settings.REDIS_URL:
                self.stdout.write("Workers are processes of their own: celery -A config worker")
            self.stdout.flush()
            server.run()
            server.close()


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
            f"Cannot listen at {host}:{port} ({error.strerror or error}). Stop what listens there,"
            " or name another port with --port."
        ) from error


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Stop serving in order; the same signal again ends the process at once."""
    signal.signal(number, signal.SIG_DFL)
    # Slices end while the last pages are being served, so that both together stay under 10 s.
    ask.STOP.set()
    raise SystemExit(0)
