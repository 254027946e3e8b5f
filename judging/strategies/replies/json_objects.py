"""JSON objects in a text that may hold much else.

Objects are read as they stand. What can be mended without touching a value is mended, and the
object says so: raw line breaks inside strings; backslashes that JSON has no use for, as TeX has
them; a comma behind the last entry. A brace or a quote that is missing is not put in: what should
have stood before it is a guess.

Every search does a bounded amount of work for each character, however hostile the text.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Fields = dict[str, Any]

_OBJECT = re.compile(r"\{\s{0,100}\"")
_BETWEEN = re.compile(r"[\s_-]+")
# A pair with a backslash outside of strings is taken up too: else each quote in a row of them
# would be tried as the beginning of a string that has no end.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|\\.|,(?=\s{0,100}[}\]])', re.DOTALL)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


class TooTangledError(ValueError):
    """A text with so many broken or nested objects that looking through it has no end."""


class FoundObject(NamedTuple):
    """An object and where it stands; `mended` if it took more than reading."""

    start: int
    end: int
    fields: Fields
    mended: bool = False


def parse_whole(text: str) -> Fields:
    """The object that the text is, without mending; {} if it is none."""
    try:
        found = _STRICT.decode(text.strip())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def find_objects(text: str) -> Iterator[FoundObject]:
    """The outermost JSON objects, from first to last.

    Every `{` that fails costs what was read, plus a fixed share of the text because the decoder
    counts lines for its error. Raises TooTangledError past eight readings of the text, and where
    objects stand in each other deeper than the decoder goes: what is not read to the end may
    hold a later answer, so an earlier one must not count.
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
    """Whether the object is JSON as it stands in `text`, raw line breaks not let pass."""
    return bool(parse_whole(text[found.start : found.end]))


def repair_objects(text: str) -> str:
    """The text with mended objects; the same text where there is nothing to mend."""
    opening = _OBJECT.search(text)
    if not opening:
        return text
    return text[: opening.start()] + _TOKEN.sub(_repair_token, text[opening.start() :])


def normalize_key(key: str) -> str:
    """A key as it is compared: in small letters, with "-" for spaces, hyphens and underscores."""
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
    """Beyond 18 digits no scale goes, and int() is slow or refuses."""
    return int(digits) if len(digits) <= 18 else math.inf


def _no_value(_: str) -> None:
    """NaN and Infinity are not JSON; as the answer they are none."""


_STRICT = json.JSONDecoder(
    object_pairs_hook=_normalize_fields, parse_int=_integer, parse_constant=_no_value
)
_LENIENT = json.JSONDecoder(
    object_pairs_hook=_normalize_fields, parse_int=_integer, parse_constant=_no_value, strict=False
)
