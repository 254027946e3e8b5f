"""A JSON file with a list of objects, as JSON Lines: the fifth object is line 5."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from formats.rows import FormatError, Limits

_CHUNK = 1 << 20
_BLANKS = re.compile(r"[ \t\r\n]*")
_REMEDY = "Give a list of objects, [{…}, {…}], or one object per line."


def convert(path: Path, limits: Limits, add_note: Callable[[str], object]) -> Iterator[str]:
    """Yield the elements of the list, one per line; one element and a part of the file are in
    memory at a time. A file that already has one object per line is passed on.

    Raises FormatError for text that is not UTF-8, for a file that is no list, and for an element
    that is not JSON or is longer than a row may be. The reader of JSON Lines checks the elements.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            start = " "
            while start.isspace():
                start = stream.read(1)
            if start == "[":
                yield from _elements(stream, path.name, limits)
            elif start == "{":
                yield from _lines(stream, path.name, limits)
            else:
                raise FormatError(f"{path.name}: is not a list of objects. {_REMEDY}")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path.name}: is not UTF-8. Save the file as UTF-8.") from error


def _elements(stream: TextIO, file: str, limits: Limits) -> Iterator[str]:
    """Yield the elements that follow the opening bracket."""
    decoder, text, at, count = json.JSONDecoder(parse_int=str), "", 0, 0
    while True:
        start, problem = _skip_blanks(text, at), "the list does not end"
        if text[start : start + 1] == "]":
            if text[start + 1 :].strip() or stream.read(_CHUNK).strip():
                raise FormatError(f"{file}: has text after the end of the list. Remove it.")
            return
        if count and text[start : start + 1] == ",":
            start = _skip_blanks(text, start + 1)
        elif count and start < len(text):
            raise FormatError(f"{file}, after object {count}: there is no comma. Add it.")
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            end, problem = len(text), f"not JSON: {error.msg}"
        except RecursionError as error:
            raise FormatError(f"{file}, object {count + 1}: nested too deeply.") from error
        # Only with a character after it is it certain that an element has ended.
        if end < len(text):
            count, at = count + 1, end
            yield text[start:end].replace("\n", " ").replace("\r", " ") + "\n"
            continue
        # As long as all that is here, so that a long element is parsed a few times only.
        begun = len(text) - at
        more = "" if begun > limits.row_bytes else stream.read(max(_CHUNK, begun))
        text, at = text[at:] + more, 0
        if not more:
            raise FormatError(f"{file}, object {count + 1}: cannot be read ({problem}). {_REMEDY}")


def _lines(stream: TextIO, file: str, limits: Limits) -> Iterator[str]:
    """Yield the lines of a file that begins with an object and not with a list."""
    line = "{" + stream.readline(limits.row_bytes)
    try:
        json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: is neither a list nor lines of objects. {_REMEDY}") from error
    while line:
        yield line
        line = stream.readline(limits.row_bytes)


def _skip_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    assert found
    return found.end()
