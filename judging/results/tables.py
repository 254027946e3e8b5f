"""What can be asked for by name: `results` tables of figures, and tables of rows to export.

N tables and M formats, never N x M: a table gives columns and rows, `formats.writers` the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Exists, OuterRef

from annotation import ledger
from annotation import tables as annotation_tables
from annotation.leads import agreement
from annotation.leads.grouping import Grouping
from annotation.models import Project
from annotation.tables import Table
from judging.models import Call, Outcome, Run
from judging.results import (
    absent,
    aligning,
    aligning_people,
    aligning_points,
    audited,
    blindspots,
    comparing,
    costing,
    describing,
    detecting,
    effects,
    explaining,
    reports,
    scoring,
    sensing,
    verdicts,
)

# Outcomes that the database sums within a tenth of a second, and ones that are drawn, dealt or
# searched through.
MANY, FEW = 50_000, 5_000
# Ones of which every group is drawn several times over.
SOME = 500


@dataclass(frozen=True)
class Figures:
    """A `results` table: its columns beside the fields it is grouped by, and how it is made.

    `before` are columns that stand between the run and the fields; a table that is `of_items` has
    no run. `at_once`: of so many outcomes (or items) it is made while one waits, of more by a
    worker; None for one that is always made at once. `of_people`: it rests on labels as well, or
    on items beside those of the runs. `groups`: whose fields it is grouped by, if that can be
    checked before it is made.
    """

    columns: tuple[str, ...]
    grouped: bool
    rows: Callable[[Project, Sequence[Run], Sequence[str]], Iterable[dict[str, Any]]]
    before: tuple[str, ...] = ()
    of_items: bool = False
    at_once: int | None = FEW
    of_people: bool = True
    groups: Literal["outcomes", "items", "answers", ""] = ""


def _categories(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterable[dict[str, Any]]:
    return annotation_tables.TABLES["categories"].rows(project)


def _undetected(runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    return [row.as_row() for row in reports.undetected(runs, by)]


def _detector(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    return [row.as_row() for row in detecting.detector(project, runs, by)]


def _changes(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    return [row.as_row() for row in effects.changes(project, runs, by)]


def _bias(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    return [row.as_row() for row in effects.biases(project, runs, by)]


def _audited(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    return audited.audited(project, runs)


def _dataset(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
    return describing.dataset(project, by)


def _majorities(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterable[dict[str, Any]]:
    return aligning_people.majorities(project, by)


def _agreement(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterable[dict[str, Any]]:
    return agreement.rows(project)


def _confusion(
    project: Project, runs: Sequence[Run], by: Sequence[str]
) -> Iterable[dict[str, Any]]:
    return agreement.confusions(project)


def _of_runs(
    rows: Callable[[Sequence[Run], Sequence[str]], Iterable[dict[str, Any]]],
) -> Callable[[Project, Sequence[Run], Sequence[str]], Iterable[dict[str, Any]]]:
    """A table that needs the runs alone."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
        return rows(runs, by)

    return made


