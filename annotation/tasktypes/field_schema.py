"""Parses the field entries of a task type file."""

import re

from annotation.tasktypes import fields
from annotation.tasktypes.fields import Condition, Field
from annotation.tasktypes.toml_tables import TomlTable

SWITCHES = ("claim_check", "expected_effect")
RULES = ("", "first", "majority", "unanimous", "adjudicated", "median", "three")
LEVELS = ("", "nominal", "ordinal", "interval")
# Names of form values that do not belong to an answer.
RESERVED = {
    "key", "item", "revision", "begun-with", "comment", "seconds", "note", "text",
    "csrfmiddlewaretoken",
}  # fmt: skip
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def parse_field(table: TomlTable) -> Field:
    """Return the field that an entry of `[[fields]]` declares. Raises `DeclarationError`."""
    kind = table.one_of("kind", None, tuple(fields.FIELD_KINDS))
    made = fields.FIELD_KINDS[kind]
    read = made(
        name=_name(table),
        title=table.text("title"),
        help=table.text("help", ""),
        required=table.flag("required", made.needed),
        when=_condition(table),
        option=table.one_of("option", "", ("", *SWITCHES)),
        rule=table.one_of("rule", "", RULES),
        level=table.one_of("level", made.default_level, LEVELS),
        unless=table.text("unless", ""),
        **made.read_own(table),
    )
    table.close()
    return read


def _name(table: TomlTable) -> str:
    name = table.text("name")
    if not _NAME.fullmatch(name):
        raise table.wrong(name="name", problem=f"is {name!r}; use a-z, 0-9 and _ (at most 40).")
    if name in RESERVED:
        raise table.wrong("name", f"is {name!r}, which the form uses itself; choose another name.")
    return name


def _condition(table: TomlTable) -> Condition | None:
    when = table.table("when")
    if when is None:
        return None
    condition = Condition(when.text("field"), when.texts("values"))
    when.close()
    return condition
