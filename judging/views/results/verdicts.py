"""Verdicts: what do pairs say, and does the place of an answer decide? (study 000, tables 11 to 15
and 19); and what asking repeatedly changes."""

from collections.abc import Sequence
from typing import Any

from judging.models import Run
from judging.results.verdicts import EFFECTS
from judging.views.results import cells, dots, flat, measures, rated, stacks
from judging.views.results.cells import Rate, Row
from judging.views.results.grids import Cell, Column
from judging.views.results.kinds import Ask, Asked, Drawing, Place, Rows, Shown, View

NO_PAIRS = (
    "None of the chosen runs compared answers in pairs. Choose a run of such a strategy, for"
    " example pairwise or pairwise-axis."
)
NO_REPEATS = (
    "None of the chosen runs asked anything more than once. Start a run with several samples of"
    " each call."
)
_BY = ("ability", "category")
TABLES = (
    Place("table 11", ("pairwise-verdict",), _BY),
    Place("table 12", ("pairwise",), _BY),
    Place("table 13", ("pairwise-rules",), _BY),
    Place("table 14", ("pairwise-axis",), _BY),
    Place("table 15", ("pairwise-axis-rules",), _BY),
    Place("table 19", ("pairwise-axis-rules",), _BY),
)
KINDS = {
    "G": "Gold twice (G)",
    "mixed": "Mixed",
    "both_good": "Both good",
    "both_bad": "Both bad",
    "P": "Perturbed twice (P)",
}
PLACES = {
    "first_twice": "The first answer twice",
    "second_twice": "The second answer twice",
    "half_tie": "A tie in one order",
    "steady": "The place did not decide",
}
_FIRST = Rate("first_rate", "first_low", "first_high", "first_parsed", "first_reason", missing="")
_CHANGING = Rate(
    "changing_rate", "changing_low", "changing_high", "repeated", "changing_reason", missing=""
)


def verdicts(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """What both orders say together; only gold twice is a detection."""
    rows = rated.with_rates(tables[0], tables[1])
    shares = [(Column(title, name), stacks.share(name)) for name, title in KINDS.items()]
    one = (Column("One order missing", "one_order"), _one_order)
    grid = flat.table(
        asked, "Verdicts of pairs", rows, (*stacks.COUNTED, one, *shares, rated.UNDETECTED)
    )
    words = (
        "Each pair is shown in both orders. G: gold was chosen both times, which is a detection;"
        " P: the perturbed answer both times; mixed: any other combination. On score-invariant"
        " items both good is the right verdict."
    )
    caption = "Verdicts of both orders together"
    return Shown(grid, stacks.drawing(asked, rows, KINDS, "Share of pairs", caption), words)


def order(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """How often the place of the answers decided."""
    rows = _by_effect(tables[0])
    rates = [(Column(PLACES[name], name), _effect(name)) for name in EFFECTS]
    grid = flat.table(asked, "Order effect", rows, (*stacks.COUNTED, *rates))
    words = (
        "Of the parsed pairs: the answer shown first was chosen in both orders, the one shown"
        " second was, or one order was a tie and the other was not."
    )
    caption = "How often the place of an answer decided"
    return Shown(grid, stacks.drawing(asked, rows, PLACES, "Share of pairs", caption), words)


def repeats(asked: Asked, tables: Sequence[Rows]) -> Shown:
    """The first sample beside all samples, and how many items changed their result."""
    rows = tables[0]
    figures = (
        (Column("Samples", "samples"), _samples),
        (Column("Undetected, first sample", "first_rate"), _rate(_FIRST)),
        (Column("Undetected, all samples", "rate"), _all_samples),
        (Column("Changed their result", "changing_rate"), _changing),
    )
    grid = flat.table(asked, "Repeats and votes", rows, figures)
    words = (
        "The first sample alone, k = 1, beside all k: as votes, if the run folds them into one,"
        " else as the mean share of the repeats. Of the items with two samples or more, how many"
        " were detected by one and not by another. n counts items, never calls."
    )
    return Shown(grid, _drawing(asked, rows), words)


def _one_order(run: Run, row: Row) -> Cell:
    href = cells.items(run, row, result="missing", cause="one_order")
    return cells.count(row["one_order"], href)


def _by_effect(rows: Rows) -> Rows:
    """One row a run and group, each effect with its row of the table."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault(rated.key(row), {**row, "of": {}, "steady": row["parsed"]})
        one["of"][row["effect"]] = row
        one[row["effect"]] = row["n"]
        one["steady"] -= row["n"]
    return list(found.values())


def _effect(name: str) -> stacks.Draw:
    def cell(run: Run, row: Row) -> Cell:
        href = cells.items(run, row, result="parsed", detail="mixed", order_effect=name)
        return cells.rate(row["of"][name], Rate(), href=href)

    return cell


def _samples(run: Run, row: Row) -> Cell:
    return cells.count(row["samples"], note="votes" if row["votes"] else "repeats")


def _all_samples(run: Run, row: Row) -> Cell:
    such = measures.MEASURES["undetected"].rate(invariant=measures.is_invariant(row))
    return _rate(such)(run, row)


def _rate(such: Rate) -> stacks.Draw:
    return lambda run, row: cells.rate(
        row,
        such,
        href=cells.items(run, row, result="parsed"),
        missing_href=cells.items(run, row, result="missing"),
    )


def _changing(run: Run, row: Row) -> Cell:
    return cells.rate(row, _CHANGING, href=cells.items(run, row, repeats="changing"))


def _drawing(asked: Asked, rows: Rows) -> Drawing | None:
    series = {"first sample": _FIRST, "all samples": Rate(), "changed their result": _CHANGING}
    found = [
        (title, flat.label(asked, row), cells.estimate(row, such))
        for row in rows
        for title, such in series.items()
    ]
    caption = (
        "Undetected rates of the first sample and of all, and the share of items that changed their"
        " result, with 95 % intervals."
    )
    return dots.drawing(found, title="Share of items", caption=caption, series="Of")


VIEWS = (
    View(
        slug="verdicts",
        title="Verdicts",
        asks=(Ask("verdicts"), Ask("undetected")),
        show=verdicts,
        studies={"000": TABLES},
        empty=NO_PAIRS,
        switches=(flat.grouped(),),
    ),
    View(
        slug="order",
        title="Order effect",
        asks=(Ask("order_effect"),),
        show=order,
        studies={},
        empty=NO_PAIRS,
        switches=(flat.grouped(),),
    ),
    View(
        slug="repeats",
        title="Repeats and votes",
        asks=(Ask("repeats"),),
        show=repeats,
        studies={},
        empty=NO_REPEATS,
        switches=(flat.grouped(),),
    ),
)
