"""Numbered UTF-8 lines of a binary stream. At most one row of them is in memory at a time."""

import codecs
from collections.abc import Iterator
from typing import BinaryIO

from formats.rows import FormatError, Limits


class Lines(Iterator[str]):
    """Decodes lines and keeps their line ends. A byte order mark at the start is dropped.

    `number` is the number of the last line returned. The reader calls `start_row` before each
    record, which may have many lines. Raises FormatError for text that is not UTF-8, and for a row
    over the limit.
    """

    def __init__(self, stream: BinaryIO, file: str, limits: Limits) -> None:
        self.number = 0
        self._stream = stream
        self._file = file
        self._blank_left = limits.blank_rows
        self._row_limit = limits.row_bytes
        self._row_bytes = 0
        self._row_start = 1

    def start_row(self) -> int:
        """Start a record and return the number of its first line."""
        self._row_bytes = 0
        self._row_start = self.number + 1
        return self._row_start

    def skip_blank(self) -> None:
        """Count a blank row. Raises FormatError beyond the limit."""
        self._blank_left -= 1
        if self._blank_left < 0:
            raise FormatError(
                f"{self._file}, line {self.number}: the file has too many blank lines. Remove them."
            )

    def __next__(self) -> str:
        raw = self._stream.readline(self._row_limit + 1)
        if not raw:
            raise StopIteration
        self._row_bytes += len(raw)
        if self._row_bytes > self._row_limit:
            raise FormatError(
                f"{self._file}, line {self._row_start}: the row that starts here is longer than "
                f"{self._row_limit:,} bytes. Split it, or close the quotation mark it opens."
            )
        self.number += 1
        return self._decode(raw)

    def _decode(self, raw: bytes) -> str:
        if self.number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self._file}, line {self.number}: not UTF-8 (byte 0x{raw[error.start]:02x} at "
                f"place {error.start + 1} of the line). Save the file as UTF-8; spreadsheets call "
                "this format CSV UTF-8."
            ) from error
