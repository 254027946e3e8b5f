"""A kind of field that is added for one test, found as the others were."""

import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from annotation.tasktypes import fields


def add_kind(
    name: str,
    source: str,
    template: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    """Add the kind by a file and a template in `folder`."""
    (folder / f"{name}.py").write_text(source)
    (folder / "annotation/fields").mkdir(parents=True)
    (folder / f"annotation/fields/_{name}.html").write_text(template)
    places = [*fields.__path__, str(folder)]
    monkeypatch.setattr(fields, "__path__", places)
    sys.modules.pop(f"annotation.tasktypes.fields.{name}", None)
    for kind, found in fields.find_kinds(places).items():
        monkeypatch.setitem(fields.FIELD_KINDS, kind, found)
    templates = deepcopy(settings.TEMPLATES)
    templates[0]["DIRS"] = [*templates[0]["DIRS"], folder]
    settings.TEMPLATES = templates
