"""Tables of figures as asked for by name: the same for page, file, API and command."""

from dataclasses import dataclass
from typing import Any

from django.utils.datastructures import MultiValueDict

from annotation.leads import grouping
from annotation.models import Project
from judging.models import Run
from judging.results import reports, tables

BY = "ability,category"
GROUPED = (
    "undetected, scores, score_changes, verdicts, order_effect, repeats, explanations and missing: "
    f"{', '.join(reports.FIELDS)}, or empty for one row a run; detector, changes, bias, "
    f"blindspots and dataset: {', '.join(grouping.COLUMNS)} and any field that the items have of "
    "their own, such as task or response_model, or empty; forecast and board: one of the latter"
)


class UnknownRun(ValueError):
    """A run that the project does not have."""


@dataclass(frozen=True)
class Made:
    """A table with its columns in their order and its rows."""

    table: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]


def make(project: Project, table: str, query: MultiValueDict[str, str]) -> Made:
    """A table of `tables.RESULTS` for `?run=N&run=M&by=field,field`.

    Raises `UnknownRun` for a run, `reports.UnknownField` for a field that is not there.
    """
    by = fields(query.get("by", BY))
    rows = tables.RESULTS[table].rows(project, chosen(project, query), by)
    return Made(table, tables.columns(table, by), list(rows))


def fields(text: str) -> list[str]:
    """The fields that `field,field` names, each once: a database may refuse a column twice."""
    names = (name.strip() for name in text.split(","))
    return list(dict.fromkeys(name for name in names if name))


def chosen(project: Project, query: MultiValueDict[str, str]) -> list[Run]:
    """The runs that `?run=N&run=M` names, all that are not archived where it names none."""
    found = Run.objects.in_project(project).for_results()
    named = set(query.getlist("run"))
    if not named:
        return list(found.shown())
    if not all(number.isdecimal() and len(number) < 10 for number in named):
        raise UnknownRun("A run is named by its number.")
    runs = list(found.numbered(map(int, named)))
    if len(runs) < len(set(map(int, named))):
        raise UnknownRun(f"{project.slug} has not all of these runs.")
    return runs
