"""Tables of what people and evaluators say of the same items, each in numbers."""

from judging.results import aligning, aligning_people, aligning_points
from judging.results.kinds import GROUP_DRAW_LIMIT, RUN_COLUMNS, TableKind, from_items

PEOPLE_TABLES: dict[str, TableKind] = {
    "alignment": TableKind(
        aligning.COLUMNS,
        True,
        aligning.tabulate_alignment,
        aligning.COUNT_COLUMNS,
        at_once=GROUP_DRAW_LIMIT,
        groups="answers",
    ),
    "alignment_groups": TableKind(
        (*RUN_COLUMNS, *aligning.GROUP_COLUMNS), False, aligning.tabulate_groups, groups="answers"
    ),
    "ceiling": TableKind(
        aligning_people.CEILING_COLUMNS,
        True,
        aligning_people.tabulate_ceiling,
        aligning.COUNT_COLUMNS,
        at_once=GROUP_DRAW_LIMIT,
        groups="answers",
    ),
    "alt_test": TableKind(
        aligning_people.TEST_COLUMNS,
        True,
        aligning_people.tabulate_alt_test,
        aligning.COUNT_COLUMNS,
        groups="answers",
    ),
    "by_score": TableKind(
        aligning_points.SCORE_COLUMNS,
        True,
        aligning_points.tabulate_by_score,
        aligning.COUNT_COLUMNS,
        groups="answers",
    ),
    "pairs": TableKind(
        aligning_points.CELL_COLUMNS,
        True,
        aligning_points.tabulate_pairs,
        aligning.COUNT_COLUMNS,
        groups="answers",
    ),
    "points": TableKind(
        aligning_points.POINT_COLUMNS, True, aligning_points.tabulate_points, groups="answers"
    ),
    "ratings": TableKind(
        aligning_people.RATING_COLUMNS,
        True,
        from_items(aligning_people.tabulate_ratings),
        of_items=True,
        groups="items",
    ),
    "majority": TableKind(
        aligning_people.MAJORITY_COLUMNS,
        True,
        from_items(aligning_people.tabulate_majority),
        of_items=True,
        groups="items",
    ),
}
