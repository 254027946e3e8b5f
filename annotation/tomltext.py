"""TOML as text: the line that says something, and a definition written out."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(#.*)?")
_KEY = re.compile(r'\s*"?([\w-]+)"?\s*[=.]')
_LONG = ('"""', "'''")

Place = tuple[str | int, ...]


def line_of(source: str, place: Place) -> int | None:
    """The line, from 1, on which a place of the parsed text stands, or the nearest table round it.

    A place is the way to a value: names, and the number of a table (from 0) in a list of tables.
    """
    known = dict(_places(source))
    while place:
        if place in known:
            return known[place]
        place = place[:-1]
    return None


def _places(source: str) -> Iterator[tuple[Place, int]]:
    """Every table and key of the text with its line. Texts over several lines are passed over."""
    counts: dict[Place, int] = {}
    table: Place = ()
    inside = ""
    for number, line in enumerate(source.splitlines(), start=1):
        if inside:
            inside = "" if inside in line else inside
            continue
        if header := _HEADER.fullmatch(line):
            table = _table(tuple(header[2].split(".")), header[1] == "[[", counts)
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, key[1]), number
        inside = next((quote for quote in _LONG if line.count(quote) % 2), "")


def _table(names: tuple[str, ...], in_list: bool, counts: dict[Place, int]) -> Place:
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


def written(definition: Mapping[str, Any]) -> str:
    """A definition as TOML that reads as it again; for versions whose own text was not kept."""
    return "\n".join(_written(definition, "")).strip() + "\n"


def _written(table: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, value in table.items():
        if not _is_table(value):
            yield f"{name} = {_value(value)}"
    for name, value in table.items():
        inner = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield f"\n[{inner}]"
            yield from _written(value, inner)
        elif _is_table(value):
            for entry in value:
                yield f"\n[[{inner}]]"
                yield from _written(entry, inner)


def _is_table(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(entry, Mapping) for entry in value)
    return isinstance(value, Mapping)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    # What JSON writes of texts, numbers, true and false is TOML; DEL alone it leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
