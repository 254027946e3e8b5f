"""Cells of result tables: a run, a count, a rate, and the items behind each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotation.templatetags import figures as written
from judging.models import Run
from judging.results import reports
from judging.views.results.grids import Cell
from stats.estimates import Estimate

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rate:
    """Which columns of a row are a rate: its value, its interval, its items, and which is bad.

    `rest`: 1 minus it is shown. `bad` is "high", "low" or "" for neither.
    """

    value: str = "rate"
    low: str = "low"
    high: str = "high"
    n: str = "parsed"
    reason: str = "reason"
    bad: str = ""
    rest: bool = False


def name(run: Run) -> str:
    """A run in charts: its number, strategy and endpoint."""
    return f"{run.number} · {run.strategy.slug} · {run.endpoint.name}"


def run(one: Run) -> Cell:
    """A run, which leads to its page; of one that is not finished its state."""
    state = "" if one.state == Run.State.FINISHED else f" · {one.state}"
    return Cell(
        f"{one.number} · {one.strategy.slug}",
        one.number,
        href=reverse("run", args=[one.project.slug, one.number]),
        note=f"{one.endpoint.name}{state}",
    )


def words(text: str, place: float | str | None = None, *, note: str = "") -> Cell:
    """A text; sorted by itself if nothing else is said."""
    return Cell(text or written.DASH, text if place is None else place, note=note, is_number=False)


def count(value: float | None, href: str = "", *, note: str = "") -> Cell:
    """A number of items."""
    return Cell(written.number(value), value, href if value else "", note=note)


def number(value: float | None, *, note: str = "") -> Cell:
    """A mean or the like, two digits."""
    text = written.DASH if value is None else f"{value:.2f}".replace("-", "−")
    return Cell(text, value, note=note)


def rate(row: Row | None, such: Rate, *, href: str = "", missing_href: str = "") -> Cell:
    """A rate with its n, its interval and what it leaves out; None: there are no such items."""
    if row is None:
        return Cell(reason="no items")
    found = estimate(row, such)
    value, low, high = found.value, found.low, found.high
    return Cell(
        text=written.share(value),
        place=value,
        href=href if found.n else "",
        n=found.n,
        missing=row["missing"],
        missing_href=missing_href,
        interval="" if low is None else f"{written.share(low)} to {written.share(high)}",
        reason=found.reason,
        heat=int(written.heat(value, such.bad)) if such.bad and value is not None else None,
    )


def estimate(row: Row, such: Rate) -> Estimate:
    """A rate as it is shown, with its interval or why it has none."""
    value, low, high = row[such.value], row[such.low], row[such.high]
    if such.rest:
        value, low, high = _rest(value), _rest(high), _rest(low)
    reason = row[such.reason] or ""
    return Estimate(
        value, low, high, row[such.n], "nothing parsed" if reason == "no items" else reason
    )


def share(part: float | None, n: float, href: str = "") -> Cell:
    """A part of n items as a count with its share; a dash where the part does not apply."""
    if part is None:
        return Cell()
    of_all = f"{written.share(part / n)} of {written.number(n)}" if n else ""
    return Cell(written.number(part), part, href if part else "", note=of_all)


def items(one: Run, group: Row, number: int | None = None, /, **which: str) -> str:
    """Where the items behind a figure are listed: the run's outcomes of this group that count, or
    those of the run with this number."""
    narrowed = {field: group[field] for field in reports.FIELDS if group.get(field)}
    query = {**narrowed, **which, "counted": "yes"}
    page = reverse("run", args=[one.project.slug, number or one.number])
    return f"{page}?{urlencode(query)}#outcomes"


def _rest(value: float | None) -> float | None:
    return None if value is None else 1 - value