def _of_all(
    rows: Callable[[Sequence[Run]], Iterable[dict[str, Any]]],
) -> Callable[[Project, Sequence[Run], Sequence[str]], Iterable[dict[str, Any]]]:
    """A table that needs the runs alone, and has groups of its own."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
        return rows(runs)

    return made


def _of_leads(
    rows: Callable[[Project, Grouping], Iterable[dict[str, Any]]],
) -> Callable[[Project, Sequence[Run], Sequence[str]], Iterable[dict[str, Any]]]:
    """A report of leads as a table; runs are nothing to it, and `by` names a group of items."""

    def made(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Iterable[dict[str, Any]]:
        return rows(project, ledger.by_named(project, list(by)))

    return made


def _summed(
    columns: Sequence[str], rows: Callable[[Sequence[Run], Sequence[str]], Iterable[dict[str, Any]]]
) -> Figures:
    """A table that the database sums up out of outcomes, by the fields that those have."""
    return Figures(
        ("total", "missing", *columns),
        True,
        _of_runs(rows),
        at_once=MANY,
        of_people=False,
        groups="outcomes",
    )


RUN = ("run", "endpoint", "strategy")
RESULTS: dict[str, Figures] = {
    "categories": Figures(("ability", "category", "items"), False, _categories, at_once=None),
    "undetected": _summed(
        (
            "parsed",
            "detected",
            "undetected",
            "rate",
            "low",
            "high",
            "reason",
            "score_invariant",
        ),
        _undetected,
    ),
    "scores": _summed(scoring.COLUMNS, scoring.scores),
    "score_changes": _summed(scoring.CHANGE_COLUMNS, scoring.changes),
    "verdicts": _summed(verdicts.COLUMNS, verdicts.verdicts),
    "order_effect": _summed(verdicts.ORDER_COLUMNS, verdicts.order),
    "repeats": _summed(verdicts.REPEAT_COLUMNS, verdicts.repeats),
    "explanations": _summed(explaining.COLUMNS, explaining.explanations),
    "left_out": Figures(
        (*RUN, *reports.LEFT_OUT),
        False,
        _of_all(reports.left_out),
        at_once=MANY,
        of_people=False,
    ),
    "sensitivity": Figures(
        (*RUN, *sensing.COLUMNS), False, _of_all(sensing.sensitivities), of_people=False
    ),
    "compare": Figures(comparing.COLUMNS, False, _of_all(comparing.compare), of_people=False),
    "blindspots": Figures(
        (*RUN, *blindspots.COLUMNS), False, blindspots.blind_spots, of_people=False, groups="items"
    ),
    "cost": Figures(
        (*RUN, *costing.COLUMNS), False, _of_all(costing.costs), at_once=MANY, of_people=False
    ),
    "missing": Figures(
        absent.COLUMNS,
        True,
        _of_runs(absent.missing),
        ("total", "missing"),
        of_people=False,
        groups="outcomes",
    ),
    "detector": Figures(
        ("n", "invalid", *detecting.FIGURES, "reason"),
        True,
        _detector,
        ("total", "missing"),
        of_people=False,
        groups="items",
    ),
    "changes": Figures(
        effects.CHANGE_COLUMNS,
        True,
        _changes,
        ("total", "missing"),
        of_people=False,
        groups="items",
    ),
    "bias": Figures(
        effects.BIAS_COLUMNS, True, _bias, ("total", "missing"), of_people=False, groups="items"
    ),
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
    "majority": Figures(
        aligning_people.MAJORITY_COLUMNS, True, _majorities, of_items=True, groups="items"
    ),
    "dataset": Figures(describing.COLUMNS, True, _dataset, of_items=True, groups="items"),
    # It rests on other projects, of whose changes this one does not hear.
    "audits": Figures((*RUN, *audited.COLUMNS), False, _audited, at_once=None),
    "agreement": Figures(agreement.COLUMNS, False, _agreement, at_once=None),
    "confusion": Figures(agreement.CONFUSION_COLUMNS, False, _confusion, at_once=None),
    "pace": Figures(ledger.PEOPLE, False, _of_leads(ledger.people), at_once=None),
    "forecast": Figures(ledger.GROUPS, False, _of_leads(ledger.groups), at_once=None),
    "choices": Figures(ledger.CHOICES, False, _of_leads(ledger.choices), at_once=None),
    "dropped": Figures(ledger.DROPPED, False, _of_leads(ledger.dropped), at_once=None),
    "board": Figures(ledger.BOARD, False, _of_leads(ledger.categories), at_once=None),
}


def columns(table: str, by: Sequence[str]) -> tuple[str, ...]:
    """All columns of a `results` table in their order."""
    figures = RESULTS[table]
    if figures.of_items:
        return (*by, *figures.columns)
    return (*RUN, *figures.before, *by, *figures.columns) if figures.grouped else figures.columns


def calls(project: Project) -> Iterator[dict[str, Any]]:
    """Every call of the project's runs with the reply it got and what was read in it."""
    found = (
        Call.objects.filter(run__project=project)
        .select_related("run", "outcome__item", "outcome__revision", "request__reply")
        .prefetch_related("request__reply__readings")
        .order_by("run__number", "outcome__item__position", "pk")
    )
    for call in found.iterator(chunk_size=500):
        yield {**_call(call), **_reply(call)}


def outcomes(project: Project) -> Iterator[dict[str, Any]]:
    """Every outcome of the project's runs; the figures are made of those that are `counted`."""
    counted = Outcome.objects.counted().filter(pk=OuterRef("pk"))
    found = (
        Outcome.objects.filter(run__project=project)
        .select_related("run__strategy", "run__endpoint", "item", "revision")
        .annotate(is_counted=Exists(counted))
    )
    for outcome in found.order_by("run__number", "item__position").iterator(chunk_size=1000):
        yield {
            "run": outcome.run.number,
            "endpoint": outcome.run.endpoint.name,
            "strategy": outcome.run.strategy.slug,
            "item": outcome.item.key,
            "revision": outcome.revision.number,
            "ability": outcome.ability,
            "category": outcome.category,
            "source_ability": outcome.source_ability,
            "cluster": outcome.cluster,
            "score_invariant": outcome.invariant,
            "result": outcome.result,
            "detail": outcome.detail,
            "cause": outcome.cause,
            "values": outcome.values,
            "counted": outcome.is_counted,
        }


def _call(call: Call) -> dict[str, Any]:
    request = call.request
    return {
        "run": call.run.number,
        "item": call.outcome.item.key,
        "revision": call.outcome.revision.number,
        "role": call.role,
        "order": call.order,
        "sample": call.sample,
        "request": request.digest,
        "state": request.state,
        "attempts": request.attempts,
        "failure": request.cause,
        "message": request.message,
    }


def _reply(call: Call) -> dict[str, Any]:
    reply = getattr(call.request, "reply", None)
    if reply is None:
        return {}
    reading = next((one for one in reply.readings.all() if one.parser == call.run.parser), None)
    return {
        "finish": reply.finish,
        "model": reply.model,
        "text": reply.text,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "cost": reply.cost,
        "asked_at": reply.asked_at,
        "seconds": reply.seconds,
        "parser": call.run.parser,
        "value": reading and reading.value,
        "path": reading and reading.path,
        "cause": reading and reading.cause,
        "explanation": reading and reading.explanation,
    }


_CALLS = (
    "run", "item", "revision", "role", "order", "sample", "request", "state", "attempts",
    "failure", "message", "finish", "model", "text", "tokens_in", "tokens_out", "cost",
    "asked_at", "seconds", "parser", "value", "path", "cause", "explanation",
)  # fmt: skip
_OUTCOMES = (
    "run", "endpoint", "strategy", "item", "revision", "ability", "category", "source_ability",
    "cluster", "score_invariant", "result", "detail", "cause", "values", "counted",
)  # fmt: skip

EXPORTS: dict[str, Table] = {
    **{name: made for name, made in annotation_tables.TABLES.items() if name != "categories"},
    "calls": Table(_CALLS, calls),
    "outcomes": Table(_OUTCOMES, outcomes),
}
