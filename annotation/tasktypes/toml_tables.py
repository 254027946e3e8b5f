"""Reads a table of a task type file key by key, so that each error message names a place in the
file."""

from collections.abc import Mapping, Sequence
from typing import Any

Place = tuple[str | int, ...]


class DeclarationError(ValueError):
    """An invalid declaration; the message says where it is and what to do.

    `place` is the path of the declaration in the file: names of tables and keys, and the index of
    an entry (from 0) in a list of tables.
    """

    def __init__(self, place: Place, problem: str) -> None:
        self.place = place
        self.problem = problem
        where = describe_place(place)
        super().__init__(f"{where}: {problem}" if where else problem)


class TomlTable:
    """One table of a file. There is a method for each type of value. `close` refuses keys that were
    not read.

    Every method raises `DeclarationError` for a value of another type, and for a missing value
    without a default.
    """

    def __init__(self, values: object, place: Place = ()) -> None:
        self.place = place
        if not isinstance(values, Mapping):
            raise DeclarationError(place, f"is {values!r}; write a table.")
        self._values = values
        self._asked: list[str] = []

    def has(self, name: str) -> bool:
        """True if the table has this key. Asking does not count as reading the key."""
        return name in self._values

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, which may be empty only if there is a default."""
        value = self._get(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, f"is {value!r}; write text in quotes.")
        if default is None and not value.strip():
            raise self.wrong(name, "is empty; fill it in.")
        self._check_storable(name, value)
        return value

    def one_of(self, name: str, default: str | None, known: tuple[str, ...]) -> str:
        """Return a text that is one of a few allowed ones."""
        value = self.text(name, default)
        if value not in known:
            values = ", ".join(one or '""' for one in known)
            raise self.wrong(name, f"is {value!r}; use one of {values}.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, f"is {value!r}; write true or false.")
        return value

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(name, f"is {value!r}; write a whole number from {low} to {high}.")
        return value

    def number(self, name: str) -> int | float:
        """Return a whole or decimal number, which is required."""
        value = self._get(name, None)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, f"is {value!r}; write a number without quotes.")
        return value

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of texts, none of them blank. The list itself may be empty."""
        value = self._get(name, default)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.wrong(name, f'is {value!r}; write a list: ["…", "…"].')
        if not all(isinstance(one, str) and one.strip() for one in value):
            raise self.wrong(name, "contains something other than text; put each entry in quotes.")
        for one in value:
            self._check_storable(name, one)
        return tuple(value)

    def table(self, name: str) -> "TomlTable | None":
        """Return the table under this key; None if there is none."""
        self._asked.append(name)
        return TomlTable(self._values[name], (*self.place, name)) if self.has(name) else None

    def tables(self, name: str) -> "tuple[TomlTable, ...]":
        """Return the entries of a list of tables; () if the list is missing."""
        value = self._get(name, ())
        if not isinstance(value, list | tuple):
            raise self.wrong(name, f"is not a list of tables; write [[{name}]] entries.")
        return tuple(
            TomlTable(entry, (*self.place, name, number)) for number, entry in enumerate(value)
        )

    def close(self) -> None:
        """Raise `DeclarationError` if there are keys that were not read; such keys are mostly
        misspelt."""
        if unknown := [name for name in self._values if name not in self._asked]:
            known = ", ".join(self._asked)
            raise self.wrong(unknown[0], f"is not a known key; use {known}.")

    def wrong(self, name: str, problem: str) -> DeclarationError:
        """Return the error to raise for the value of a key; `problem` continues a sentence that
        begins with the key."""
        return DeclarationError((*self.place, name), problem)

    def _check_storable(self, name: str, text: str) -> None:
        # TOML can write it as an escape, and PostgreSQL stores it nowhere.
        if "\0" in text:
            raise self.wrong(
                name, "contains the character U+0000, which cannot be stored. Remove it."
            )

    def _get(self, name: str, default: Any) -> Any:
        self._asked.append(name)
        if name in self._values:
            return self._values[name]
        if default is None:
            raise self.wrong(name, "is missing; add it.")
        return default


def describe_place(place: Place) -> str:
    """Describe a place in words: ("fields", 1, "choices", 0, "key") is "field 2, choice 1, key"."""
    said: list[str] = []
    for step in place:
        if isinstance(step, int):
            said[-1] = f"{said[-1].removesuffix('s')} {step + 1}"
        else:
            said.append(step)
    return ", ".join(said)
