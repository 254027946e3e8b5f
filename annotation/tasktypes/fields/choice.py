"""One of a few options."""

from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields import options
from annotation.tasktypes.fields.base import Field
from annotation.tasktypes.toml_tables import TomlTable


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """Exactly one of a few options."""

    kind = "choice"
    asks_for = "one of a few options"
    default_level = "nominal"
    decides = True
    is_word = True
    picks_one = True

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read the options, whose values are words. Raises `DeclarationError`."""
        return {"options": options.read_options(table, options.read_word)}
