"""Columns of tables as the result pages print them: how values are written, and which rows have a
line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from annotation.labelling.models.labels import SI_ITEM
from annotation.templatetags.figures import DASH, number, share
from judging.runs.spending import format_estimate

Row = dict[str, Any]
Such = Callable[[Row], bool]


def every(row: Row) -> bool:
    return True


@dataclass(frozen=True)
class Column:
    """The values of a column of a table in the columns of a page whose title a pattern fits; `such`
    are the rows that have a line."""

    title: str
    name: str
    write: Callable[[Any], str] = number
    such: Such = every
    table: int = 0

    def of(self, tables: Sequence[Sequence[Row]]) -> list[str]:
        return [self.write(row[self.name]) for row in tables[self.table] if self.such(row)]


def rest(value: float | None) -> str:
    return share(None if value is None else 1 - value)


def two_digits(value: float | None) -> str:
    return DASH if value is None else signed(f"{value:.2f}")


def points(value: float | None) -> str:
    return DASH if value is None else signed(f"{100 * value:+.1f}")


def distance(value: float | None) -> str:
    return DASH if value is None else f"{100 * value:.1f}"


def signed(number: str) -> str:
    return number.replace("-", "−") if float(number) else number.lstrip("+-")


def money(value: float | None) -> str:
    return DASH if value is None else format_estimate(value)


def p_value(value: float | None) -> str:
    if value is None:
        return DASH
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def short(value: float | None) -> str:
    return DASH if value is None else f"{value:.3g}"


def having(**values: Any) -> Such:
    """Rows with one of these values, or this one."""
    asked = {name: one if isinstance(one, set) else {one} for name, one in values.items()}
    return lambda row: all(row[name] in wanted for name, wanted in asked.items())


def there(name: str) -> Such:
    return lambda row: row[name] is not None


def judging(row: Row) -> bool:
    """Checks of explanations say nothing of their own."""
    return not row["strategy"].startswith("explanation-check")


def below(row: Row) -> bool:
    """Categories, and of score-invariant items what these were made from."""
    part = "source_ability" if row["ability"] == SI_ITEM else "category"
    return judging(row) and bool(row.get(part))


def some(row: Row) -> bool:
    return judging(row) and bool(row["errors"] + row["invariant"])


def of_field(row: Row) -> bool:
    return row["of"] != "words"


def of_chance(row: Row) -> bool:
    """Coefficients over everybody of the question that people were asked."""
    return row["field"] == "choice" and not row["people"] and row["measure"] != "percent"


def counts(*names: str, such: Such = every) -> list[Column]:
    """Columns that are headed by their own names."""
    return [Column(name.capitalize(), name, such=such) for name in names]


def rates(*names: str, write: Callable[[Any], str] = share, such: Such = every) -> list[Column]:
    return [Column(name.capitalize(), name, write, such) for name in names]
