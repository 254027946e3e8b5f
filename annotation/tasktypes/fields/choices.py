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
        """The options, whose values are words. Raises `DeclarationError`."""
        return {"options": options.read_options(table, options.read_word)}

    @property
    def takes(self) -> str:
        return f"choose one or more of {', '.join(str(o.value) for o in self.options)}."

    def clean(self, answer: object) -> list[str]:
        """The chosen values without duplicates, in the order of the options. Raises
        `FieldError`."""
        if isinstance(answer, str) or not isinstance(answer, Sequence):
            raise self.error(f"give a list of {', '.join(str(o.value) for o in self.options)}.")
        picked = [super(Choices, self).clean(one) for one in answer]
        return [str(option.value) for option in self.options if option.value in picked]

    def from_post(self, post: Post) -> object:
        """The list of ticked values; None if there are none."""
        return [value for value in post.getlist(self.name) if value] or None

    def answer_values(self, answer: Any) -> frozenset[str]:
        """Each chosen value."""
        return frozenset(answer)
