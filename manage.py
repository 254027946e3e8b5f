#!/usr/bin/env python
import os
import signal
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line


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
    except BrokenPipeError:
        # Whoever read it, `head` for one, has seen enough. The rest goes nowhere, since Python
        # would write it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


if __name__ == "__main__":
    main()
