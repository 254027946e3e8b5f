"""Tables of what people and evaluators say of the same items, each in numbers."""

from judging.results import correlations, paired_answers, raters
from judging.results.table_kinds import GROUP_DRAW_LIMIT, RUN_COLUMNS, TableKind, from_items

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
