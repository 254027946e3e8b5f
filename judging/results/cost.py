"""Cost of runs, and cost per detected error."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from judging.models import Call, Outcome, Reply, Run
from judging.results import counted as results_counted
from judging.results import progress
from judging.results.counted import one_if
from judging.runs.spending import DECIMAL_PLACES

COLUMNS = (
    "total", "missing", "calls", "tokens", "cost", "per_detected", "reason",
    "requests", "answered", "tokens_in", "tokens_out", "without_tokens", "without_price", "paid",
    "detected",
)  # fmt: skip
# Items with an error that are not duplicates. In study 001's frame, such items may have no ability.
ERROR_ITEM = (
    "(o.truth = 'error' OR (o.truth <> 'no_error' AND o.ability <> '' AND NOT o.invariant))"
)
NO_REPLY = "no replies"
NO_PRICE = "replies without a price"
NOTHING_DETECTED = "nothing detected"


def tabulate(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `cost`, one row per run; money is in the currency of the prices.

    `total`, `missing` and `detected` count only items with an error; calls, tokens and money are
    over all items. A request shared by several calls counts once. `cost` is the cost of all replies
    of the run, including replies that another run paid for. `paid` is what this run paid, None if
    no reply has a known price. Both are rounded to 15 digits, as stored. `per_detected` is cost
    divided by detected error items. If the tokens or price of any reply are unknown, the sum is
    None, and `without_tokens` or `without_price` counts these replies. For a run without calls,
    such as a vote, `calls`, `tokens` and `cost` are None.
    """
    runs = list(runs)
    asked, judged = _sum_requests(runs), _count_errors(runs)
    return [_row(run, asked.get(run.pk), judged.get(run.pk, {})) for run in runs]


def _count_errors(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """Count the items with an error, the missing ones and the detected ones, for each run with such
    items."""
    if not runs:
        return {}
    found = [
        record
        for some in progress.split_if_watched([run.pk for run in runs], "counting outcomes")
        for record in results_counted.fetch_dicts(f"""
            SELECT o.run_id, COUNT(*) AS total, SUM({one_if("o.result = 'missing'")}) AS missing,
                SUM({one_if("o.result = 'detected'")}) AS detected
            FROM {Outcome._meta.db_table} AS o
            WHERE {results_counted.counted_condition(some)} AND o.result <> 'scored' AND
            {ERROR_ITEM} GROUP BY o.run_id
        """)
    ]
    return {record["run_id"]: record for record in found}


def _sum_requests(runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """Count the calls, and sum over distinct requests and replies, for each run with calls.

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
    return {row["run_id"]: row for row in results_counted.fetch_dicts(statement)}


def _row(run: Run, asked: Mapping[str, Any] | None, judged: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: int(one) for name, one in (asked or {}).items() if one is not None}
    detected = int(judged.get("detected", 0))
    answered = said.get("answered", 0)
    cost = None
    if answered and not said["without_price"]:
        cost = _to_float(said["cost"] + Decimal(said["cost_behind"]).scaleb(-DECIMAL_PLACES))
    unknown = answered > 0 and answered == said["without_price"]
    counted = answered and not said["without_tokens"]
    tokens = (said["tokens_in"], said["tokens_out"]) if counted else None
    return {
        **results_counted.run_columns(run),
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
        **{name: said.get(name) for name in ("without_tokens", "without_price")},
        "paid": None if unknown else _to_float(run.spent),
        "detected": detected,
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
