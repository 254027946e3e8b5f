"""JSON Lines: one object per line."""

import json
import re
from collections.abc import Container, Iterator
from math import isfinite
from typing import Any, BinaryIO

from formats.lines import Lines
from formats.rows import BadRow, FormatError, Limits, Row, Rows, check_size

_DEEPEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


class _UnusableError(ValueError):
    """A line that is valid JSON but cannot be stored."""


def read_rows(stream: BinaryIO, file: str, limits: Limits) -> Rows:
    """Yield each object as Row. A line that is not an object or cannot be stored is yielded as
    BadRow.

    Blank lines are skipped. Values that cannot be stored: NaN and infinite numbers, a name given
    twice, NUL characters, unpaired surrogates, nesting over 100 deep. So is an object with more
    columns than the limit. Raises FormatError if the file has no lines, or if the whole file is one
    JSON array.
    """
    lines = Lines(stream, file, limits)
    empty = True
    for line, text in _texts(lines):
        _check_start(file, line, text, empty)
        empty = False
        yield _row(file, line, text, limits)
    _check_filled(file, empty)


def check_lines(stream: BinaryIO, file: str, limits: Limits) -> None:
    """Raise the FormatError that `read_rows` would raise, in a fraction of the time.

    Lines are parsed only if they are long enough to contain a field over the limit.
    """
    empty = True
    for line, text in _texts(Lines(stream, file, limits)):
        _check_start(file, line, text, empty)
        empty = False
        if 4 * len(text) > limits.field_bytes:
            _row(file, line, text, limits)
    _check_filled(file, empty)


def pick_rows(stream: BinaryIO, file: str, limits: Limits, starts: Container[int]) -> Iterator[str]:
    """Return the rows that start at these lines, unchanged."""
    for line, text in _texts(Lines(stream, file, limits)):
        if line in starts:
            yield f"{text}\n"


def _check_start(file: str, line: int, text: str, first: bool) -> None:
    if first and text.startswith("["):
        raise FormatError(
            f"{file}, line {line}: starts a JSON array. Give one object per line (JSON Lines)."
        )


def _check_filled(file: str, empty: bool) -> None:
    if empty:
        raise FormatError(f"{file}: the file is empty. Give one JSON object per line.")


def _texts(lines: Lines) -> Iterator[tuple[int, str]]:
    while True:
        line = lines.start_row()
        text = next(lines, None)
        if text is None:
            return
        if stripped := text.strip():
            yield line, stripped
        else:
            lines.skip_blank()


def _row(file: str, line: int, text: str, limits: Limits) -> Row | BadRow:
    try:
        values = _parse(text)
        field = _unstorable(values) if _is_suspicious(text, values) else None
    except json.JSONDecodeError as error:
        return BadRow(file, line, "", f"not JSON: {error.msg}, at place {error.colno}")
    except (ValueError, RecursionError) as error:
        return BadRow(file, line, "", f"cannot be stored: {error}")
    if field is not None:
        reason = "a NUL character or half of a surrogate pair cannot be stored"
        return BadRow(file, line, field, reason)
    if len(values) > limits.columns:
        reason = f"the row has more than {limits.columns:,} columns; leave some out"
        return BadRow(file, line, "", reason)
    if 4 * len(text) > limits.field_bytes:
        for name, value in values.items():
            check_size(_as_text(value), limits, file, line, name)
    return Row(file, line, values)


def _parse(text: str) -> dict[str, Any]:
    values = _DECODER.decode(text)
    if not isinstance(values, dict):
        raise _UnusableError("the line is not a JSON object")
    return values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _UnusableError("a name is given twice in one object")
    return values


def _no_constant(name: str) -> None:
    raise _UnusableError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise _UnusableError(f"{digits} is too large a number")
    return number


# One decoder for all lines, since creating a decoder takes as long as reading a short line.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite
)


def _is_suspicious(text: str, values: dict[str, Any]) -> bool:
    # Only escapes can produce text that cannot be stored, and nesting needs brackets. Most lines
    # have no backslash, and a search for one character is many times faster than a search for two.
    if "\\" in text and "\\u" in text:
        return True
    nests = any(isinstance(value, (list, dict)) for value in values.values())
    return nests and text.count("[") + text.count("{") > _DEEPEST


def _unstorable(values: dict[str, Any]) -> str | None:
    """Return the name of the first field with text that a database cannot store; None if there is
    none."""
    for name, value in values.items():
        if not all(_is_storable(text) for text in _strings([name, value])):
            return name if _is_storable(name) else ascii(name)
    return None


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        raise _UnusableError(f"nested more than {_DEEPEST} deep")
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _strings(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, depth + 1)


def _is_storable(text: str) -> bool:
    return "\0" not in text and not _SURROGATE.search(text)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
