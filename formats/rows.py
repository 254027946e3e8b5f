"""What readers yield, what they refuse, and how much they take."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class FormatError(Exception):
    """A whole file is unusable. The message names the file, the place and the remedy."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record: `values` by column name, text or, from JSON, any JSON value.

    `file` is the file's name (its path inside an archive), `line` where the row starts, from 1.
    """

    file: str
    line: int
    values: dict[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        # As rows go from one process to another; the usual way takes five times as long.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be used while its neighbours can.

    `field` is the column at fault, empty if it is the row as a whole.
    """

    file: str
    line: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is taken before a file is refused.

    `field_bytes` and `row_bytes` bound one value and one record in UTF-8, `columns` how many a
    header may name. The others guard against archives made to burst: `total_bytes` unpacked,
    `ratio` of unpacked to packed bytes, and `files` in an archive or folder.
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
    """Raise FormatError if the text is longer than a field may be."""
    # A character takes four bytes at most, so most texts need not be encoded to be measured.
    if 4 * len(value) > limits.field_bytes < len(value.encode("utf-8", "surrogatepass")):
        raise FormatError(
            f"{file}, line {line}: the field '{field}' holds more than {limits.field_bytes:,} "
            "bytes. Shorten it or split the item."
        )
