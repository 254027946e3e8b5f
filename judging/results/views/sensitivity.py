"""Sensitivity: do runs tell errors from score-invariant changes?"""

from collections.abc import Sequence

from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results.views import cells, page_parts, stacked_charts
from judging.results.views.cells import Cell, Column, GridLine, RateColumns, Row
from judging.results.views.page_parts import (
    ChartSpec,
    PageQuery,
    ResultView,
    Rows,
    TableQuery,
    ViewContent,
    study_figures,
)

DETECTION = RateColumns("detection", "detection_low", "detection_high", "errors", "", missing="")
FALSE_ALARM = RateColumns("false_alarm", "false_alarm_low", "false_alarm_high", "invariant", "", "")
# With more runs than this, groups would hide each other in the chart.
MOST_RUNS = 8
FIGURES: tuple[tuple[Column, stacked_charts.CellFunction], ...] = (
    (Column("Detection", "detection"), lambda run, row: _linked_rate_cell(run, row, DETECTION)),
    (
        Column("False alarms", "false_alarm"),
        lambda run, row: _linked_rate_cell(run, row, FALSE_ALARM),
    ),
    (Column("J", "j"), lambda run, row: cells.figure_cell(row, "j")),
    (Column("d′", "d_prime"), lambda run, row: cells.figure_cell(row, "d_prime")),
)


def build_sensitivity(asked: PageQuery, tables: Sequence[Rows]) -> ViewContent:
    """One line per run over all items, by ability, and by origin of the score-invariant items."""
    runs = {run.number: run for run in page_parts.select_judging_runs(asked)}
    rows = [row for row in tables[0] if row["run"] in runs and row["errors"] + row["invariant"]]
    lines = [_line(runs[row["run"]], row) for row in rows]
    columns = (
        Column("Items", "items", is_number=False),
        Column("Run", "run", is_number=False),
        *(column for column, _ in FIGURES),
    )
    words = (
        "Detection: share of errors detected. False alarm: share of score-invariant items "
        "taken for an error. J is detection minus false alarms. J: 0 is no better than a "
        "coin, or always or never alarming; below 0 is worse; 1 is perfect. Its interval is "
        "Newcombe’s, from the intervals of the two rates. Score-invariant items count for "
        "the ability of their source answer. d′ is not defined for pairs."
    )
    return ViewContent(cells.build_grid("Sensitivity", columns, lines), _drawing(runs, rows), words)


def _linked_rate_cell(run: Run, row: Row, such: RateColumns) -> Cell:
    """A cell with a rate and a link to its items. Score-invariant items are selected by source
    ability or by origin."""
    which, group = {"items": "errors", "result": "parsed"}, {"ability": row["ability"] or ""}
    if such is FALSE_ALARM:
        which["items"], group = "invariant", {"source_ability": row["ability"] or ""}
        which |= {"origin": row["origin"]} if row["origin"] else {}
    return cells.rate_cell(row, such, href=cells.items_url(run, group, **which))


def _line(run: Run, row: Row) -> GridLine:
    figures = (cell(run, row) for _, cell in FIGURES)
    return GridLine((cells.text_cell(_group(row)), cells.run_cell(run), *figures))


def _is_whole(row: Row) -> bool:
    return not (row["ability"] or row["origin"])


def _group(row: Row) -> str:
    if row["origin"]:
        return f"Score-invariant by origin: {row['origin']}"
    return Grouping("ability", "ability").title_of(row["ability"]) if row["ability"] else "All"


def _drawing(runs: dict[int, Run], rows: Rows) -> ChartSpec | None:
    # Imported here, since Altair takes a second and nothing else should wait for it.
    from charts import plane

    with_groups = len(runs) <= MOST_RUNS
    points = [
        plane.SensitivityPoint(
            cells.run_name(runs[row["run"]]),
            _group(row),
            _is_whole(row),
            *(row[name] for name in (DETECTION.value, DETECTION.low, DETECTION.high)),
            *(row[name] for name in (FALSE_ALARM.value, FALSE_ALARM.low, FALSE_ALARM.high)),
        )
        for row in rows
        if row["detection"] is not None
        and row["false_alarm"] is not None
        and (with_groups or _is_whole(row))
    ]
    groups = "; small marks: groups" if with_groups else f"; up to {MOST_RUNS} runs have groups"
    caption = (
        f"Detection against false alarms, with 95 % intervals. Large marks: all items{groups}. On "
        "the dashed line, errors are detected no more often than score-invariant changes."
    )
    return ChartSpec(plane.draw_plane(points), caption) if points else None


VIEWS = (
    ResultView(
        slug="plane",
        title="Detection against false alarms",
        asks=(TableQuery("sensitivity", ""),),
        build=build_sensitivity,
        studies={"000": study_figures("section 5.4")},
        empty="The chosen runs have no outcomes of items with a final label.",
    ),
)
