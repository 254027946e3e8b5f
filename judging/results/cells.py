"""Parts of result tables: columns, blocks of lines, sorting, and cells for runs, counts and rates.

A cell links to the items behind it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote_plus

from django.urls import reverse

from annotation.labelling.models.labels import SI_ITEM
from annotation.templatetags import figures as written
from annotation.templatetags.figures import DASH
from judging.models import Run
from judging.results import counted, run_marks
from stats import paired
from stats.bootstrap import ROUGH

SortKey = float | str


@dataclass(frozen=True)
class Header:
    """The header of a column; `name` is its sort key in the URL, "" if the table cannot be sorted
    by it. `meaning` says what the column holds, "" if its title does."""

    title: str
    name: str = ""
    note: str = ""
    is_number: bool = True
    href: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    `text` is the value as shown, a dash if there is none. `reason` says why there is no value or no
    interval. `href` leads to the items that the value counts. `n` is the number of items that the
    value is a share of, None if the value is a count itself, and `n_href` leads to them; `missing`
    is the number of items left out. `place` is the sort key. `heat` from 0 to 4 says how
    bad the value is. `note` is for other remarks.
    """

    text: str = DASH
    place: SortKey | None = None
    href: str = ""
    n: int | None = None
    n_href: str = ""
    missing: int = 0
    missing_href: str = ""
    interval: str = ""
    reason: str = ""
    heat: int | None = None
    note: str = ""
    is_number: bool = True

    @property
    def is_there(self) -> bool:
        """True if there is a value to show, even if the value is 0."""
        return self.text != DASH

    @property
    def is_rough(self) -> bool:
        """True if the interval is from few clusters."""
        return bool(self.interval) and ROUGH in self.reason

    def small_print(self, *, intervals: bool) -> list[str]:
        """The lines below the value, as `table_cell` writes them on a page."""
        found = []
        if self.reason and not self.is_there:
            found.append(self.reason)
        elif intervals and self.interval:
            found.append(self.interval + (", rough" if self.is_rough else ""))
        elif intervals and self.reason:
            found.append(f"no interval: {self.reason}")
        if self.n is not None:
            missing = f", {self.missing:,} missing" if self.missing else ""
            found.append(f"n {self.n:,}{missing}")
        return [*found, self.note] if self.note else found


@dataclass(frozen=True)
class GridLine:
    """A row; its first cell is its header. `kind` is "group" for the total of a block, which stays
    at its top, "published" for figures of a study, or ""."""

    cells: tuple[Cell, ...]
    kind: str = ""


