"""Find JSON objects in a text that may contain anything else.

Valid objects are parsed unchanged. Errors that can be repaired without changing a value are
repaired, and the object is marked as repaired: raw line breaks inside strings; backslashes that are
no JSON escapes, as in TeX; a comma after the last entry. A missing brace or quote is not added,
since its position would be a guess.

Every search does a bounded amount of work for each character, even on hostile texts.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Fields = dict[str, Any]

_OBJECT = re.compile(r"\{\s{0,100}\"")
_BETWEEN = re.compile(r"[\s_-]+")
# A pair of a backslash and a character outside of strings is matched too: otherwise, in a row of
# escaped quotes, each quote would be tried as the start of a string without an end.
_TOKEN = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"|\\.|,(?=\s{0,100}[}\]])', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


class TooTangledError(ValueError):
    """The text has too many broken or nested objects to search it completely."""


class FoundObject(NamedTuple):
    """An object and its position; `mended` if it had to be repaired."""

    start: int
    end: int
    fields: Fields
    mended: bool = False


def parse_whole(text: str) -> Fields:
    """Return the object if the whole text is a JSON object that needs no repairs; otherwise {}."""
    try:
        found = _STRICT.decode(text.strip())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def find_objects(text: str) -> Iterator[FoundObject]:
    """Find the outermost JSON objects, from first to last.

    The cost of a `{` that starts no object is the characters that were read, plus a fixed share of
    the text, because the decoder counts lines for its error. Raises TooTangledError after eight
    readings of the text, or if objects are nested deeper than the decoder allows: the unread rest
    may contain a later answer, so an earlier answer must not count.
    """
    budget = 8.0 * len(text) + 10_000
    opening = _OBJECT.search(text)
    while opening:
        start = end = opening.start()
        try:
            fields, end = _LENIENT.raw_decode(text, start)
            yield FoundObject(start, end, fields)
        except json.JSONDecodeError as error:
            budget -= error.pos - start + len(text) / 256
            end += 1
        except RecursionError as error:
            raise TooTangledError from error
        if budget < 0:
            raise TooTangledError
        opening = _OBJECT.search(text, end)


def is_strict_json(text: str, found: FoundObject) -> bool:
    """True if the object is strict JSON in `text`, without raw line breaks in strings."""
    return bool(parse_whole(text[found.start : found.end]))


def repair_objects(text: str) -> str:
    """Repair the objects in the text; return the same text if there is nothing to repair."""
    opening = _OBJECT.search(text)
    if not opening:
        return text
    return text[: opening.start()] + _TOKEN.sub(_repair_token, text[opening.start() :])


def normalize_key(key: str) -> str:
    """Normalise a key for comparison: lower case, with "-" for spaces, hyphens and underscores."""
    return _BETWEEN.sub("-", key.strip().lower())


def _repair_token(token: re.Match[str]) -> str:
    if token[0] == ",":
        return ""
    if token[0][0] != '"':
        return token[0]
    return _ESCAPE.sub(lambda found: found[0] if len(found[0]) > 1 else "\\\\", token[0])


def _normalize_fields(pairs: list[tuple[str, Any]]) -> Fields:
    fields: Fields = {}
    for key, value in pairs:
        compared = normalize_key(key)
        fields[compared] = None if compared in fields else value
    return fields


def _integer(digits: str) -> float:
    """Return the integer, or infinity for more than 18 digits: no scale has such values, and int()
    would be slow or fail.
    """
    return int(digits) if len(digits) <= 18 else math.inf


def _no_value(_: str) -> None:
    """Return None for NaN and Infinity, which are neither valid JSON nor an answer."""


_STRICT = json.JSONDecoder(
    object_pairs_hook=_normalize_fields, parse_int=_integer, parse_constant=_no_value
)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_normalize_fields, parse_int=_integer, parse_constant=_no_value, strict=False
)
