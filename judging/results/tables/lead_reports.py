"""How far is the annotation work? Tables that leads see on pages of their own; here they are for
files, the API and the command. They ignore runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from annotation.exporting import tables as annotation_tables
from annotation.models import Project
from annotation.reports import category_board, generation_board
from annotation.reports import tables as lead_tables
from annotation.reports.grouping import Grouping
from judging.models import Run
from judging.results.columns import Rows, Table, plain
from judging.results.counted import GroupBy


def _from_report(
    name: str,
    columns: Iterable[str],
    rows: Callable[[Project, Grouping], Rows],
    group_by: GroupBy | None = None,
    *,
    about: str,
    meanings: Mapping[str, str],
) -> Table:
    """A report over the groups of items by one field: the last of the requested fields that the
    project's items can be grouped by."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
        return rows(project, lead_tables.find_grouping(project, list(by)))

    return Table(
        name,
        plain(*columns),
        made,
        group_by=group_by,
        at_once=None,
        about=about,
        meanings=meanings,
    )


BY_ONE_FIELD = GroupBy("one field of the items")
FORECAST = _from_report(
    "forecast",
    lead_tables.FORECAST,
    lead_tables.forecast_table,
    BY_ONE_FIELD,
    about="A row for all items and one per group: labels that are left, and the range of the "
    "day on which they will be done.",
    meanings={
        "group": "value of the field; empty in the first row, which is about all items",
        "items": "number of items, without duplicates, qualification and control items",
        "places": "number of labels that the items need",
        "filled": "number of places with a label",
        "left": "number of places without a label",
        "a_day": "labels per day: mean of the last full days, at most 14",
        "ends": "day on which all labels will be given at this pace (UTC)",
        "earliest": "earliest such day, the start of the 95 % range",
        "latest": "latest such day; empty if it is too far away",
        "reason": "why there is no day, or no range",
        "seconds_median": "median labelling time in seconds",
        "seconds_low": "time in seconds under which 25 % of the labels stay",
        "seconds_high": "time in seconds that 25 % of the labels exceed",
        "over_30_minutes": "number of labels that took longer, which are in none of these times",
    },
)
CHOICES = _from_report(
    "choices",
    lead_tables.CHOICES,
    lead_tables.choices_table,
    about="A row per day and answer: how many labels gave it.",
    meanings={
        "day": "day on which the labels were given (UTC)",
        "choice": "answer to the deciding question",
        "labels": "number of current labels with this answer",
    },
)
DROPPED = _from_report(
    "dropped",
    lead_tables.DROPPED_COLUMNS,
    lead_tables.dropped_table,
    about="A row per final label that keeps items out of the final set, and per reason that "
    "labels give: how many items.",
    meanings={
        "held_for": "final label that keeps items out of the final set",
        "items": "number of items with this final label; empty in rows of reasons",
        "share": "items divided by all items with a final label; empty in rows of reasons",
        "reason": "reason that labels with this answer give; empty in the row of the final label",
        "labels": "number of labels that give this reason",
    },
)
BOARD = _from_report(
    "board",
    category_board.IN_FILES,
    lead_tables.board_table,
    BY_ONE_FIELD,
    about="A row per group: the share valid and other figures of the category board, with "
    "their intervals.",
    meanings={
        "group": "value of the field",
        "items": "number of items, without deleted ones, duplicates, qualification and control "
        "items",
        "resolved": "number of items with a final label",
        "share_of": "answer that `share` is about; `as-meant` if other answers are intended for "
        "some items of the group",
        "share": "share of the items with a final label that have this one",
        "corrected": "share of the items with a final label whose text a member corrected",
        "surgicality": "share of an item's changed pieces that the claim explains, mean over items",
        "surgicality_items": "number of items that this mean is over",
        "alpha": "Krippendorff's alpha of the deciding question",
        "alpha_items": "number of items with two labels or more, which alpha is over",
        "seconds_median": "median labelling time in seconds, without labels that took over 30 "
        "minutes",
        "detectability": "share of an item's annotators who saw an error before the change was "
        "shown, mean over items",
        "detectability_items": "number of items that this mean is over",
        "more": "how many further items, all with the opposite result, would not move the "
        "interval of `share` across 50 %; empty if the interval contains 50 %",
        "reasons": "answers and reasons of labels that drop an item or are not as intended, with "
        "the number of these labels",
    },
)
MAKING = Table(
    "making",
    plain(*generation_board.COLUMNS),
    lambda project, runs, by: generation_board.table_rows(project),
    at_once=None,
    about="A row per category and generator: what was generated, and how its review came out.",
    meanings={
        "category": "category of the generated items; empty if the task type has none",
        "made_by": "version of the generator, or perturber; empty in the row about all of them",
        "items": "number of generated items",
        "waiting": "number of generated items that wait to be released to annotators",
        "aside": "number of waiting items that are held for review by a flag",
        "with_people": "number of items that are released and have no final label yet",
        "held": "number of reviewed items whose final label is as intended",
        "turned_down": "number of items whose review found another final label",
        "unseen": "number of items accepted without review",
        "share_of": "what is intended for the items of the category",
        "share": "`held` divided by the sum of `held` and `turned_down`",
    },
)
CATEGORIES = Table(
    "categories",
    plain("ability", "category", "items"),
    lambda project, runs, by: annotation_tables.TABLES["categories"].rows(project),
    at_once=None,
    about="A row per category: the number of its items, duplicates included.",
    meanings={
        "ability": "ability that the category belongs to",
        "category": "name of the category",
        "items": "number of its items, duplicates included",
    },
)
