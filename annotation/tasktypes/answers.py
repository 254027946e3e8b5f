"""Answers to several fields at once: what is asked, what is missing, what is left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotation.errors import FieldError
from annotation.tasktypes import fields
from annotation.tasktypes.fields import Field


def clean_answers(asked: Sequence[Field], answers: Mapping[str, object]) -> dict[str, Any]:
    """The answers to these fields as they are stored. Raises `FieldError`.

    Answers to fields whose condition does not hold are left out, since a page without a script
    shows all fields; so are empty ones.
    """
    if unknown := set(answers) - {field.name for field in asked}:
        raise FieldError(f"This task does not ask for {', '.join(sorted(unknown))}.")
    cleaned: dict[str, Any] = {}
    said: dict[str, frozenset[str]] = {}
    for field in asked:
        answer = answers.get(field.name)
        if (field.when and not field.when.holds(said)) or fields.is_empty(answer):
            continue
        cleaned[field.name] = field.clean(answer)
        said[field.name] = field.said(cleaned[field.name])
    if missing := [field for field in asked if _is_missing(field, cleaned, said)]:
        raise _missing_error(missing[0], asked)
    return cleaned


def _missing_error(field: Field, asked: Sequence[Field]) -> FieldError:
    """Why nothing is stored without an answer to the field, and what may be said instead of it."""
    instead = next((other.title for other in asked if other.name == field.unless), "")
    return field.error(f"{field.takes} Or write it in “{instead}”." if instead else "")


def _is_missing(
    field: Field, cleaned: Mapping[str, Any], said: Mapping[str, frozenset[str]]
) -> bool:
    if not field.required or field.name in cleaned or field.unless in cleaned:
        return False
    return field.when is None or field.when.holds(said)
