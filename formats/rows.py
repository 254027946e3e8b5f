"""What readers yield: rows, unusable rows and errors. Also the limits on the input of readers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_KEY_LENGTH = 200
# What is said of a row is as short as people read it, however much stands in the row.
MAX_REASON_LENGTH, MAX_FIELD_LENGTH = 500, 200


class FormatError(Exception):
    """The whole file cannot be used. The message names the file and the place, and says how to fix
    it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record. `values` has the values by column name: text or, if read from JSON, any JSON
    value.

    `file` is the name of the file (in an archive, its path there). `line` is the line where the row
    starts, from 1. `number` is the number that a spreadsheet shows for the row; 0 if the rows of
    the format are its lines.
    """

    file: str
    line: int
    values: dict[str, Any]
    number: int = 0

    def bad(self, field: str, reason: str, value: str = "") -> "BadRow":
        """Return a BadRow that rejects this row."""
        key = self.values.get("key")
        shown = key.strip()[:MAX_KEY_LENGTH] if isinstance(key, str) else ""
        number = self.number
        return BadRow(self.file, self.line, field, reason, value, number, shown, is_read=True)

    def __reduce__(self) -> tuple[Any, ...]:
        # Used when rows are sent between processes; the default method takes five times as long.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be used; the records around it may still be good.

    `field` is the column with the error; it is empty if the whole row is wrong. `value` is what
    stands there, if another value can be given for all rows with it. `number` is that of `Row`, and
    `key` the key of the row; "" if it has none. `is_read` is true if the file has a row with values
    here, which can be corrected.
    """

    file: str
    line: int
    field: str
    reason: str
    value: str = ""
    number: int = 0
    key: str = ""
    is_read: bool = False

    def __post_init__(self) -> None:
        for name, most in (("reason", MAX_REASON_LENGTH), ("field", MAX_FIELD_LENGTH)):
            if len(said := getattr(self, name)) > most:
                object.__setattr__(self, name, f"{said[: most - 1]}…")

    @property
    def row(self) -> int:
        """The number of the row as people see it: in the spreadsheet, otherwise in the lines."""
        return self.number or self.line

    @property
    def place(self) -> str:
        """The place of the row in its file, in words."""
        return f"{'row' if self.number else 'line'} {self.row}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits beyond which a file is refused.

    `field_bytes` and `row_bytes` limit one value and one record, in bytes of UTF-8; `columns`
    limits the number of columns in a header. The other limits protect against zip bombs:
    `total_bytes` is the number of unpacked bytes, `ratio` is unpacked to packed bytes, and `files`
    is the number of files in an archive or folder. What unpacks to at most `small_bytes` may have
    any ratio. `blank_rows` is the number of blank rows in a file, which take time and hold nothing.
    """

    field_bytes: int = 1_000_000
    row_bytes: int = 20_000_000
    total_bytes: int = 1 << 30
    ratio: int = 200
    files: int = 10_000
    columns: int = 10_000
    small_bytes: int = 10_000_000
    blank_rows: int = 1_000_000

    def most_unpacked(self, packed: int) -> int:
        """The number of bytes to which a file of `packed` bytes may unpack."""
        return min(self.total_bytes, max(self.small_bytes, self.ratio * packed))


DEFAULT_LIMITS = Limits()

Rows = Iterator[Row | BadRow]


def as_printable(text: str) -> str:
    """Return the text with escapes for the characters that would move a terminal or cannot be
    seen."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def check_size(value: str, limits: Limits, file: str, line: int, field: str) -> None:
    """Raise FormatError if the text is longer than the limit for a field."""
    # A character takes at most four bytes. So most texts need not be encoded to know that they fit.
    if 4 * len(value) > limits.field_bytes < len(value.encode("utf-8", "surrogatepass")):
        raise FormatError(
            f"{file}, line {line}: the field '{field[:MAX_FIELD_LENGTH]}' is longer than "
            f"{limits.field_bytes:,} bytes. Shorten it or split the item."
        )
