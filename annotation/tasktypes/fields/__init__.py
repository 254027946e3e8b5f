"""The kinds of field that a task type can ask for.

Each kind is a file in this folder with its class, and a template of the same name in
`templates/annotation/fields/`. The rest of the program uses the attributes of the class, which are
listed at `base.Field`.
"""

import pkgutil
from collections.abc import Iterable
from importlib import import_module

from annotation.tasktypes.fields.base import Condition, Field, Option, Post, is_empty
from annotation.tasktypes.fields.choice import Choice
from annotation.tasktypes.fields.edit import Edit
from annotation.tasktypes.fields.text import Text

__all__ = [
    "FIELD_KINDS",
    "Choice",
    "Condition",
    "Edit",
    "Field",
    "Option",
    "Post",
    "Text",
    "is_empty",
]


def find_kinds(folder: Iterable[str] = __path__) -> dict[str, type[Field]]:
    """Find the classes in a folder, by the name of their kind."""
    for found in pkgutil.iter_modules(folder):
        import_module(f"{__name__}.{found.name}")
    classes = [Field]
    for one in classes:
        classes += one.__subclasses__()
    return {one.kind: one for one in classes if one.kind}


FIELD_KINDS: dict[str, type[Field]] = find_kinds()
