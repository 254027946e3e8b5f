"""Which evaluator should I use? The table `evaluators`, one row per run: what it detects, how often
it is wrong, what it costs and how long it takes. The first view of the page Choose an evaluator."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from django.conf import settings

from annotation.templatetags import figures as written
from judging.models import Call, Reply, Run
from judging.results import arrays, cells, columns, counted, lines, progress
from judging.results.arrays import RunArrays
from judging.results.cells import Row
from judging.results.columns import Table
from judging.results.page_parts import (
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
)
from judging.results.tables import compare, cost, sensitivity
from stats import families, paired

NO_TIMES = "replies brought in, without times"
EMPTY = (
    "Choosing needs a run that judges perturbed answers. For error detection and ratings, see the "
    "pages Detector and Against people."
)


def tabulate(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The table `evaluators`, one row per run that judges error items or score-invariant items, the
    highest J first, then the highest detection rate.

    Detection, false alarms and J are those of the table `sensitivity` over all items. Two runs
    share a letter unless their J differs: the p of `paired.test_j_difference` on the items that
    both parsed, adjusted for all pairs (Holm), is below 0.05. `total` and `missing` count error
    items and score-invariant items. `cost` and `cost_per_1000` are those of the table `cost`; None
    with a `cost_reason`. `seconds_median` and `seconds_p95` are the smallest times that half of the
    replies, or 95 % of them, do not exceed; None if no reply has a time.
    """
    runs = list(runs)
    found = arrays.load_arrays(runs)
    judging = [one.run for one in found]
    spent = {row["run"]: row for row in cost.tabulate(judging, found)}
    times = _measure_times(judging)
    rows = {
        one.run.number: _row(one, spent[one.run.number], times.get(one.run.pk)) for one in found
    }
    found.sort(key=lambda one: _worst_last(rows[one.run.number]))
    return [
        {**rows[one.run.number], "letters": letters or None}
        for one, letters in zip(found, _assign_letters(found), strict=True)
    ]


def _row(
    found: RunArrays,
    spent: Row,
    times: tuple[float, float] | None,
) -> dict[str, Any]:
    detection, alarm, j = sensitivity.estimate_rates(found)
    return {
        **counted.run_columns(found.run),
        "total": len(found.item),
        "missing": len(found.item) - detection.n - alarm.n,
        "errors": detection.n,
        **counted.figure_columns("detection", detection),
        "invariant": alarm.n,
        **counted.figure_columns("false_alarm", alarm),
        **counted.figure_columns("j", j),
        "cost": spent["cost"],
        "cost_per_1000": spent["cost_per_1000"],
        "currency": spent["currency"],
        "cost_reason": None if spent["cost"] is not None else spent["reason"],
        "seconds_median": times[0] if times else None,
        "seconds_p95": times[1] if times else None,
        "seconds_reason": None if times else NO_TIMES if spent["answered"] else cost.NO_REPLY,
    }


def _worst_last(row: Row) -> tuple[bool, float, float, int]:
    j, detection = row["j"], row["detection"]
    return j is None, -(j or 0), -(detection or 0), row["run"]


def _assign_letters(found: Sequence[RunArrays]) -> list[str]:
    """The letters of each run by its J; "" for a run without J, and for all if none can be
    compared."""
    pairs = progress.iterate(list(combinations(found, 2)), "comparing runs")
    ps = [_test_j(a, b) for a, b in pairs]
    tested = {
        place
        for pair, p in zip(combinations(range(len(found)), 2), ps, strict=True)
        for place in pair
        if p is not None
    }
    apart = families.different_pairs(families.holm(ps), len(found))
    letters = families.compact_letters(len(found), apart)
    return [letter if place in tested else "" for place, letter in enumerate(letters)]


def _test_j(a: RunArrays, b: RunArrays) -> float | None:
    return paired.test_j_difference(*compare.share_items(a, b)).p


def _measure_times(runs: Sequence[Run]) -> dict[int, tuple[float, float]]:
    """The median and the 95th percentile of the seconds per reply, for each run whose replies have
    times. A request shared by several calls counts once."""
    if not runs:
        return {}
    listed = ", ".join(str(run.pk) for run in runs)
    statement = f"""
        SELECT run_id, MIN(CASE WHEN 2 * place >= n THEN seconds END) AS median,
            MIN(CASE WHEN 20 * place >= 19 * n THEN seconds END) AS p95
        FROM (
            SELECT u.run_id, p.seconds, COUNT(*) OVER (PARTITION BY u.run_id) AS n,
                ROW_NUMBER() OVER (PARTITION BY u.run_id ORDER BY p.seconds) AS place
            FROM (
                SELECT DISTINCT c.run_id, c.request_id FROM {Call._meta.db_table} AS c
                WHERE c.run_id IN ({listed})
            ) AS u JOIN {Reply._meta.db_table} AS p ON p.request_id = u.request_id
            WHERE p.seconds > 0
        ) AS timed GROUP BY run_id
    """
    found = counted.fetch_dicts(statement)
    return {row["run_id"]: (row["median"], row["p95"]) for row in found}


def _seconds(name: str, title: str) -> columns.Custom:
    def cell(row: Row, of: columns.Leading) -> cells.Cell:
        value = row[name]
        if value is None:
            return cells.Cell(reason=row["seconds_reason"] or "")
        text = f"{value:.1f}" if value < 100 else f"{value:,.0f}"
        return cells.Cell("< 0.1" if value < 0.05 else text, value)

    return columns.Custom(name, title, make=cell, unit="seconds")


