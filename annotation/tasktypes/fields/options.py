"""The choices of a field as a task type lists them: `[[fields.choices]]`."""

import re
from collections.abc import Callable

from annotation.tasktypes.fields.base import Option
from annotation.tasktypes.toml_tables import DeclarationError, TomlTable

ROUTES = ("", "expert", "gold-error", "exclude")
DIGIT_KEYS = "1234567890"
SIGN_KEYS = "-+"
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def read_options(
    table: TomlTable, read: Callable[[TomlTable], str | int | float], name: str = "choices"
) -> tuple[Option, ...]:
    """Return the options of `[[fields.choices]]`, or of another list with this `name`, whose values
    are read by `read`. Raises `DeclarationError`."""
    entries = table.tables(name)
    if len(entries) < 2:
        raise DeclarationError(table.place, f"needs at least two [[fields.{name}]] entries.")
    keys = _assign_keys(entries)
    found = tuple(
        _option(entry, read(entry), key) for entry, key in zip(entries, keys, strict=True)
    )
    _check_values(entries, found)
    return found


def read_word(table: TomlTable) -> str:
    """Return the value of an option as a word of at most 40 characters. Raises
    `DeclarationError`."""
    value = table.text("value")
    if not _VALUE.fullmatch(value):
        raise table.wrong("value", f"is {value!r}; use letters, digits, _ . - (at most 40).")
    return value


def read_number(table: TomlTable) -> int | float:
    """Return the value of an option as a number. Raises `DeclarationError`."""
    return table.number("value")


def _option(table: TomlTable, value: str | int | float, key: str) -> Option:
    option = Option(
        value=value,
        title=table.text("title"),
        help=table.text("help", ""),
        key=key,
        examples=table.texts("examples", ()),
        route=table.one_of("route", "", ROUTES),
        drops=table.flag("drops", False),
    )
    table.close()
    return option


def _assign_keys(entries: tuple[TomlTable, ...]) -> list[str]:
    """Return the hotkeys of the options. Options without a declared key get the remaining digits,
    or "" if no digits are left."""
    given = [entry.text("key", "") for entry in entries]
    for number, (entry, key) in enumerate(zip(entries, given, strict=True)):
        if key and (len(key) != 1 or key not in DIGIT_KEYS + SIGN_KEYS):
            raise entry.wrong("key", f"is {key!r}; use one digit, - or +.")
        if key and key in given[:number]:
            raise entry.wrong("key", f"is {key!r}, which another choice has; use another key.")
    left = iter([key for key in DIGIT_KEYS if key not in given])
    return [key or next(left, "") for key in given]


def _check_values(entries: tuple[TomlTable, ...], options: tuple[Option, ...]) -> None:
    seen: set[str | int | float] = set()
    for entry, option in zip(entries, options, strict=True):
        if option.value in seen:
            raise entry.wrong("value", f"{option.value!r} appears twice; change one.")
        seen.add(option.value)
