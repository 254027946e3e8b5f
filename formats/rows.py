"""What readers yield: rows, unusable rows and errors; and the limits on their input."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class FormatError(Exception):
    """The whole file is unusable. The message names the file, the place and how to fix it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record: `values` by column name, text or, from JSON, any JSON value.

    `file` is the file's name (its path inside an archive), `line` where the row starts, from 1.
    """

    file: str
    line: int
    values: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        # Used when rows are sent between processes; the default takes five times as long.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be used, while the records around it can.

    `field` is the column at fault, empty if the whole row is.
    """

    file: str
    line: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits beyond which a file is refused.

    `field_bytes` and `row_bytes` limit one value and one record in UTF-8, `columns` the number of
    columns in a header. The others guard against zip bombs: `total_bytes` unpacked, `ratio` of
    unpacked to packed bytes, and `files` in an archive or folder.
    """

    field_bytes: int = 1_000_000
    row_bytes: int = 20_000_000
    total_bytes: int = 1 << 30
    ratio: int = 200
    files: int = 10_000
    columns: int = 10_000


DEFAULT_LIMITS = Limits()

Rows = Iterator[Row | BadRow]


def check_size(value: str, limits: Limits, file: str, line: int, field: str) -> None:
    """Raise FormatError if the text is longer than the limit for a field."""
    # A character takes at most four bytes, so most texts need no encoding to be measured.
    if 4 * len(value) > limits.field_bytes < len(value.encode("utf-8", "surrogatepass")):
        raise FormatError(
            f"{file}, line {line}: the field '{field}' is longer than {limits.field_bytes:,} "
            "bytes. Shorten it or split the item."
        )
