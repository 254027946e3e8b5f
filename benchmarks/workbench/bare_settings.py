"""The application's own settings with other URLs, to measure the server and the framework alone."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.workbench.bare"