@dataclass(frozen=True)
class LineBlock:
    """Lines that are sorted as a unit; `kind` can be "invariant"."""

    lines: tuple[GridLine, ...]
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table with its title for screen readers; blocks without lines are not shown."""

    title: str
    columns: tuple[Header, ...]
    blocks: tuple[LineBlock, ...]

    @property
    def is_empty(self) -> bool:
        """True if no block has a line."""
        return not any(block.lines for block in self.blocks)

    @property
    def has_intervals(self) -> bool:
        """True if any cell has an interval; the page then explains intervals."""
        return any(
            cell.interval for block in self.blocks for line in block.lines for cell in line.cells
        )

    def sorted(self, sort: str) -> "Grid":
        """Sort the table by the name of a column, descending with a leading "-". Other names change
        nothing."""
        names = [column.name for column in self.columns]
        name = sort.removeprefix("-")
        if not name or name not in names:
            return self
        at = names.index(name)
        blocks = tuple(_sorted(block, at, downwards=sort.startswith("-")) for block in self.blocks)
        return replace(self, blocks=blocks)


def build_grid(title: str, columns: Sequence[Header], lines: Sequence[GridLine]) -> Grid:
    """A table with one block."""
    return Grid(title, tuple(columns), (LineBlock(tuple(lines)),))


def _sorted(block: LineBlock, at: int, *, downwards: bool) -> LineBlock:
    heads = [line for line in block.lines if line.kind == "group"]
    rest = [line for line in block.lines if line.kind != "group"]
    there = [line for line in rest if line.cells[at].place is not None]
    none = [line for line in rest if line.cells[at].place is None]

    def place(line: GridLine) -> Any:
        return line.cells[at].place

    return replace(block, lines=(*heads, *sorted(there, key=place, reverse=downwards), *none))


Row = Mapping[str, Any]

# The notes shown below a p that is not exact.
TEST_WORDS = {
    paired.DRAWN: "from a million random sign patterns",
    paired.TAIL_OF_T: "from Student’s t",
}
# The unit of differences of rates, shown next to the title of their column.
POINTS_UNIT = "points"


def run_name(run: Run, between: str = " · ") -> str:
    """The name of a run in charts: its label, and what it asked whom unless the reader wants the
    name alone, with its marks. With ": " as `between` it has two lines."""
    # A name may have a colon and a space, which would break the line in charts.
    label = run.label.replace(": ", ":\u00a0")
    marks = run_marks.list_mark_words(run)
    under = " · ".join(marks) if run.name and run.hides_number else _run_note(run)
    return between.join(filter(None, (label, under)))


def run_cell(one: Run) -> Cell:
    """A run with a link to its page, its endpoint and its marks."""
    return Cell(
        one.label,
        one.number,
        href=_run_url(one.project.slug, one.number),
        note=_run_note(one),
        is_number=False,
    )


def run_header(run: Run) -> Header:
    """The header of a column about a run: its name and number, or its number and strategy."""
    if not run.name:
        return Header(str(run.number), note=run.strategy_name)
    return Header(run.name, note="" if run.hides_number else str(run.number))


def _run_note(run: Run) -> str:
    """The endpoint and the marks of a run, after the strategy if a name stands in its place."""
    strategy = [run.strategy_name] if run.name else []
    return " · ".join((*strategy, run.endpoint.name, *run_marks.list_mark_words(run)))


def text_cell(text: str, place: float | str | None = None, *, note: str = "") -> Cell:
    """A cell with a text; it is sorted by the text unless `place` is given."""
    return Cell(text or written.DASH, text if place is None else place, note=note, is_number=False)


def count_cell(value: float | None, href: str = "", *, note: str = "") -> Cell:
    """A cell with a number of items."""
    return Cell(written.number(value), value, href if value else "", note=note)


def number_cell(value: float | None, *, note: str = "") -> Cell:
    """A cell with a number to two decimals, such as a mean."""
    return Cell(_write_number(value), value, note=note)


def _write_number(value: float | None) -> str:
    return written.DASH if value is None else _with_minus_sign(f"{value:.2f}")


def write_range(numbers: Sequence[int]) -> str:
    """The least and the largest of some counts, such as "8 to 1,200"; one count if all are equal.
    Raises ValueError for none."""
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def percent_cell(value: float | None) -> Cell:
    """A cell with a fraction of 1 in percent, without an n of its own."""
    return Cell(written.share(value), value)


def points_cell(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    reason: str | None = "",
) -> Cell:
    """A cell with a difference of rates in percentage points, with sign and interval."""
    interval = (
        "" if low is None or high is None else f"{_format_signed(low)} to {_format_signed(high)}"
    )
    return Cell(
        _format_signed(value) if value is not None else written.DASH,
        value,
        interval=interval,
        reason=reason or "",
    )


def p_value_cell(value: float | None, reason: str | None = "") -> Cell:
    """A cell with a p to three decimals; if p is None, it has a reason."""
    if value is None:
        return Cell(reason=reason or "")
    return Cell("< 0.001" if value < 0.0005 else f"{value:.3f}", value)


def figure_cell(row: Row, name: str, href: str = "", *, note: str = "") -> Cell:
    """A cell with a figure to two decimals, its interval and its reason, from the columns that
    start with `name`."""
    return _figure_cell(_write_number, row, name, href, note)


def with_sign(cell: Cell) -> Cell:
    """The same cell with a plus before a value above 0."""
    is_above = cell.is_there and isinstance(cell.place, float) and round(cell.place, 2) > 0
    return replace(cell, text=f"+{cell.text}") if is_above else cell


def percent_figure_cell(row: Row, name: str, href: str = "", *, note: str = "") -> Cell:
    """A cell with a figure from 0 to 1 in percent, as `figure_cell` reads it."""
    return _figure_cell(written.share, row, name, href, note)


def _figure_cell(
    write: Callable[[float | None], str], row: Row, name: str, href: str, note: str
) -> Cell:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return Cell(
        write(value),
        value,
        href,
        interval="" if low is None else f"{write(low)} to {write(high)}",
        reason=row[f"{name}_reason"] or "",
        note=note,
    )


def share_cell(part: float | None, n: float, href: str = "") -> Cell:
    """A cell with a part of n items, as a count and a share; a dash if the part does not apply."""
    if part is None:
        return Cell()
    of_all = f"{written.share(part / n)} of {written.number(n)}" if n else ""
    note = of_all.replace(" ", "\u00a0")
    return Cell(written.number(part), part, href if part else "", note=note)


def items_url(one: Run, group: Row, number: int | None = None, /, **which: str) -> str:
    """The URL of the items behind a figure: the counted outcomes of the group in this run, or in
    the run with this number."""
    narrowed = {field: group[field] for field in counted.FIELDS if group.get(field)}
    if not group.get("ability"):
        # Items without ability are duplicates; over all abilities, the items with an error count.
        narrowed["items"] = "repeats" if "ability" in group else "errors"
    if group.get("score_invariant") and "ability" not in group:
        narrowed["ability"] = SI_ITEM
    if narrowed.get("ability") == SI_ITEM and "score_invariant" in group:
        # Some items of this ability may be labelled as errors. They have a row of their own.
        narrowed["items"] = "invariant" if group["score_invariant"] else "errors"
    return outcomes_url(one, number, **{**narrowed, **which, "counted": "yes"})


def outcomes_url(one: Run, number: int | None = None, /, **which: str) -> str:
    """The URL of outcomes of the run, or of the run with this number, including outcomes left
    out."""
    address = _run_url(one.project.slug, number or one.number)
    return f"{address}?{encode_query(which)}#outcomes"


def encode_query(query: Mapping[str, Any]) -> str:
    """Encode as `urlencode` does, but for commas, which stay."""
    return "&".join(f"{_quote(name)}={_quote(str(value))}" for name, value in query.items())


# A table has thousands of links to a few runs, with a few values.
_quote = lru_cache(10_000)(partial(quote_plus, safe=","))
_run_url = lru_cache(10_000)(lambda slug, number: reverse("run", args=[slug, number]))


def _format_signed(value: float) -> str:
    return _with_minus_sign(f"{100 * value:+.1f}")


def _with_minus_sign(number: str) -> str:
    """Format a number with a minus sign as wide as a plus; zero has no sign."""
    return number.replace("-", "−") if float(number) else number.lstrip("+-")
