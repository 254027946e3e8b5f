"""Several of a few options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields import options
from annotation.tasktypes.fields.base import Field, Post
from annotation.tasktypes.toml_tables import TomlTable


@dataclass(frozen=True, kw_only=True)
class Choices(Field):
    """Several of a few options, stored in the order of their declaration."""

    kind = "choices"
    asks_for = "several of a few options"
    needed = False
    default_level = "nominal"
    has_several = True

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read the options, whose values are words. Raises `DeclarationError`."""
        return {"options": options.read_options(table, options.read_word)}

    @property
    def takes(self) -> str:
        return f"choose one or more of {', '.join(str(o.value) for o in self.options)}."

    def clean(self, answer: object) -> list[str]:
        """Return the chosen values without duplicates, in the order of the options. Raises
        `FieldError`."""
        if isinstance(answer, str) or not isinstance(answer, Sequence):
            raise self.error(f"give a list of {', '.join(str(o.value) for o in self.options)}.")
        picked = [super(Choices, self).clean(one) for one in answer]
        return [str(option.value) for option in self.options if option.value in picked]

    def from_post(self, post: Post) -> object:
        """Return the list of ticked values; None if nothing is ticked."""
        return [value for value in post.getlist(self.name) if value] or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        """Return each chosen value."""
        return frozenset(answer)
