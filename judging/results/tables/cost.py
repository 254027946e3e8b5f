"""What did the runs cost, and what do they detect for it? The table `cost`, and the page Cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.conf import settings

from judging.models import Call, Outcome, Reply, Run
from judging.results import arrays, cells, columns, lines, progress
from judging.results import counted as counting
from judging.results.arrays import RunArrays
from judging.results.cells import Cell, Row
from judging.results.columns import Table
from judging.results.counted import one_if
from judging.results.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
)
from judging.results.tables import sensitivity
from judging.runs.amounts import format_rough_number
from judging.runs.spending import DECIMAL_PLACES
from stats.estimates import Estimate

# Items with an error. In study 001's frame, such items may have no ability.
ERROR_ITEM = (
    "(o.truth = 'error' OR (o.truth <> 'no_error' AND o.ability <> '' AND NOT o.invariant))"
)
NO_REPLY = "no replies"
NO_PRICE = "replies without a price"
NOTHING_DETECTED = "nothing detected"
NO_J = "judges no perturbed answers"
# `cost_per_1000` is the cost of this many items.
ITEMS = 1_000


def tabulate(runs: Iterable[Run], found: Sequence[RunArrays] | None = None) -> list[dict[str, Any]]:
    """The table `cost`, one row per run; money is in `currency`, that of the site. `found` has the
    outcomes of these runs if they are already loaded.

    `total`, `missing` and `detected` count only items with an error; calls, tokens and money are
    over all items. A request shared by several calls counts once. `cost` is the cost of all replies
    of the run, including replies that another run paid for. `paid` is what this run paid, None if
    no reply has a known price. Both are rounded to 15 digits, as stored. `per_detected` is cost
    divided by detected error items. If the tokens or price of any reply are unknown, the sum is
    None, and `without_tokens` or `without_price` counts these replies. For a run without calls,
    such as a vote, `calls`, `tokens` and `cost` are None. `cost_per_1000` is the cost divided by
    the items that the run has settled, times 1,000. J is that of the table `sensitivity` over all
    items; None with a `j_reason`. `tokens_cached` and `tokens_reasoning` are the parts of
    `tokens_in` and `tokens_out` that the replies report, None if no reply reports them.
    `per_detected_low` and `per_detected_high` follow from the interval of the detection rate, since
    the cost is known: None for runs without J's frames, and the upper one also where that interval
    begins at 0.
    """
    runs = list(runs)
    asked, judged, settled = sum_requests(runs), _count_errors(runs), _count_settled(runs)
    loaded = arrays.load_arrays(runs) if found is None else found
    none = Estimate(None, None, None, 0, NO_J)
    estimates = {one.run.pk: sensitivity.estimate_rates(one) for one in loaded}
    rows = []
    for run in runs:
        row = _row(run, asked.get(run.pk), judged.get(run.pk, {}))
        detection, _, j = estimates.get(run.pk, (none, none, none))
        rows.append(
            {
                **row,
                "cost_per_1000": _cost_per_1000(row["cost"], settled.get(run.pk, 0)),
                **counting.figure_columns("j", j),
                "per_detected_low": _divide(row["per_detected"], detection.value, detection.high),
                "per_detected_high": _divide(row["per_detected"], detection.value, detection.low),
            }
        )
    return rows


def _divide(per_detected: float | None, rate: float | None, end: float | None) -> float | None:
    """The cost per detected error if the detection rate were at this end of its interval."""
    if per_detected is None or rate is None or not end:
        return None
    return per_detected * rate / end


def _cost_per_1000(cost: float | None, settled: int) -> float | None:
    return cost / settled * ITEMS if cost is not None and settled else None


def _count_settled(runs: Sequence[Run]) -> dict[int, int]:
    """The number of items with an outcome, for each run that has any."""
    if not runs:
        return {}
    listed = ", ".join(str(run.pk) for run in runs)
    statement = f"""
        SELECT o.run_id, COUNT(*) AS n FROM {Outcome._meta.db_table} AS o
        WHERE o.run_id IN ({listed}) AND o.main AND o.result <> 'pending' GROUP BY o.run_id
    """
    return {row["run_id"]: int(row["n"]) for row in counting.fetch_dicts(statement)}


def _count_errors(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """Count the items with an error, the missing ones and the detected ones, for each run with such
    items."""
    if not runs:
        return {}
    found = [
        record
        for some in progress.split_if_watched([run.pk for run in runs], "counting outcomes")
        for record in counting.fetch_dicts(f"""
            SELECT o.run_id, COUNT(*) AS total, SUM({one_if("o.result = 'missing'")}) AS missing,
                SUM({one_if("o.result = 'detected'")}) AS detected
            FROM {Outcome._meta.db_table} AS o
            WHERE {counting.counted_condition(some)} AND o.result <> 'scored' AND
            {counting.original_condition()} AND {ERROR_ITEM} GROUP BY o.run_id
        """)
    ]
    return {record["run_id"]: record for record in found}


def sum_requests(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """Count the calls, and sum over distinct requests and replies, for each run with calls.

    `thinking` is the number of replies with thinking. Sums of tokens are None if no reply reports
    them. `cost` is a Decimal, None without replies, and if any of them has no price.

    Whole units of money and fractions are summed separately, the fractions in units of the last
    decimal place. SQLite adds fractions with a rounding error that depends on their order, and its
    integers, if they count those small units, hold at most nine million units of money.
    """
    if not runs:
        return {}
    listed = ", ".join(str(run.pk) for run in runs)
    unknown = "p.tokens_in IS NULL OR p.tokens_out IS NULL"
    statement = f"""
        SELECT u.run_id, SUM(u.n) AS calls, COUNT(*) AS requests, COUNT(p.id) AS answered,
            SUM(p.tokens_in) AS tokens_in, SUM(p.tokens_out) AS tokens_out,
            SUM({one_if("p.thinking IS NOT NULL")}) AS thinking,
            SUM(p.tokens_cached) AS tokens_cached, SUM(p.tokens_reasoning) AS tokens_reasoning,
            SUM(CAST(ROUND(p.cost) AS BIGINT)) AS cost,
            SUM(CAST(ROUND((p.cost - ROUND(p.cost)) * {10**DECIMAL_PLACES}) AS BIGINT)) AS
            cost_behind, SUM({one_if(f"p.id IS NOT NULL AND ({unknown})")}) AS without_tokens,
            SUM({one_if("p.id IS NOT NULL AND p.cost IS NULL")}) AS without_price
        FROM (
            SELECT c.run_id, c.request_id, COUNT(*) AS n FROM {Call._meta.db_table} AS c
            WHERE c.run_id IN ({listed}) GROUP BY c.run_id, c.request_id
        ) AS u LEFT JOIN {Reply._meta.db_table} AS p ON p.request_id = u.request_id
        GROUP BY u.run_id
    """
    return {row["run_id"]: _request_sums(row) for row in counting.fetch_dicts(statement)}


def _request_sums(row: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: None if one is None else int(one) for name, one in row.items()}
    whole, behind = said.pop("cost"), said.pop("cost_behind")
    spent = None
    if whole is not None and behind is not None and not said["without_price"]:
        spent = whole + Decimal(behind).scaleb(-DECIMAL_PLACES)
    return said | {"cost": spent}


def _row(run: Run, asked: Mapping[str, Any] | None, judged: Mapping[str, Any]) -> dict[str, Any]:
    said = asked or {}
    detected = int(judged.get("detected", 0))
    answered = said.get("answered", 0)
    spent = said.get("cost")
    cost = None if spent is None else _to_float(spent)
    unknown = answered > 0 and answered == said["without_price"]
    counted = answered and not said["without_tokens"]
    tokens = (said["tokens_in"], said["tokens_out"]) if counted else None
    return {
        **counting.run_columns(run),
        "total": int(judged.get("total", 0)),
        "missing": int(judged.get("missing", 0)),
        "calls": said.get("calls"),
        "tokens": sum(tokens) if tokens else None,
        "cost": cost,
        "per_detected": cost / detected if cost is not None and detected else None,
        "reason": _reason(answered, cost, detected),
        **{name: said.get(name) for name in ("requests", "answered")},
        "tokens_in": tokens[0] if tokens else None,
        "tokens_out": tokens[1] if tokens else None,
        **{name: said.get(name) for name in ("tokens_cached", "tokens_reasoning")},
        **{name: said.get(name) for name in ("without_tokens", "without_price")},
        "paid": None if unknown else _to_float(run.spent),
        "detected": detected,
        "currency": settings.CURRENCY,
    }


def _to_float(money: Decimal) -> float:
    """Convert money to a float with 15 digits, the precision of SQLite, so that all databases give
    the same result."""
    number = float(f"{money:.15g}")
    return int(number) if number.is_integer() else number


def _reason(answered: float, cost: float | None, detected: float) -> str | None:
    if not answered:
        return NO_REPLY
    if cost is None:
        return NO_PRICE
    return None if detected else NOTHING_DETECTED


def _money_cell(value: float | None, reason: str = "") -> Cell:
    """A cell with an amount of money, to four digits if it is small. If the amount is None, it has
    a reason."""
    return Cell(reason=reason) if value is None else Cell(format_rough_number(value), value)


def money_column(
    name: str, title: str, *, reason: str = "reason", total: str = "cost"
) -> columns.Custom:
    """An amount of money; "free" if all replies have a price and the total in that column is 0."""

    def cell(row: Row, of: columns.Leading) -> Cell:
        if row[total] == 0 and row[name] is not None:
            return Cell("free", 0)
        return _money_cell(row[name], row[reason] or "")

    return columns.Custom(name, title, make=cell, unit=settings.CURRENCY)


def _per_detected_cell(row: Row, of: columns.Leading) -> Cell:
    found = money_column("per_detected", "").cell(row, of)
    low, high = row["per_detected_low"], row["per_detected_high"]
    if low is None or not row["cost"]:
        return found
    end = f"to {format_rough_number(high)}" if high is not None else "or more"
    return replace(found, interval=f"{format_rough_number(low)} {end}")


def _tokens(name: str, title: str) -> columns.Custom:
    def cell(row: Row, of: columns.Leading) -> Cell:
        without = row["without_tokens"]
        if row[name] is None:
            lacking = f"{without:,} replies without token counts" if without else "no replies"
            return Cell(reason=lacking)
        return cells.count_cell(row[name])

    return columns.Custom(name, title, make=cell)


def _part_of_tokens(name: str, title: str, whole: str) -> columns.Custom:
    """A part of the tokens in or out, with its share if all counts are known."""

    def cell(row: Row, of: columns.Leading) -> Cell:
        if row[name] is None:
            return Cell(reason="not reported" if row["answered"] else NO_REPLY)
        known = cells.count_cell(row[name])
        return replace(known, note=f"of {row[whole]:,}") if row[whole] is not None else known

    return columns.Custom(name, title, make=cell)


def _missing_note(row: Row) -> str:
    return f"{row['missing']:,} missing" if row["missing"] else ""


def _requests_note(row: Row) -> str:
    return f"of {row['requests']:,}" if row["requests"] is not None else ""


COST = Table(
    "cost",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy"),
        columns.Count("total", "Error items", columns.items(), note=_missing_note),
        columns.Column("missing"),
        columns.Count("calls", "Calls"),
        columns.Column("tokens"),
        money_column("cost", "Cost"),
        columns.Custom(
            "per_detected",
            "Cost per detected error",
            make=_per_detected_cell,
            unit=settings.CURRENCY,
        ),
        *columns.plain("reason", "requests"),
        columns.Count("answered", "Replies", unit="of all requests", note=_requests_note),
        _tokens("tokens_in", "Tokens in"),
        _tokens("tokens_out", "Tokens out"),
        *columns.plain("without_tokens", "without_price"),
        money_column("paid", "Paid by this run"),
        columns.Count("detected", "Detected", columns.items(result="detected")),
        money_column("cost_per_1000", "Cost of 1,000 items"),
        columns.Figure("j", "J"),
        *columns.plain("j_low", "j_high", "j_reason", "per_detected_low", "per_detected_high"),
        _part_of_tokens("tokens_cached", "Cached tokens in", "tokens_in"),
        _part_of_tokens("tokens_reasoning", "Reasoning tokens", "tokens_out"),
        *columns.plain("currency"),
    ),
    lambda project, runs, by: tabulate(runs),
    settings=lambda project, runs: [settings.CURRENCY],
    of_people=False,
    about="A row per run: its requests, tokens and cost, also per detected error and per "
    "1,000 items.",
    meanings={
        "total": "number of items with an error, missing ones included",
        "missing": "number of items with an error, but without a usable outcome",
        "detected": "number of items with an error that was detected",
        "calls": "number of calls of the run, over all items with or without an error; empty "
        "without calls, as for a vote",
        "requests": "number of different requests; several calls can share one",
        "answered": "number of requests with a reply",
        "tokens": "tokens in and out of all replies; empty if a reply has no counts",
        "tokens_in": "tokens of the prompts",
        "tokens_out": "tokens of the replies",
        "tokens_cached": "part of the tokens in that the provider read from its cache; empty if "
        "no reply reports it",
        "tokens_reasoning": "part of the tokens out that the model used for reasoning; empty if "
        "no reply reports it",
        "without_tokens": "number of replies without counts of tokens",
        "without_price": "number of replies without a price",
        "cost": "cost of all replies that the run used, whichever run paid for them; empty if a "
        "reply has no price",
        "paid": "what this run paid itself; empty if no reply has a price",
        "per_detected": "cost divided by detected; its interval follows from that of the "
        "detection rate",
        "cost_per_1000": "cost divided by the number of items with an outcome, missing ones "
        "included, times 1,000",
        "reason": "why the cost, or the cost per detected error, is empty",
    },
)


class _ErrorItems(columns.Leading):
    """Runs whose figures link to their error items; for error detection, to the items labelled as
    errors."""

    def __init__(self, asked: PageQuery, rows: Rows) -> None:
        super().__init__(asked, rows)
        self.strategies = counting.load_strategies(asked.runs)

    def items_url(self, row: Row, **which: str) -> str:
        run = self.runs[row["run"]]
        if self.strategies[run.pk].frame == "detection":
            return cells.outcomes_url(run, truth="error", counted="yes", **which)
        return cells.items_url(run, {}, **which)


_COST_BY_RUN = lines.Lines(
    COST,
    "Cost by run",
    (
        *("run", "j", "cost_per_1000", "per_detected", "cost", "paid"),
        *("total", "detected", "calls", "answered"),
        *("tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning"),
    ),
    "The highest J comes first. J is detection minus false alarms, so that finding fault with "
    "everything earns nothing; a low cost per detected error alone does not make a good evaluator. "
    "A request shared by several calls counts once. The cost includes all replies used by a run, "
    "whichever run paid for them. A dash: the replies have no price, or the run sent no requests. "
    "Calls, replies, tokens and cost cover all items, with or without an error. Cached tokens are "
    "a part of the tokens in, reasoning tokens a part of the tokens out. Cost per detected error: "
    "cost divided by the number of error items detected.",
    lambda asked, rows: _draw(asked, rows),
    lambda asked, tables: sorted(tables[0], key=_place),
    leading=_ErrorItems,
)
# The quantities that the chart can show.
DRAWN_TITLES = {
    "per_detected": f"Cost per detected error ({settings.CURRENCY})",
    "tokens": "Tokens, input and output",
}


def _place(row: Row) -> tuple[bool, float, int]:
    """The sort key of a line: the highest J first, runs without a J last."""
    return row["j"] is None, -(row["j"] or 0), row["run"]


def build_costs(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run, the highest J first."""
    shown = _COST_BY_RUN(asked, tables)
    if shown.drawing is None:
        why = f"{_why_no_cost(tables[0])} There is no chart. "
        shown = replace(shown, words=why + shown.words)
    return shown


