"""TOML as text: the line that says something, and a definition written out."""

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

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class TomlProblem:
    """What is wrong in a text and what to do; `line` counts from 1, None if it is no one line."""

    line: int | None
    text: str


def describe_parse_error(error: tomllib.TOMLDecodeError, source: str) -> TomlProblem:
    """What keeps a text from being TOML, with the line."""
    at = _AT.search(str(error))
    line = int(at[1]) if at else len(source.splitlines()) or 1
    what = _AT.sub("", str(error)).replace("(at end of document)", "").strip()
    return TomlProblem(line, f"This is not TOML: {what}. Correct this line or the one above.")


def set_slug(source: str, slug: str) -> str:
    """The text with the slug that it must have, on its first line if it had none."""
    return set_value(source, "slug", slug)


def set_value(source: str, key: str, text: str) -> str:
    """The text with this value, of one line, for a key of its outermost table; a new key comes
    first."""
    line, at = f"{key} = {_quote_value(text)}", find_line(source, (key,))
    if at is None:
        return f"{line}\n{source}"
    lines = source.split("\n")
    lines[at - 1] = line
    return "\n".join(lines)


def find_line(source: str, place: Place) -> int | None:
    """The line, from 1, on which a place of the parsed text stands, or the nearest table round it.

    A place is the way to a value: names, and the number of a table (from 0) in a list of tables.
    """
    known = dict(_locate_entries(source))
    while place:
        if place in known:
            return known[place]
        place = place[:-1]
    return None


def _locate_entries(source: str) -> Iterator[tuple[Place, int]]:
    """Every table and key of the text with its line. Texts over several lines are passed over."""
    counts: dict[Place, int] = {}
    table: Place = ()
    inside = ""
    for number, line in enumerate(source.split("\n"), start=1):
        if inside:
            inside = "" if inside in line else inside
            continue
        if header := _HEADER.fullmatch(line):
            table = _table_place(tuple(header[2].split(".")), header[1] == "[[", counts)
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, key[1]), number
        inside = next((quote for quote in _LONG if line.count(quote) % 2), "")


def _table_place(names: tuple[str, ...], in_list: bool, counts: dict[Place, int]) -> Place:
    """Where a header leads: into the last table of each list on its way."""
    place: Place = ()
    for depth, name in enumerate(names, start=1):
        place = (*place, name)
        if depth == len(names) and in_list:
            counts[place] = counts.get(place, -1) + 1
            for below in [known for known in counts if known[: len(place)] == place != known]:
                del counts[below]
        if place in counts:
            place = (*place, counts[place])
    return place


def write_definition(definition: Mapping[str, Any]) -> str:
    """A definition as TOML that reads as it again; for versions whose own text was not kept."""
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
    """A point of a scale may be 0.5, which unquoted would be two names."""
    return name if _BARE.fullmatch(name) else _quote_value(name)


def _quote_value(value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return _lines(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_quote_value, value))}]"
    # What JSON writes of texts, numbers, true and false is TOML; DEL alone it leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(text: str) -> str:
    """A text over several lines, as people write it."""
    escaped = _UNWRITABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    if '"""' in text or text.endswith('"'):
        escaped = escaped.replace('"', '\\"')
    return f'"""\n{escaped}"""'
