"""Yes or no."""

from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields.base import Field, Option


@dataclass(frozen=True, kw_only=True)
class YesNo(Field):
    """Yes or no, stored as true or false."""

    kind = "yesno"
    asks_for = "yes or no"
    default_level = "nominal"
    decides = True
    is_word = True
    picks_one = True
    options: tuple[Option, ...] = (Option("yes", "Yes", key="1"), Option("no", "No", key="2"))

    def clean(self, answer: object) -> bool:
        """Return True or False for yes, no, true or false, in upper or lower case. Raises
        `FieldError`."""
        value = {"yes": True, "true": True, "no": False, "false": False}.get(str(answer).lower())
        if value is None:
            raise self.error()
        return value

    def answer_values(self, answer: Any) -> frozenset[str]:
        """Return the word yes or no."""
        return frozenset(["yes" if answer else "no"])