def _draw(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    """A chart of J against cost; if no run has both, bars of the cost per detected error, or of
    tokens if nothing was paid."""
    drawn = [row for row in rows if row["j"] is not None and row["cost_per_1000"] is not None]
    if any(row["cost_per_1000"] for row in drawn):
        return _draw_against_j(asked, drawn, len(rows) - len(drawn))
    return _draw_bars(asked, rows)


def _draw_against_j(asked: PageQuery, rows: Rows, left_out: int) -> ChartSpec:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import costs

    title = f"{COST['cost_per_1000'].title} ({settings.CURRENCY})"
    points = [
        costs.CostPoint(
            cells.run_name(asked.runs_by_number[row["run"]]),
            row["cost_per_1000"],
            COST["cost_per_1000"].cell(row, columns.Leading(asked, rows)).text,
            *(row[f"j{end}"] for end in ("", "_low", "_high")),
        )
        for row in rows
    ]
    caption = (
        "Cost of 1,000 items against J, with the 95 % interval of J. Up and to the left is better. "
        "On the dashed line, a run is no better than a coin."
    )
    if left_out:
        runs = "1 run" if left_out == 1 else f"{left_out} runs"
        caption += f" Left out: {runs} without a known cost or without a J."
    return ChartSpec(costs.draw_costs(points, title=title), caption)


def _draw_bars(asked: PageQuery, rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import bars

    for name, title in DRAWN_TITLES.items():
        found = [
            bars.Bar(
                cells.run_name(asked.runs_by_number[row["run"]]),
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
    """The reason why no cost per detected error above 0 can be drawn."""
    if any(row["cost"] for row in rows):
        return "The paid runs detected nothing."
    if any(row["cost"] == 0 for row in rows):
        return "Every run with a known cost was free."
    return "No cost is known."


def _format_amount(name: str, value: float) -> str:
    return _money_cell(value).text if name == "per_detected" else f"{value:,.0f}"


VIEWS = (
    ResultView(
        slug="runs",
        title="Cost by run",
        asks=(TableQuery(COST, ""),),
        figures=("j",),
        build=build_costs,
        studies={},
        empty="No chosen run has a known cost.",
    ),
)
