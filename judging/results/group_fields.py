"""The fields that a page's tables can be grouped by: columns of items and own fields."""

from annotation.models import Project
from annotation.reports import grouping
from judging.results import columns, paired_scores

MOST_FIELDS = 12
ANSWER_LENGTH_TITLE = {paired_scores.ANSWER_LENGTH: "Answer length"}


def list_fields(project: Project) -> dict[str, str]:
    """The possible grouping fields of items, with titles."""
    return {one.name: one.title for one in grouping.list_groupings(project)[:MOST_FIELDS]}


def list_fields_with_length(project: Project) -> dict[str, str]:
    """Like `list_fields`, with the length of the expected answer in addition."""
    return {**list_fields(project), **ANSWER_LENGTH_TITLE}


def list_own_fields(project: Project) -> dict[str, str]:
    """The possible grouping fields that are the items' own, with titles, without those whose names
    cannot stand in a list of names in a URL."""
    own = [one for one in grouping.list_groupings(project) if one.is_field]
    named = {one.name: one.title for one in own[:MOST_FIELDS]}
    # SQLite cannot find a name with a quotation mark in JSON.
    return {
        name: title
        for name, title in named.items()
        if columns.parse_fields(name) == [name] and '"' not in name
    }
