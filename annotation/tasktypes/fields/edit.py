"""A text of the item, edited by the annotator."""

from dataclasses import dataclass
from typing import Any

from annotation.tasktypes.fields.text import LONGEST_TEXT, Text
from annotation.tasktypes.toml_tables import TomlTable


@dataclass(frozen=True, kw_only=True)
class Edit(Text):
    """An edited text of the item; `text` names the text that the annotator edits."""

    kind = "edit"
    asks_for = 'a text of the item to rewrite; text = "response" says which'
    in_own_words = False
    limit: int = LONGEST_TEXT
    text: str = ""

    @classmethod
    def read_own(cls, table: TomlTable) -> dict[str, Any]:
        """Read the maximum number of characters and the name of the text to edit. Raises
        `DeclarationError`."""
        limit = table.whole("limit", LONGEST_TEXT, 1, LONGEST_TEXT)
        return {"limit": limit, "text": table.text("text")}
