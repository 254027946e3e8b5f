"""Free text."""

from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields.base import Field
from annotation.tasktypes.toml_tables import TomlTable

TEXT_LIMIT = 10_000
LONGEST_TEXT = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Text(Field):
    """Free text."""

    kind = "text"
    asks_for = "free text"
    needed = False
    is_written = True
    in_own_words = True
    limit: int = TEXT_LIMIT

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read the maximum number of characters of an answer. Raises `DeclarationError`."""
        return {"limit": table.whole("limit", TEXT_LIMIT, 1, LONGEST_TEXT)}

    @property
    def takes(self) -> str:
        return "write something."

    def clean(self, answer: object) -> str:
        """Return the text with line feeds as its line breaks. Raises `FieldError` if the text is
        too long or has a character that cannot be stored."""
        if not isinstance(answer, str):
            raise self.error("write text.")
        # A browser sends every line break of a text area as CR LF, whatever the original text had.
        text = answer.replace("\r\n", "\n")
        if len(text) > self.limit:
            raise self.error(f"write at most {self.limit:,} characters.")
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise self.error("remove the character that cannot be saved (NUL or half of a pair).")
        return text
