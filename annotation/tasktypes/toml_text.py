"""TOML as text: finding the line of a value, setting a value, and writing a definition."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r'\s*"?([\w-]+)"?\s*[=.]')
_BARE = re.compile(r"[\w-]+", re.ASCII)
_UNWRITABLE = re.compile(r"[\\\x00-\x08\x0b-\x1f\x7f]")
_LONG = ('"""', "'''")
_AT = re.compile(r"\(at line (\d+), column \d+\)")
MAX_KEY_PARTS = 50
_KEY_PART = r"""(?:[\w-]++|"(?>(?:[^"\\\n]|\\.)*)"|'[^'\n]*+')[ \t]*+"""
# No key begins with an escaped quotation mark. If each of many were tried, each would be read to
# the end of the line.
_LONG_KEY = re.compile(rf"(?<![\w\\-]){_KEY_PART}(?:\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}")

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class TomlProblem:
    """A problem in a text, and what to do about it. `line` counts from 1; it is None if the problem
    is not about a single line."""

    line: int | None
    text: str


def parse(source: str) -> dict[str, Any]:
    """Parse a TOML text. Raises `tomllib.TOMLDecodeError`, also for a key of more than
    `MAX_KEY_PARTS` parts: Python's parser takes memory that grows with the square of their
    number."""
    if found := _LONG_KEY.search(source):
        line = source.count("\n", 0, found.start()) + 1
        said = f"A key has more than {MAX_KEY_PARTS} parts (at line {line}, column 1)"
        raise tomllib.TOMLDecodeError(said)
    return tomllib.loads(source)


def describe_parse_error(error: tomllib.TOMLDecodeError, source: str) -> TomlProblem:
    """Return the problem behind a TOML parse error, with its line."""
    at = _AT.search(str(error))
    line = int(at[1]) if at else len(source.splitlines()) or 1
    what = _AT.sub("", str(error)).replace("(at end of document)", "").strip()
    return TomlProblem(line, f"This is not TOML: {what}. Correct this line or the one above.")


def set_slug(source: str, slug: str) -> str:
    """Set the slug in a text. If the text has no slug, it is added as the first line."""
    return set_value(source, "slug", slug)


def set_value(source: str, key: str, value: str | bool) -> str:
    """Set a one-line value for a key of the text's top-level table. A new key is added on the first
    line."""
    line, at = f"{key} = {_quote_value(value)}", find_line(source, (key,))
    if at is None:
        return f"{line}\n{source}"
    lines = source.split("\n")
    lines[at - 1] = line
    return "\n".join(lines)


def find_line(source: str, place: Place) -> int | None:
    """Find the line, from 1, of a place in the parsed text, or else of the nearest table around it;
    None if neither is found.

    A place is the path to a value: names, and the index of a table (from 0) in a list of tables.
    """
    known = dict(_locate_entries(source))
    while place:
        if place in known:
            return known[place]
        place = place[:-1]
    return None


def _locate_entries(source: str) -> Iterator[tuple[Place, int]]:
    """Return every table and key of the text with its line. Multi-line strings are skipped."""
    counts: dict[Place, int] = {}
    table: Place = ()
    inside = ""
    for number, line in enumerate(source.split("\n"), start=1):
        if inside:
            inside = "" if inside in line else inside
            continue
        if header := _HEADER.fullmatch(line):
            names = tuple(header[2].split(".", MAX_KEY_PARTS)[:MAX_KEY_PARTS])
            table = _table_place(names, header[1] == "[[", counts)
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, key[1]), number
        inside = next((quote for quote in _LONG if line.count(quote) % 2), "")


def _table_place(names: tuple[str, ...], in_list: bool, counts: dict[Place, int]) -> Place:
    """Return the place of a header, which belongs to the last table of each list on its path."""
    place: Place = ()
    for depth, name in enumerate(names, start=1):
        place = (*place, name)
        if depth == len(names) and in_list:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place


def write_definition(definition: Mapping[str, Any]) -> str:
    """Write a definition as TOML, for versions without stored text. Parsing the TOML gives the same
    definition."""
    return "\n".join(_write_table(definition, "")).strip() + "\n"


def _write_table(table: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, value in table.items():
        if not _is_table(value):
            yield f"{_quote_key(name)} = {_quote_value(value)}"
    for name, value in table.items():
        inner = f"{path}.{_quote_key(name)}" if path else _quote_key(name)
        if isinstance(value, Mapping):
            yield f"\n[{inner}]"
            yield from _write_table(value, inner)
        elif _is_table(value):
            for entry in value:
                yield f"\n[[{inner}]]"
                yield from _write_table(entry, inner)


def _is_table(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, Mapping) for entry in value)
    return isinstance(value, Mapping)


def _quote_key(name: str) -> str:
    """Return a key, quoted if necessary: a point of a scale may be 0.5, which without quotes would
    be two keys."""
    return name if _BARE.fullmatch(name) else _quote_value(name)


def _quote_value(value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return _lines(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_quote_value, value))}]"
    # JSON's text, numbers, true and false are valid TOML, except DEL, which JSON does not escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(text: str) -> str:
    """Write a text as a multi-line string."""
    escaped = _UNWRITABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    if '"""' in text or text.endswith('"'):
        escaped = escaped.replace('"', '\\"')
    return f'"""\n{escaped}"""'
