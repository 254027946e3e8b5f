"""Verdicts: results of pairwise comparisons, effects of the order (study 000, tables 11 to 15 and
19), and changes between repeats."""

from collections.abc import Sequence
from typing import Any

from judging.models import Run
from judging.results.verdicts import EFFECTS
from judging.results.views import (
    cells,
    dot_charts,
    page_parts,
    run_group_tables,
    stacked_charts,
    undetected_beside,
)
from judging.results.views.cells import Cell, Column, RateColumns, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    StudyFigure,
    TableQuery,
    ViewContent,
)
from judging.strategies.replies.causes import ONE_ORDER

NO_PAIRS = (
    "None of the chosen runs compared answers in pairs. Choose a run with such a strategy, "
    "for example pairwise or pairwise-axis."
)
NO_REPEATS = (
    "None of the chosen runs has repeated samples. Start a run with several samples per call."
)
_BY = ("ability", "category")
TABLES = (
    StudyFigure("table 11", ("pairwise-verdict",), _BY),
    StudyFigure("table 12", ("pairwise",), _BY),
    StudyFigure("table 13", ("pairwise-rules",), _BY),
    StudyFigure("table 14", ("pairwise-axis",), _BY),
    StudyFigure("table 15", ("pairwise-axis-rules",), _BY),
    StudyFigure("table 19", ("pairwise-axis-rules",), _BY),
)
VERDICT_TITLES = {
    "G": "Gold twice (G)",
    "mixed": "Mixed",
    "both_good": "Both good",
    "both_bad": "Both bad",
    "P": "Perturbed twice (P)",
}
EFFECT_TITLES = {
    "first_twice": "First position twice",
    "second_twice": "Second position twice",
    "half_tie": "A tie in one order",
    "steady": "No order effect",
}
_FIRST = RateColumns(
    "first_rate", "first_low", "first_high", "first_parsed", "first_reason", missing=""
)
_CHANGING = RateColumns(
    "changing_rate", "changing_low", "changing_high", "repeated", "changing_reason", missing=""
)


def build_verdicts(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The combined verdicts of both orders; only gold in both counts as detected."""
    rows = undetected_beside.add_rates(tables[0], tables[1])
    shares = [
        (Column(title, name), stacked_charts.make_share_cell(name))
        for name, title in VERDICT_TITLES.items()
    ]
    one = (Column("One order missing", "one_order"), _one_order)
    grid = run_group_tables.build_table(
        asked,
        "Verdicts of pairs",
        rows,
        (*stacked_charts.COUNT_COLUMNS, one, *shares, undetected_beside.UNDETECTED_COLUMN),
    )
    words = (
        "Each pair is shown in both orders. G: gold chosen both times (detected). P: "
        "perturbed chosen both times. Mixed: any other combination. On score-invariant "
        "items, “both good” is the correct verdict."
    )
    caption = "Verdicts of both orders together"
    return ViewContent(
        grid,
        stacked_charts.draw_groups(asked, rows, VERDICT_TITLES, "Share of pairs", caption),
        words,
    )


def build_order_effect(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """How often the position of the answers decided the verdict."""
    rows = _merge_effects(tables[0])
    rates = [(Column(EFFECT_TITLES[name], name), _effect(name)) for name in EFFECTS]
    grid = run_group_tables.build_table(
        asked, "Order effect", rows, (*stacked_charts.COUNT_COLUMNS, *rates)
    )
    words = (
        "Shares of parsed pairs: the first position chosen in both orders, the second "
        "position chosen in both orders, or a tie in only one order."
    )
    caption = "How often the position decided"
    return ViewContent(
        grid,
        stacked_charts.draw_groups(asked, rows, EFFECT_TITLES, "Share of pairs", caption),
        words,
    )


def build_repeats(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """The first sample compared with all samples, and the number of items whose result changed."""
    rows = tables[0]
    figures = (
        (Column("Samples", "samples"), _samples),
        (Column("Undetected, first sample", "first_rate"), _make_rate_cell(_FIRST)),
        (Column("Undetected, all samples", "rate"), _all_samples),
        (Column("Changed result", "changing_rate"), _changing),
    )
    grid = run_group_tables.build_table(asked, "Repeats and votes", rows, figures)
    words = (
        "The first sample (k = 1) next to all k samples, which count as votes if the run "
        "combines them, and otherwise as the mean share of repeats. Changed result: share of "
        "items with two or more samples where one sample detected the error and another did not. "
        "n counts items, not calls."
    )
    return ViewContent(grid, _drawing(asked, rows), words)


def _one_order(run: Run, row: Row) -> Cell:
    href = cells.items_url(run, row, result="missing", cause=ONE_ORDER)
    return cells.count_cell(row["one_order"], href)


def _merge_effects(rows: Rows) -> Rows:
    """One row per run and group, with the table's row for each effect."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault(
            undetected_beside.row_key(row), {**row, "of": {}, "steady": row["parsed"]}
        )
        one["of"][row["effect"]] = row
        one[row["effect"]] = row["n"]
        one["steady"] -= row["n"]
    return list(found.values())


def _effect(name: str) -> stacked_charts.CellFunction:
    def cell(run: Run, row: Row) -> Cell:
        href = cells.items_url(run, row, result="parsed", detail="mixed", order_effect=name)
        return cells.rate_cell(row["of"][name], RateColumns(), href=href)

    return cell


def _samples(run: Run, row: Row) -> Cell:
    return cells.count_cell(row["samples"], note="votes" if row["votes"] else "repeats")


def _all_samples(run: Run, row: Row) -> Cell:
    such = page_parts.MEASURES["undetected"].rate(invariant=page_parts.is_invariant(row))
    return _make_rate_cell(such)(run, row)


def _make_rate_cell(such: RateColumns) -> stacked_charts.CellFunction:
    return lambda run, row: cells.rate_cell(
        row,
        such,
        href=cells.items_url(run, row, result="parsed"),
        missing_href=cells.items_url(run, row, result="missing"),
    )


def _changing(run: Run, row: Row) -> Cell:
    return cells.rate_cell(row, _CHANGING, href=cells.items_url(run, row, repeats="changing"))


def _drawing(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    series = {
        "first sample": _FIRST,
        "all samples": RateColumns(),
        "changed result": _CHANGING,
    }
    found = [
        (title, run_group_tables.chart_label(asked, row), cells.read_estimate(row, such))
        for row in rows
        for title, such in series.items()
    ]
    caption = (
        "Undetected rates of the first sample and of all, and the share of items with a "
        "changed result, with 95 % intervals."
    )
    return dot_charts.draw_dots(found, title="Share of items", caption=caption, series="Of")


VIEWS = (
    ResultView(
        slug="verdicts",
        title="Verdicts",
        asks=(TableQuery("verdicts"), TableQuery("undetected")),
        build=build_verdicts,
        studies={"000": TABLES},
        empty=NO_PAIRS,
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="order",
        title="Order effect",
        asks=(TableQuery("order_effect"),),
        build=build_order_effect,
        studies={},
        empty=NO_PAIRS,
        switches=(run_group_tables.group_switch(),),
    ),
    ResultView(
        slug="repeats",
        title="Repeats and votes",
        asks=(TableQuery("repeats"),),
        build=build_repeats,
        studies={},
        empty=NO_REPEATS,
        switches=(run_group_tables.group_switch(),),
    ),
)
