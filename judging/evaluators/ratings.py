"""Outside ratings of an endpoint's model, such as an Elo rating or a score on a benchmark. They are
typed in from elsewhere, and figures of the model can be compared with them."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite
from typing import Any

from django.core.exceptions import ValidationError

RATING_FIELDS = ("name", "value", "source", "date")
NAME_LENGTH, SOURCE_LENGTH, MOST_RATINGS = 80, 300, 50
# No rating is as large, and JSON and charts can write all smaller numbers.
LARGEST = 1e15


def clean_ratings(value: Any) -> list[dict[str, Any]]:
    """Return the ratings as they are stored: a list of objects with `name`, `value` (a number),
    `source` and `date` (ISO 8601). Raises `ValidationError`, which names the rating and what to do.
    """
    if value in (None, ""):
        return []
    if not isinstance(value, Sequence) or not all(isinstance(one, Mapping) for one in value):
        raise ValidationError("Enter a list of ratings with name, value, source and date.")
    if len(value) > MOST_RATINGS:
        raise ValidationError(f"Enter at most {MOST_RATINGS} ratings.")
    found: list[dict[str, Any]] = []
    errors: list[str] = []
    for number, one in enumerate(value, 1):
        try:
            cleaned = _clean_rating(one)
            if any(cleaned["name"] == other["name"] for other in found):
                raise ValueError(
                    "This name is there twice. Tell the two apart, for example MMLU 5-shot."
                )
        except ValueError as error:
            named = str(one.get("name") or "").strip()
            errors.append(f"Rating {number}{f' ({named:.40})' if named else ''}: {error}")
        else:
            found.append(cleaned)
    if errors:
        raise ValidationError(errors)
    return found


def check_ratings(value: Any) -> None:
    """Raise `ValidationError` for ratings that cannot be stored as they are."""
    if clean_ratings(value) != value:
        raise ValidationError("Enter a list of ratings with name, value, source and date.")


def _clean_rating(given: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := [str(name) for name in given if name not in RATING_FIELDS]:
        raise ValueError(f"There is no {unknown[0]!a}. There are {', '.join(RATING_FIELDS)}.")
    return {
        "name": _clean_text(given.get("name"), "name", "MMLU", NAME_LENGTH),
        "value": _clean_number(given.get("value")),
        "source": _clean_text(given.get("source"), "source", "a paper or address", SOURCE_LENGTH),
        "date": _clean_date(given.get("date")),
    }


def _clean_text(given: Any, what: str, example: str, longest: int) -> str:
    text = " ".join(given.split()) if isinstance(given, str) else ""
    if not text:
        raise ValueError(f"Enter the {what}, for example {example}.")
    if len(text) > longest:
        raise ValueError(f"Shorten the {what} to {longest} characters.")
    if not text.isprintable():
        raise ValueError(f"Remove the invisible characters from the {what}.")
    return text


def _clean_number(given: Any) -> float:
    try:
        value = float(given) if isinstance(given, str | int | float) else float("nan")
    except (ValueError, OverflowError):
        value = float("nan")
    if isinstance(given, bool) or not isfinite(value) or abs(value) >= LARGEST:
        raise ValueError("Enter the value as a number, for example 71.8.")
    return value


def _clean_date(given: Any) -> str:
    if isinstance(given, date):
        return given.isoformat()
    try:
        return date.fromisoformat(str(given).strip()).isoformat()
    except ValueError:
        raise ValueError(
            "Enter the date of the rating, or of the paper that prints it, for example 2024-03-16."
        ) from None
