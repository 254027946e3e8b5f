"""Task types: what people see and are asked, each declared in one file of `task_types/`."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from annotation import fields
from annotation.fields import Choice

FOLDER = Path(__file__).parent / "task_types"


class TaskTypeError(ValueError):
    """A task type file that cannot be used; the message names the file and the place."""


@dataclass(frozen=True)
class Text:
    """A text that an item of this type holds."""

    name: str
    title: str
    required: bool


@dataclass(frozen=True)
class TaskType:
    """What an item of this type holds and what people are asked about it.

    `diff` names the two texts that are compared, `correctable` the text that annotators may
    mend. The answer to the first field is the label's choice and can become the resolution.
    """

    slug: str
    title: str
    question: str
    texts: tuple[Text, ...]
    diff: tuple[str, str] | None
    correctable: str
    fields: tuple[Choice, ...]

    @property
    def deciding(self) -> Choice:
        return self.fields[0]

    def clean(self, answers: Mapping[str, object]) -> dict[str, Any]:
        """The answers, checked by their fields. Raises `fields.FieldError`."""
        unknown = set(answers) - {field.name for field in self.fields}
        if unknown:
            raise fields.FieldError(f"This task does not ask for {', '.join(sorted(unknown))}.")
        return {field.name: field.clean(answers.get(field.name)) for field in self.fields}


def from_definition(definition: Mapping[str, Any]) -> TaskType:
    """The task type that a parsed file, or a stored version of one, declares."""
    try:
        texts = tuple(Text(t["name"], t["title"], t["required"]) for t in definition["texts"])
        asked = tuple(fields.KINDS[f["kind"]].from_definition(f) for f in definition["fields"])
        diff = definition.get("diff")
        return TaskType(
            slug=definition["slug"],
            title=definition["title"],
            question=definition["question"],
            texts=texts,
            diff=(diff["from"], diff["to"]) if diff else None,
            correctable=definition.get("correctable", ""),
            fields=asked,
        )
    except KeyError as error:
        slug = definition.get("slug", "?")
        raise TaskTypeError(
            f"Task type {slug!r}: {error.args[0]!r} is missing or unknown."
        ) from error


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """Every file's content by slug; a file whose name is not its slug is refused."""
    found = {}
    for path in sorted(FOLDER.glob("*.toml")):
        definition = tomllib.loads(path.read_text(encoding="utf-8"))
        if definition.get("slug") != path.stem:
            raise TaskTypeError(f"{path.name}: slug must be {path.stem!r}, the name of the file.")
        from_definition(definition)
        found[path.stem] = definition
    return found


def digest(definition: Mapping[str, Any]) -> str:
    """SHA-256 of a definition; the order of its keys does not matter."""
    canonical = json.dumps(definition, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