EVALUATORS = Table(
    "evaluators",
    (
        columns.RunNumber("run", "Run"),
        *columns.plain("endpoint", "strategy", "total"),
        columns.Share(
            "missing", "Missing", columns.items(items="own", result="missing"), part_of="total"
        ),
        columns.Column("errors"),
        replace(sensitivity.SENSITIVITY.rate("detection"), bad="low"),
        *columns.plain("detection_low", "detection_high", "detection_reason", "invariant"),
        replace(sensitivity.SENSITIVITY.rate("false_alarm"), bad="high"),
        *columns.plain("false_alarm_low", "false_alarm_high", "false_alarm_reason"),
        columns.Figure("j", "J"),
        *columns.plain("j_low", "j_high", "j_reason"),
        columns.Text("letters", "Letters", write=lambda row: row["letters"] or written.DASH),
        cost.money_column("cost_per_1000", "Cost of 1,000 items", reason="cost_reason"),
        *columns.plain("cost", "cost_reason"),
        _seconds("seconds_median", "Median time"),
        _seconds("seconds_p95", "95 % within"),
        *columns.plain("seconds_reason", "currency"),
    ),
    lambda project, runs, by: tabulate(runs),
    settings=lambda project, runs: [settings.CURRENCY],
    of_people=False,
    about="A row per run that judged error items or score-invariant items: detection, false "
    "alarms, J, cost and time; the highest J first.",
    meanings={
        "total": "number of error items and score-invariant items, missing ones included",
        "letters": "runs with a letter in common were not shown to differ in J (p adjusted for "
        "all pairs by Holm); empty if J could not be compared",
        "cost_per_1000": "cost divided by the number of items with an outcome, missing ones "
        "included, times 1,000",
        "cost": "cost of all replies that the run used, whichever run paid for them",
        "cost_reason": "why the cost is unknown",
        "seconds_median": "time in seconds that half of the replies do not exceed",
        "seconds_p95": "time in seconds that 95 % of the replies do not exceed",
        "seconds_reason": "why there are no times",
    },
)


def _state_best(asked: PageQuery, rows: Rows) -> tuple[str, str]:
    """What the first row is, and how far that is certain: two texts, "" without a J."""
    best = rows[0] if rows else {}
    if best.get("j") is None:
        return "", ""
    names = {row["run"]: cells.run_name(asked.runs_by_number[row["run"]]) for row in rows}
    j = cells.figure_cell(best, "j")
    ends = f" ({j.interval})" if j.interval else ""
    is_offline = asked.runs_by_number[best["run"]].endpoint.is_offline
    baseline = ", an offline baseline and no evaluator" if is_offline else ""
    found = (
        f"Highest J: {names[best['run']]}{baseline}, with {j.text}{ends}, from "
        f"{best['errors']:,} errors and {best['invariant']:,} score-invariant items."
    )
    return found, " ".join(filter(None, (_state_certainty(rows, names), _state_missing(rows))))


def _state_certainty(rows: Rows, names: Mapping[int, str]) -> str:
    """Whether the first row is better than chance, and than the others."""
    best, others = rows[0], [row for row in rows[1:] if row["j"] is not None]
    if best["j_low"] is not None and best["j_low"] <= 0:
        return "Not shown to be better than chance: the interval is not above 0."
    if not others:
        return "No other run here has a J, so there is nothing to compare it with."
    letters = families.split_letters([row["letters"] or "" for row in rows])
    alike = [row for row, own in zip(rows, letters, strict=True) if own & letters[0]][1:]
    if not alike:
        return (
            "Among the chosen runs, every other one with a J is lower by more than chance would "
            "explain."
        )
    named = "; ".join(names[row["run"]] for row in alike[:5])
    more = f" and {len(alike) - 5} more" if len(alike) > 5 else ""
    return f"No difference was shown between it and: {named}{more}."


def _state_missing(rows: Rows) -> str:
    """How much of the runs with a J is missing; "" if nothing is."""
    shares = [row["missing"] / row["total"] for row in rows if row["j"] is not None]
    if not any(shares):
        return ""
    words = f"{written.share(max(shares))} have no usable reply. J leaves them out"
    if len(shares) == 1:
        return f"Of its items, {words}."
    return (
        f"Of the items of a run, up to {words}; counted in, they could change which run is best: "
        "see the page Missing."
    )


_LINES = lines.Lines(
    EVALUATORS,
    "Evaluators",
    (
        *("j", "letters", "detection", "false_alarm", "missing"),
        *("cost_per_1000", "seconds_median", "seconds_p95"),
    ),
    "J is the share of errors detected minus the share of score-invariant items taken for an "
    "error, so that finding fault with everything earns nothing: 0 is no better than a coin, 1 is "
    "perfect. Runs that share a letter were not shown to differ in J on the items that both parsed "
    "(p from the interval of the difference, adjusted for all pairs by Holm). The highest of "
    "several J is more often too high than too low; its interval does not allow for that. Cost: of "
    "all replies, for 1,000 items. Times: of single replies, as this installation waited for them.",
    sensitivity.draw_whole,
    lambda asked, tables: [row for row in tables[0] if row["errors"] + row["invariant"]],
)


def build_choice(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run, the highest J first, and a sentence on the first one."""
    headline, under = _state_best(asked, tables[0])
    return replace(_LINES(asked, tables), headline=headline, under=under)


VIEWS = (
    ResultView(
        slug="evaluators",
        title="Evaluators",
        asks=(TableQuery(EVALUATORS, ""),),
        figures=("j", "rate", "p_holm"),
        build=build_choice,
        studies={},
        empty=EMPTY,
    ),
)
