"""Missing: which replies could not be used, why, and what they could have changed."""

from collections.abc import Sequence
from dataclasses import replace

from judging.models import Run
from judging.prompts import frames
from judging.results import reports
from judging.views.results import cells, dots, flat, rated, stacks
from judging.views.results.cells import Row
from judging.views.results.grids import Cell, Column
from judging.views.results.kinds import Ask, Asked, Drawing, Rows, Shown, View
from stats.estimates import Estimate

NOTHING = "nothing is missing"


def show(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """A line a cause, beside the rate and what it could be had every missing reply gone one way."""
    rows = rated.with_rates(tables[0], tables[1])
    grid = flat.table(
        asked,
        "Missing replies by cause",
        rows,
        (
            (stacks.COUNTED[0][0], _parsed),
            (Column("Cause", "cause", is_number=False), _cause),
            (Column("Items", "n"), _items),
            (Column("Lowest rate", "lowest"), _bound("lowest")),
            (rated.UNDETECTED[0], _rate),
            (Column("Highest rate", "highest"), _bound("highest")),
            (Column("By category, p", "p"), _depends),
        ),
    )
    words = (
        "A reply that could not be used is never a verdict. The lowest and the highest rate are"
        " what the undetected rate could be had all missing items gone one way or the other."
        " A small p says that what is missing depends on the category. Detectors and ratings have"
        " no such rate; the pages Detector and Against people bound theirs."
    )
    return Shown(grid, _drawing(asked, rows), words)


def _cause(run: Run, row: Row) -> Cell:
    return cells.words(row["cause"] or NOTHING)


def _parsed(run: Run, row: Row) -> Cell:
    """Ratings are neither detected nor undetected, so no list of outcomes is of those alone."""
    if _has_rate(row):
        return stacks.COUNTED[0][1](run, row)
    judges = frames.needs(run.strategy.strategy()) == "detection"
    return cells.count(row["parsed"], _listed(run, row, result="parsed") if judges else "")


def _items(run: Run, row: Row) -> Cell:
    if not row["cause"]:
        return cells.count(0)
    return cells.count(row["n"], _listed(run, row, result="missing", cause=row["cause"]))


def _listed(run: Run, row: Row, **which: str) -> str:
    """Where the items are listed; no ability says nothing of those that detectors judge."""
    if _has_rate(row):
        return cells.items(run, row, **which)
    group = {field: row[field] for field in reports.FIELDS if row.get(field)}
    return cells.outcomes(run, **group, **which, counted="yes")


def _has_rate(row: Row) -> bool:
    """Whether there is an undetected rate, which detectors and ratings have not."""
    return row["lowest"] is not None


def _rate(run: Run, row: Row) -> Cell:
    _, cell = rated.UNDETECTED
    return cell(run, row) if _has_rate(row) else Cell()


def _bound(name: str) -> stacks.Draw:
    """Of all items, those whose replies could be used and the missing ones."""

    def cell(run: Run, row: Row) -> Cell:
        return replace(cells.of_share(row[name]), n=row["total"]) if _has_rate(row) else Cell()

    return cell


def _depends(run: Run, row: Row) -> Cell:
    return cells.p_value(row["p"], row["p_reason"])


def _drawing(asked: Asked, rows: Rows) -> Drawing | None:
    """One mark a run and group, however many causes it has."""
    groups = {rated.key(row): row for row in rows if row["of_rate"]}
    found = [
        (
            "",
            flat.label(asked, row),
            Estimate(row["of_rate"]["rate"], row["lowest"], row["highest"], row["parsed"]),
        )
        for row in groups.values()
    ]
    caption = (
        "Undetected rates, each with the lowest and the highest that it could be had every missing"
        " reply gone one way. These are bounds, not intervals."
    )
    return dots.drawing(found, title="Undetected rate", caption=caption)


VIEWS = (
    View(
        slug="causes",
        title="Causes and bounds",
        asks=(Ask("missing"), Ask("undetected")),
        show=show,
        studies={},
        empty="The chosen runs have decided no item that figures count.",
        switches=(flat.grouped(),),
    ),
)
