"""The results page as rows and columns: abilities with their categories below, runs across."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from annotation import taxonomy
from annotation.querysets import SI_ITEM
from judging.models import Run
from judging.results import reports
from judging.results.reports import Undetected

NAMES = ("ability", "category", "source_ability")
HEATS = 5
REPEATS = "Repeats of other items, in no ability"


class Key(NamedTuple):
    """What a line is over: "" where it is over all of them.

    `invariant`: score-invariant items, which have no ability of their own where they repeat others.
    """

    ability: str
    category: str
    source_ability: str
    invariant: bool

    @property
    def group(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in NAMES}


@dataclass(frozen=True)
class Measure:
    """What a rate says of items with an error, and of score-invariant ones."""

    slug: str
    title: str
    on_invariant: str

    @property
    def detects(self) -> bool:
        return self.slug == "detection"


MEASURES = {
    "detection": Measure("detection", "Detection rate", "false alarms"),
    "undetected": Measure("undetected", "Undetected rate", "left unmoved"),
}


@dataclass(frozen=True)
class Cell:
    """One figure of one run by the measure shown: fractions of 1, None where undefined.

    `n` items are parsed, `missing` are not. `heat` 0 to 4 is how bad the value is: missed errors,
    or false alarms; None without a value. `reason` says why there is no value or no interval.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    missing: int
    reason: str
    heat: int | None
    href: str
    missing_href: str


@dataclass(frozen=True)
class Line:
    """A row of the table: an ability, a category of it, or where score-invariant items are from."""

    title: str
    invariant: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Section:
    """An ability's own line, None for items that repeat others, and the lines below it.

    Those are its categories; of score-invariant items the abilities they were made from.
    """

    title: str
    head: Line | None
    lines: tuple[Line, ...]

    @property
    def invariant(self) -> bool:
        return self.head is not None and self.head.invariant


def sections(runs: Sequence[Run], measure: Measure) -> list[Section]:
    """The table of these runs, in the order of the taxonomy; groups no run has are left out."""
    heads = _by_key(reports.undetected(runs, ("ability",)))
    bodies = _by_key(reports.undetected(runs, ("ability", "category")))
    made_from = _by_key(reports.undetected(runs, ("ability", "source_ability")))
    abilities = dict.fromkeys(key.ability for key in _ordered(bodies))
    return [
        Section(
            title=_ability(ability),
            head=_head(ability, heads, runs, measure),
            lines=_below(ability, made_from if ability == SI_ITEM else bodies, runs, measure),
        )
        for ability in abilities
    ]


def _head(
    ability: str,
    rows: dict[Key, dict[int, Undetected]],
    runs: Sequence[Run],
    measure: Measure,
) -> Line | None:
    key = Key(ability, "", "", invariant=ability == SI_ITEM)
    return _line(key, rows, runs, measure) if ability else None


def _below(
    ability: str,
    rows: dict[Key, dict[int, Undetected]],
    runs: Sequence[Run],
    measure: Measure,
) -> tuple[Line, ...]:
    named = [key for key in _ordered(rows) if key.ability == ability and _is_part(key)]
    return tuple(_line(key, rows, runs, measure) for key in named)


def _is_part(key: Key) -> bool:
    return bool(key.category or key.source_ability)


def _by_key(rows: Iterable[Undetected]) -> dict[Key, dict[int, Undetected]]:
    found: dict[Key, dict[int, Undetected]] = {}
    for row in rows:
        ability, category, source = (row.group.get(name, "") for name in NAMES)
        key = Key(ability, category, source, row.invariant)
        found.setdefault(key, {})[row.run.pk] = row
    return found


def _ordered(rows: Iterable[Key]) -> list[Key]:
    return sorted(rows, key=lambda key: (reports.place(key.group), key.invariant))


def _line(
    key: Key, rows: dict[Key, dict[int, Undetected]], runs: Sequence[Run], measure: Measure
) -> Line:
    found = rows.get(key, {})
    cells = tuple(_cell(key, run, found.get(run.pk), measure) for run in runs)
    return Line(_title(key), key.invariant, cells)


def _cell(key: Key, run: Run, row: Undetected | None, measure: Measure) -> Cell:
    href, missing_href = _link(key, run, "parsed"), _link(key, run, "missing")
    if row is None:
        return Cell(None, None, None, 0, 0, "no items", None, href, missing_href)
    rate, low, high = row.estimate.value, row.estimate.low, row.estimate.high
    if measure.detects:
        rate, low, high = _rest(rate), _rest(high), _rest(low)
    return Cell(
        value=rate,
        low=low,
        high=high,
        n=row.parsed,
        missing=row.missing,
        reason="nothing parsed" if rate is None else row.estimate.reason,
        heat=_heat(row.estimate.value, key.invariant),
        href=href,
        missing_href=missing_href,
    )


def _rest(value: float | None) -> float | None:
    return None if value is None else 1 - value


def _heat(undetected: float | None, invariant: bool) -> int | None:
    if undetected is None:
        return None
    bad = 1 - undetected if invariant else undetected
    return min(HEATS - 1, int(bad * HEATS))


def _link(key: Key, run: Run, result: str) -> str:
    """The run's outcomes, narrowed down to exactly the items behind a cell."""
    query = {**key.group, "result": result, "counted": "yes"}
    page = reverse("run", args=[run.project.slug, run.number])
    return f"{page}?{urlencode({k: v for k, v in query.items() if v})}#outcomes"


def _title(key: Key) -> str:
    if key.source_ability:
        return f"made from {_ability(key.source_ability)}"
    return _category(key.category) if key.category else _ability(key.ability)


def _ability(slug: str) -> str:
    if not slug:
        return REPEATS
    return next((one.name for one in taxonomy.load().abilities if one.slug == slug), slug)


def _category(slug: str) -> str:
    found = taxonomy.load().find(slug)
    return found.name if found else slug
