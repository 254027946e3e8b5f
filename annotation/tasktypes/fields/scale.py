"""One of a few numbers."""

from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields import options
from annotation.tasktypes.fields.base import Field
from annotation.tasktypes.toml_tables import TomlTable


@dataclass(frozen=True, kw_only=True)
class Scale(Field):
    """One of a few numbers, each with a title."""

    kind = "scale"
    asks_for = "one of a few numbers"
    default_level = "ordinal"
    decides = True
    is_number = True
    picks_one = True

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read the options, whose values are numbers. Raises `DeclarationError`."""
        return {"options": options.read_options(table, options.read_number)}

    def describe(self, answer: Any) -> str:
        """Return the number with its title; the number alone if it is not an option."""
        titles = [f"{option.value} {option.title}" for option in self.chosen(answer)]
        return titles[0] if titles else str(answer)
