"""Parses the field entries of a task type file."""

import re
from collections.abc import Callable
from typing import Any

from annotation.tasktypes import fields
from annotation.tasktypes.fields import Condition, Field, Option
from annotation.tasktypes.toml_tables import DeclarationError, TomlTable

SWITCHES = ("claim_check", "expected_effect")
RULES = ("", "first", "majority", "unanimous", "adjudicated", "median", "three")
ROUTES = ("", "expert", "gold-error", "exclude")
LEVELS = ("", "nominal", "ordinal", "interval")
# Names of form values that are not answers.
RESERVED = {"key", "item", "revision", "comment", "seconds", "note", "text", "csrfmiddlewaretoken"}
DIGIT_KEYS = "1234567890"
SIGN_KEYS = "-+"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def parse_field(table: TomlTable) -> Field:
    """The field that an entry of `[[fields]]` declares. Raises `DeclarationError`."""
    kind = read_choice(table, "kind", None, tuple(fields.FIELD_KINDS))
    made = fields.FIELD_KINDS[kind]
    read = made(
        name=_name(table),
        title=table.text("title"),
        help=table.text("help", ""),
        required=table.flag("required", made.needed),
        when=_condition(table),
        option=read_choice(table, "option", "", ("", *SWITCHES)),
        rule=read_choice(table, "rule", "", RULES),
        level=read_choice(table, "level", made.default_level, LEVELS),
        unless=table.text("unless", ""),
        **_KIND_READERS[kind](table),
    )
    table.close()
    return read


def read_choice(table: TomlTable, name: str, default: str | None, known: tuple[str, ...]) -> str:
    """A text that must be one of `known`. Raises `DeclarationError`."""
    value = table.text(name, default)
    if value not in known:
        values = ", ".join(one or '""' for one in known)
        raise table.wrong(name, f"is {value!r}; use one of {values}.")
    return value


def _name(table: TomlTable) -> str:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.wrong(name="name", problem=f"is {name!r}; use a-z, 0-9 and _ (at most 40).")
    if name in RESERVED:
        raise table.wrong("name", f"is {name!r}, which the form needs itself; choose another.")
    return name


def _condition(table: TomlTable) -> Condition | None:
    when = table.table("when")
    if when is None:
        return None
    condition = Condition(when.text("field"), when.texts("values"))
    when.close()
    return condition


def _options(
    read: Callable[[TomlTable], str | int | float],
) -> Callable[[TomlTable], dict[str, Any]]:
    """A reader of `[[fields.choices]]` that reads each value with `read`."""

    def options(table: TomlTable) -> dict[str, Any]:
        entries = table.tables("choices")
        if len(entries) < 2:
            raise DeclarationError(table.place, "needs two [[fields.choices]] entries at least.")
        keys = _assign_keys(entries)
        found = tuple(
            _option(entry, read(entry), key) for entry, key in zip(entries, keys, strict=True)
        )
        _check_values(entries, found)
        return {"options": found}

    return options


def _option(table: TomlTable, value: str | int | float, key: str) -> Option:
    option = Option(
        value=value,
        title=table.text("title"),
        help=table.text("help", ""),
        key=key,
        examples=table.texts("examples", ()),
        route=read_choice(table, "route", "", ROUTES),
        drops=table.flag("drops", False),
    )
    table.close()
    return option


def _assign_keys(entries: tuple[TomlTable, ...]) -> list[str]:
    """The hotkeys of the options: the declared ones; the others get the remaining digits, or "" if
    none are left."""
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
            raise entry.wrong("value", f"{option.value!r} is there twice; change one.")
        seen.add(option.value)


def _read_word(table: TomlTable) -> str:
    value = table.text("value")
    if not _VALUE.fullmatch(value):
        raise table.wrong("value", f"is {value!r}; use letters, digits, _ . - (at most 40).")
    return value


def _read_number(table: TomlTable) -> int | float:
    return table.number("value")


def _text(table: TomlTable) -> dict[str, Any]:
    return {"limit": table.whole("limit", fields.TEXT_LIMIT, 1, fields.EDIT_LIMIT)}


def _edit(table: TomlTable) -> dict[str, Any]:
    limit = table.whole("limit", fields.EDIT_LIMIT, 1, fields.EDIT_LIMIT)
    return {"limit": limit, "text": table.text("text")}


def _nothing(table: TomlTable) -> dict[str, Any]:
    return {}


# Reads the values of an entry that only this kind of field has.
_KIND_READERS: dict[str, Callable[[TomlTable], dict[str, Any]]] = {
    "choice": _options(_read_word),
    "choices": _options(_read_word),
    "scale": _options(_read_number),
    "points": _options(_read_number),
    "yesno": _nothing,
    "text": _text,
    "edit": _edit,
    "claim_check": _nothing,
}
