#!/usr/bin/env python
import os
import signal
import sys

try:
    import django  # noqa: F401
except ImportError:
    sys.exit(
        "Django is not installed for this Python. Use that of the environment:\n"
        "    make setup\n    .venv/bin/python manage.py ..."
    )

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError, ProgrammingError, connection


def explain_database() -> str:
    """Why the database cannot be used and what to do; "" if neither the connection nor the tables
    are the reason."""
    # Imported here, so that other commands do not wait for it.
    from django.db.migrations.executor import MigrationExecutor

    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        lacks = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except OperationalError as error:
        reason, *_ = str(error).partition("\n")
        return f"The database cannot be used: {reason}. Check DATABASE_URL."
    if lacks:
        return "The database lacks tables or columns. Run `python manage.py migrate` first."
    return ""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except ImproperlyConfigured as error:
        # The words name the variable and the remedy; where the program found out helps nobody.
        sys.stderr.write(f"The settings are not valid: {error}\n")
        # 1 is a verdict of `gate`: that a run misses its limits.
        sys.exit(3 if sys.argv[1:2] == ["gate"] else 1)
    except (OperationalError, ProgrammingError):
        if not (explanation := explain_database()):
            raise
        sys.stderr.write(f"{explanation}\n")
        sys.exit(3 if sys.argv[1:2] == ["gate"] else 1)
    except BrokenPipeError:
        # Whoever read it, `head` for one, has seen enough. The rest goes nowhere, since Python
        # would write it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


if __name__ == "__main__":
    main()
