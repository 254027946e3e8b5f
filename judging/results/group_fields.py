"""The fields that a page's tables can be grouped by: columns of items and own fields."""

from annotation.models import Project
from annotation.reports import grouping
from judging.results import paired_scores

MOST_FIELDS = 12
ANSWER_LENGTH_TITLE = {paired_scores.ANSWER_LENGTH: "Answer length"}


def list_fields(project: Project) -> dict[str, str]:
    """The possible grouping fields of items, with titles."""
    return {one.name: one.title for one in grouping.list_groupings(project)[:MOST_FIELDS]}


def list_fields_with_length(project: Project) -> dict[str, str]:
    """Like `list_fields`, with the length of the expected answer in addition."""
    return {**list_fields(project), **ANSWER_LENGTH_TITLE}
