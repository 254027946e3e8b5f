"""Cost: cost of runs, and cost per detected error."""

from collections.abc import Mapping, Sequence

from judging.models import Run
from judging.results import counted
from judging.results.views import cells
from judging.results.views.cells import Cell, Column, GridLine, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
)
from judging.runs.spending import format_estimate
from judging.strategies import Strategy

COLUMNS = (
    Column("Run", "run", is_number=False),
    Column("Error items", "total"),
    Column("Calls", "calls"),
    Column("Replies", "answered", "of all requests"),
    Column("Tokens in", "tokens_in"),
    Column("Tokens out", "tokens_out"),
    Column("Cost", "cost"),
    Column("Paid by this run", "paid"),
    Column("Detected", "detected"),
    Column("Cost per detected error", "per_detected"),
)
FREE_CELL = Cell("free", 0)
# The quantities that the chart can show.
DRAWN_TITLES = {"per_detected": "Cost per detected error", "tokens": "Tokens, input and output"}


def build_costs(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run."""
    runs = {run.number: run for run in asked.runs}
    rows = [row for row in tables[0] if row["run"] in runs]
    strategies = counted.load_strategies(runs.values())
    lines = [_line(runs[row["run"]], row, strategies) for row in rows]
    drawing = _drawing(runs, rows)
    words = (
        "Amounts are in the currency of the endpoints' prices. A request shared by several calls "
        "counts once. The cost includes all replies used by a run, whichever run paid for them. "
        "A dash: the replies have no price, or the run sent no requests. Calls, replies, tokens "
        "and cost cover all items, with or without an error. Last column: cost divided by the "
        "number of error items detected."
    )
    if drawing is None:
        words = f"{_why_no_cost(rows)} There is no chart. {words}"
    return ViewContent(cells.build_grid("Cost by run", COLUMNS, lines), drawing, words)


def money_cell(value: float | None, reason: str = "") -> Cell:
    """A cell with an amount of money, to four digits if it is small. If the amount is None, it has
    a reason."""
    return Cell(reason=reason) if value is None else Cell(format_estimate(value), value)


def _line(run: Run, row: Row, asked: Mapping[int, Strategy]) -> GridLine:
    reason = row["reason"] or ""
    detects = asked[run.pk].frame == "detection"
    # All replies have a price, and the total is 0.
    is_free = row["cost"] == 0
    return GridLine(
        (
            cells.run_cell(run),
            cells.count_cell(
                row["total"], _error_items_url(run, detects=detects), note=_missing(row)
            ),
            cells.count_cell(row["calls"]),
            cells.count_cell(row["answered"], note=_requests(row)),
            _token_cell(row, "tokens_in"),
            _token_cell(row, "tokens_out"),
            FREE_CELL if is_free else money_cell(row["cost"], reason),
            FREE_CELL if is_free else money_cell(row["paid"], reason),
            cells.count_cell(
                row["detected"], _error_items_url(run, detects=detects, result="detected")
            ),
            FREE_CELL if is_free and row["detected"] else money_cell(row["per_detected"], reason),
        )
    )


def _error_items_url(run: Run, *, detects: bool, **which: str) -> str:
    """The URL of a run's error items; for error detection, of the items labelled as errors."""
    if detects:
        return cells.outcomes_url(run, truth="error", counted="yes", **which)
    return cells.items_url(run, {}, **which)


def _missing(row: Row) -> str:
    return f"{row['missing']:,} missing" if row["missing"] else ""


def _requests(row: Row) -> str:
    return f"of {row['requests']:,}" if row["requests"] is not None else ""


def _token_cell(row: Row, name: str) -> Cell:
    without = row["without_tokens"]
    lacking = f"{without:,} replies without token counts" if without else "no replies"
    cell = cells.count_cell(row[name])
    return cell if row[name] is not None else Cell(reason=lacking)


def _drawing(runs: dict[int, Run], rows: Rows) -> ChartSpec | None:
    """A chart of the cost per detected error; if nothing was paid, of the runs' tokens."""
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import bars

    for name, title in DRAWN_TITLES.items():
        found = [
            bars.Bar(
                cells.run_name(runs[row["run"]]),
                row[name],
                _format_amount(name, row[name]),
                row["total"],
            )
            for row in rows
            if row[name] is not None
        ]
        if any(one.value for one in found):
            why = "" if name == "per_detected" else f"{_why_no_cost(rows)} "
            caption = f"{why}{title} by run. Runs without this value are left out."
            return ChartSpec(bars.draw_bars(found, title=title, counted="Error items"), caption)
    return None


def _why_no_cost(rows: Rows) -> str:
    """The reason why there is no cost per detected error."""
    if any(row["cost"] for row in rows):
        return "The paid runs detected nothing."
    return "No cost is known."


def _format_amount(name: str, value: float) -> str:
    return money_cell(value).text if name == "per_detected" else f"{value:,.0f}"


VIEWS = (
    ResultView(
        slug="runs",
        title="Cost by run",
        asks=(TableQuery("cost", ""),),
        build=build_costs,
        studies={},
        empty="No chosen run has a known cost.",
    ),
)
