"""Registry of tables by name: `results` tables of figures, and tables of rows to export.

A table provides columns and rows, and `formats.writers` writes any table in any format, so N tables
and M formats do not need N x M functions. The columns and the rows of a table are in its own file;
this one only lists them.

LEAD_TABLES are about annotation work: agreement, pace, remaining work. PEOPLE_TABLES compare the
numbers of people and evaluators on the same items.
"""

from collections.abc import Callable, Sequence

from annotation.exporting import tables as annotation_tables
from annotation.models import Project
from annotation.reports import agreement, generation_board, tables
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results import (
    audit_results,
    blindspots,
    compare,
    correlations,
    cost,
    data_set,
    detector_changes,
    detector_intervals,
    detectors,
    doses,
    explanations,
    missing,
    paired_answers,
    raters,
    recall_by_kind,
    scores,
    sensitivity,
    undetected,
    verdicts,
)
from judging.results.table_kinds import (
    GROUP_DRAW_LIMIT,
    RUN_COLUMNS,
    SUM_LIMIT,
    Rows,
    RowsFunction,
    TableKind,
    from_items,
    from_project,
    from_runs,
    from_runs_ungrouped,
    summed_table,
)


def from_report(rows: Callable[[Project, Grouping], Rows]) -> RowsFunction:
    """Wrap a report for leads as a table. The table ignores runs, and `by` names the grouping of
    items."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, tables.find_grouping(project, list(by)))

    return made


LEAD_TABLES: dict[str, TableKind] = {
    "agreement": TableKind(
        agreement.COLUMNS, False, from_project(agreement.agreement_rows), at_once=None
    ),
    "confusion": TableKind(
        agreement.CONFUSION_COLUMNS, False, from_project(agreement.confusion_rows), at_once=None
    ),
    "pace": TableKind(tables.PACE_COLUMNS, False, from_report(tables.pace_table), at_once=None),
    "forecast": TableKind(
        tables.FORECAST_COLUMNS, False, from_report(tables.forecast_table), at_once=None
    ),
    "choices": TableKind(
        tables.CHOICES_COLUMNS, False, from_report(tables.choices_table), at_once=None
    ),
    "dropped": TableKind(
        tables.DROPPED_COLUMNS, False, from_report(tables.dropped_table), at_once=None
    ),
    "making": TableKind(
        generation_board.COLUMNS, False, from_project(generation_board.table_rows), at_once=None
    ),
    "board": TableKind(tables.BOARD_COLUMNS, False, from_report(tables.board_table), at_once=None),
}


PEOPLE_TABLES: dict[str, TableKind] = {
    "alignment": TableKind(
        correlations.COLUMNS,
        True,
        correlations.tabulate_alignment,
        correlations.COUNT_COLUMNS,
        at_once=GROUP_DRAW_LIMIT,
        groups="answers",
    ),
    "alignment_groups": TableKind(
        (*RUN_COLUMNS, *correlations.GROUP_COLUMNS),
        False,
        correlations.tabulate_groups,
        groups="answers",
    ),
    "ceiling": TableKind(
        raters.CEILING_COLUMNS,
        True,
        raters.tabulate_ceiling,
        correlations.COUNT_COLUMNS,
        at_once=GROUP_DRAW_LIMIT,
        groups="answers",
    ),
    "alt_test": TableKind(
        raters.TEST_COLUMNS,
        True,
        raters.tabulate_alt_test,
        correlations.COUNT_COLUMNS,
        groups="answers",
    ),
    "by_score": TableKind(
        paired_answers.SCORE_COLUMNS,
        True,
        paired_answers.tabulate_by_score,
        correlations.COUNT_COLUMNS,
        groups="answers",
    ),
    "pairs": TableKind(
        paired_answers.CELL_COLUMNS,
        True,
        paired_answers.tabulate_pairs,
        correlations.COUNT_COLUMNS,
        groups="answers",
    ),
    "points": TableKind(
        paired_answers.POINT_COLUMNS, True, paired_answers.tabulate_points, groups="answers"
    ),
    "ratings": TableKind(
        raters.RATING_COLUMNS,
        True,
        from_items(raters.tabulate_ratings),
        of_items=True,
        groups="items",
    ),
    "majority": TableKind(
        raters.MAJORITY_COLUMNS,
        True,
        from_items(raters.tabulate_majority),
        of_items=True,
        groups="items",
    ),
}


def _undetected(runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in undetected.tabulate_undetected(runs, by)]


def _detector(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in detectors.tabulate(project, runs, by)]


def _changes(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in detector_changes.tabulate_changes(project, runs, by)]


def _bias(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in detector_changes.tabulate_bias(project, runs, by)]


def _audited(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return audit_results.tabulate(project, runs)


RESULT_TABLES: dict[str, TableKind] = {
    "categories": TableKind(
        ("ability", "category", "items"),
        False,
        from_project(annotation_tables.TABLES["categories"].rows),
        at_once=None,
    ),
    "undetected": summed_table(undetected.COLUMNS, _undetected),
    "scores": summed_table(scores.COLUMNS, scores.tabulate_scores),
    "score_changes": summed_table(scores.CHANGE_COLUMNS, scores.tabulate_changes),
    "verdicts": summed_table(verdicts.COLUMNS, verdicts.tabulate_verdicts),
    "order_effect": summed_table(verdicts.ORDER_COLUMNS, verdicts.tabulate_order_effect),
    "repeats": summed_table(verdicts.REPEAT_COLUMNS, verdicts.tabulate_repeats),
    "explanations": summed_table(explanations.COLUMNS, explanations.tabulate),
    "left_out": TableKind(
        (*RUN_COLUMNS, *undetected.LEFT_OUT_COLUMNS),
        False,
        from_runs_ungrouped(undetected.tabulate_left_out),
        at_once=SUM_LIMIT,
        of_people=False,
    ),
    "sensitivity": TableKind(
        (*RUN_COLUMNS, *sensitivity.COLUMNS),
        False,
        from_runs_ungrouped(sensitivity.tabulate),
        of_people=False,
    ),
    "doses": TableKind(
        doses.DOSE_COLUMNS,
        True,
        from_runs(doses.tabulate_doses),
        at_once=GROUP_DRAW_LIMIT,
        of_people=False,
        groups="outcomes",
    ),
    "penalties": TableKind(
        doses.PENALTY_COLUMNS,
        True,
        doses.tabulate_penalties,
        at_once=GROUP_DRAW_LIMIT,
        groups="outcomes",
    ),
    "compare": TableKind(
        compare.COLUMNS, False, from_runs_ungrouped(compare.compare), of_people=False
    ),
    "blindspots": TableKind(
        (*RUN_COLUMNS, *blindspots.COLUMNS),
        False,
        blindspots.tabulate,
        at_once=GROUP_DRAW_LIMIT,
        groups="slices",
    ),
    "cost": TableKind(
        (*RUN_COLUMNS, *cost.COLUMNS),
        False,
        from_runs_ungrouped(cost.tabulate),
        at_once=SUM_LIMIT,
        of_people=False,
    ),
    "missing": TableKind(
        missing.COLUMNS,
        True,
        from_runs(missing.tabulate),
        ("total", "missing"),
        of_people=False,
        groups="outcomes",
        with_duplicates=True,
    ),
    "detector": TableKind(
        detectors.COLUMNS,
        True,
        _detector,
        ("total", "missing"),
        groups="items",
    ),
    "detector_ranges": TableKind(
        detector_intervals.COLUMNS,
        True,
        detector_intervals.tabulate,
        ("total", "missing"),
        of_people=False,
        groups="items",
    ),
    # The project's task type defines the fields with error categories.
    "error_kinds": TableKind(
        recall_by_kind.COLUMNS,
        True,
        recall_by_kind.tabulate,
        ("total", "missing"),
        groups="items",
    ),
    "changes": TableKind(
        detector_changes.CHANGE_COLUMNS,
        True,
        _changes,
        ("total", "missing"),
        of_people=False,
        groups="items",
    ),
    "bias": TableKind(
        detector_changes.BIAS_COLUMNS,
        True,
        _bias,
        ("total", "missing"),
        of_people=False,
        groups="items",
    ),
    **PEOPLE_TABLES,
    "dataset": TableKind(
        data_set.COLUMNS, True, from_items(data_set.tabulate), of_items=True, groups="items"
    ),
    # This table is never cached: it depends on other projects, and their changes are not counted
    # here.
    "audits": TableKind((*RUN_COLUMNS, *audit_results.COLUMNS), False, _audited, at_once=None),
    **LEAD_TABLES,
}


def list_columns(table: str, by: Sequence[str]) -> tuple[str, ...]:
    """All columns of a `results` table in order."""
    figures = RESULT_TABLES[table]
    if figures.of_items:
        return (*by, *figures.columns)
    return (
        (*RUN_COLUMNS, *figures.before, *by, *figures.columns)
        if figures.grouped
        else figures.columns
    )
