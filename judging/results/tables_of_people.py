"""Tables of what people and evaluators say of the same items, each in numbers."""

from judging.results import aligning, aligning_people, aligning_points
from judging.results.kinds import RUN, SOME, Figures, of_items

OF_PEOPLE: dict[str, Figures] = {
    "alignment": Figures(
        aligning.COLUMNS, True, aligning.alignment, aligning.BEFORE, at_once=SOME, groups="answers"
    ),
    "alignment_groups": Figures(
        (*RUN, *aligning.GROUP_COLUMNS), False, aligning.over_groups, groups="answers"
    ),
    "ceiling": Figures(
        aligning_people.CEILING_COLUMNS,
        True,
        aligning_people.ceilings,
        aligning.BEFORE,
        at_once=SOME,
        groups="answers",
    ),
    "alt_test": Figures(
        aligning_people.TEST_COLUMNS,
        True,
        aligning_people.alt_tests,
        aligning.BEFORE,
        groups="answers",
    ),
    "by_score": Figures(
        aligning_points.SCORE_COLUMNS,
        True,
        aligning_points.by_score,
        aligning.BEFORE,
        groups="answers",
    ),
    "pairs": Figures(
        aligning_points.CELL_COLUMNS,
        True,
        aligning_points.cells,
        aligning.BEFORE,
        groups="answers",
    ),
    "points": Figures(
        aligning_points.POINT_COLUMNS, True, aligning_points.points, groups="answers"
    ),
    "ratings": Figures(
        aligning_people.RATING_COLUMNS,
        True,
        of_items(aligning_people.ratings),
        of_items=True,
        groups="items",
    ),
    "majority": Figures(
        aligning_people.MAJORITY_COLUMNS,
        True,
        of_items(aligning_people.majorities),
        of_items=True,
        groups="items",
    ),
}
