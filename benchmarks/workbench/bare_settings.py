"""The application's own settings with other addresses, to see what server and framework take."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.workbench.bare"
