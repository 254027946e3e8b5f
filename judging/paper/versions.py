"""Which program, libraries and tables make the figures."""

import tomllib
from importlib import metadata

from django.conf import settings
from django.db.migrations.loader import MigrationLoader

LIBRARIES = ("Django", "numpy", "scipy", "altair", "vl-convert-python")
HALVES = frozenset({"annotation", "judging"})


def program() -> str:
    """This program's version."""
    text = (settings.BASE_DIR / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


def libraries() -> dict[str, str]:
    """The versions of what figures and charts rest on."""
    return {name: metadata.version(name) for name in LIBRARIES}


def schema() -> dict[str, str]:
    """The last migration of each half."""
    found = MigrationLoader(None).graph.leaf_nodes()
    return {app: name for app, name in found if app in HALVES}
