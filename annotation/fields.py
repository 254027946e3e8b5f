"""The kinds of field that a task type can ask for. A new kind is one class here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class FieldError(ValueError):
    """An answer that its field does not take; the message says what it would take."""


class Field(Protocol):
    name: str
    title: str

    def clean(self, answer: object) -> Any: ...


@dataclass(frozen=True)
class Option:
    """One choice as the annotator sees it; `key` is the digit that picks it."""

    value: str
    title: str
    help: str
    key: str


@dataclass(frozen=True)
class Choice:
    """Exactly one of a few options."""

    name: str
    title: str
    options: tuple[Option, ...]

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> "Choice":
        options = tuple(
            Option(entry["value"], entry["title"], entry.get("help", ""), str(number))
            for number, entry in enumerate(definition["choices"], start=1)
        )
        return cls(definition["name"], definition["title"], options)

    def clean(self, answer: object) -> str:
        values = [option.value for option in self.options]
        if answer not in values:
            raise FieldError(f"{self.title}: choose one of {', '.join(values)}.")
        return str(answer)


KINDS = {"choice": Choice}
