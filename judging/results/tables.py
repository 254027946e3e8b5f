"""What can be asked for by name: `results` tables of figures, and tables of rows to export.

N tables and M formats, never N x M: a table gives columns and rows, `formats.writers` the rest.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Exists, OuterRef

from annotation import tables as annotation_tables
from annotation.models import Project
from annotation.querysets.parts import in_parts
from annotation.tables import Table
from judging.models import Call, Outcome, Request, Run
from judging.results import (
    absent,
    audited,
    blindspots,
    comparing,
    costing,
    describing,
    detecting,
    detecting_kinds,
    detecting_ranges,
    dosing,
    effects,
    explaining,
    reports,
    scoring,
    sensing,
    verdicts,
)
from judging.results.counting import run_columns
from judging.results.kinds import (
    MANY,
    RUN,
    SOME,
    Figures,
    Rows,
    of_all,
    of_items,
    of_project,
    of_runs,
    summed,
)
from judging.results.tables_of_leads import OF_LEADS
from judging.results.tables_of_people import OF_PEOPLE


def _undetected(runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in reports.undetected(runs, by)]


def _detector(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in detecting.detector(project, runs, by)]


def _changes(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in effects.changes(project, runs, by)]


def _bias(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return [row.as_row() for row in effects.biases(project, runs, by)]


def _audited(project: Project, runs: Sequence[Run], by: Sequence[str]) -> Rows:
    return audited.audited(project, runs)


RESULTS: dict[str, Figures] = {
    "categories": Figures(
        ("ability", "category", "items"),
        False,
        of_project(annotation_tables.TABLES["categories"].rows),
        at_once=None,
    ),
    "undetected": summed(
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
    "scores": summed(scoring.COLUMNS, scoring.scores),
    "score_changes": summed(scoring.CHANGE_COLUMNS, scoring.changes),
    "verdicts": summed(verdicts.COLUMNS, verdicts.verdicts),
    "order_effect": summed(verdicts.ORDER_COLUMNS, verdicts.order),
    "repeats": summed(verdicts.REPEAT_COLUMNS, verdicts.repeats),
    "explanations": summed(explaining.COLUMNS, explaining.explanations),
    "left_out": Figures(
        (*RUN, *reports.LEFT_OUT),
        False,
        of_all(reports.left_out),
        at_once=MANY,
        of_people=False,
    ),
    "sensitivity": Figures(
        (*RUN, *sensing.COLUMNS), False, of_all(sensing.sensitivities), of_people=False
    ),
    "doses": Figures(
        dosing.DOSE_COLUMNS,
        True,
        of_runs(dosing.doses),
        at_once=SOME,
        of_people=False,
        groups="outcomes",
    ),
    "penalties": Figures(
        dosing.PENALTY_COLUMNS, True, dosing.penalties, at_once=SOME, groups="outcomes"
    ),
    "compare": Figures(comparing.COLUMNS, False, of_all(comparing.compare), of_people=False),
    "blindspots": Figures(
        (*RUN, *blindspots.COLUMNS), False, blindspots.blind_spots, at_once=SOME, groups="slices"
    ),
    "cost": Figures(
        (*RUN, *costing.COLUMNS), False, of_all(costing.costs), at_once=MANY, of_people=False
    ),
    "missing": Figures(
        absent.COLUMNS,
        True,
        of_runs(absent.missing),
        ("total", "missing"),
        of_people=False,
        groups="outcomes",
    ),
    "detector": Figures(
        ("n", "invalid", *detecting.FIGURES, "reason"),
        True,
        _detector,
        ("total", "missing"),
        groups="items",
    ),
    "detector_ranges": Figures(
        detecting_ranges.COLUMNS,
        True,
        detecting_ranges.ranges,
        ("total", "missing"),
        of_people=False,
        groups="items",
    ),
    # The task of the project says which fields are kinds.
    "error_kinds": Figures(
        detecting_kinds.COLUMNS,
        True,
        detecting_kinds.kinds,
        ("total", "missing"),
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
    **OF_PEOPLE,
    "dataset": Figures(
        describing.COLUMNS, True, of_items(describing.dataset), of_items=True, groups="items"
    ),
    # It rests on other projects, of whose changes this one does not hear.
    "audits": Figures((*RUN, *audited.COLUMNS), False, _audited, at_once=None),
    **OF_LEADS,
}


def columns(table: str, by: Sequence[str]) -> tuple[str, ...]:
    """All columns of a `results` table in their order."""
    figures = RESULTS[table]
    if figures.of_items:
        return (*by, *figures.columns)
    return (*RUN, *figures.before, *by, *figures.columns) if figures.grouped else figures.columns


def calls(project: Project) -> Iterator[dict[str, Any]]:
    """Every call of the project's runs with the reply it got and what was read in it."""
    named = ("outcome__item", "outcome__revision", "request__reply")
    bulky = ("outcome__item__fields", "outcome__revision__texts", "outcome__values")
    found = Call.objects.order_by("outcome__item__position", "pk")
    whole = found.select_related(*named).defer(*bulky).prefetch_related("request__reply__readings")
    for run in Run.objects.in_project(project).for_results():
        for ids in in_parts(found.filter(run=run)):
            for call in whole.filter(pk__among=ids):
                yield {**_call(run, call), **_reply(run, call.request)}


def outcomes(project: Project) -> Iterator[dict[str, Any]]:
    """Every outcome of the project's runs that judge, one a run, item and axis; the figures are
    made of those that are `counted`."""
    counted = Outcome.objects.counted().main().filter(pk=OuterRef("pk"))
    found = Outcome.objects.order_by("item__position", "axis")
    whole = found.select_related("item", "revision").annotate(is_counted=Exists(counted))
    whole = whole.defer("item__fields", "revision__texts")
    runs = Run.objects.in_project(project).judging().select_related("strategy", "endpoint")
    for run in runs.order_by("number"):
        for ids in in_parts(found.filter(run=run)):
            yield from (_outcome(run, outcome) for outcome in whole.filter(pk__among=ids))


def _outcome(run: Run, outcome: Any) -> dict[str, Any]:
    return {
        **run_columns(run),
        "item": outcome.item.key,
        "revision": outcome.revision.number,
        "ability": outcome.ability,
        "category": outcome.category,
        "source_ability": outcome.source_ability,
        "cluster": outcome.cluster,
        "score_invariant": outcome.invariant,
        "axis": outcome.axis,
        "result": outcome.result,
        "detail": outcome.detail,
        "cause": outcome.cause,
        "values": outcome.values,
        "counted": outcome.is_counted,
    }


def _call(run: Run, call: Call) -> dict[str, Any]:
    request = call.request
    return {
        **run_columns(run),
        "item": call.outcome.item.key,
        "revision": call.outcome.revision.number,
        "role": call.role,
        "order": call.order,
        "axis": call.axis,
        "step": call.step,
        "sample": call.sample,
        "request": request.digest,
        "state": request.state,
        "attempts": request.attempts,
        "failure": request.cause,
        "message": request.message,
        "sends": run.sends(),
    }


def _reply(run: Run, request: Request) -> dict[str, Any]:
    reply = getattr(request, "reply", None)
    if reply is None:
        return {}
    reading = next((one for one in reply.readings.all() if one.parser == run.parser), None)
    return {
        "finish": reply.finish,
        "model": reply.model,
        "text": reply.text,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "cost": reply.cost,
        "asked_at": reply.asked_at,
        "seconds": reply.seconds,
        "parser": run.parser,
        "value": reading and reading.value,
        "path": reading and reading.path,
        "cause": reading and reading.cause,
        "explanation": reading and reading.explanation,
    }


_CALLS = (
    "run", "endpoint", "strategy", "item", "revision", "role", "order", "axis", "step", "sample",
    "request", "state", "attempts", "failure", "message", "finish", "model", "text", "tokens_in",
    "tokens_out", "cost", "asked_at", "seconds", "parser", "value", "path", "cause", "explanation",
    "sends",
)  # fmt: skip
_OUTCOMES = (
    "run", "endpoint", "strategy", "item", "revision", "ability", "category", "source_ability",
    "cluster", "score_invariant", "axis", "result", "detail", "cause", "values", "counted",
)  # fmt: skip

KINDS = {
    **annotation_tables.KINDS,
    **dict.fromkeys(
        ("run", "order", "step", "sample", "attempts", "tokens_in", "tokens_out"), "int"
    ),
    "cost": "float",
    "score_invariant": "bool",
    "asked_at": "time",
}
EXPORTS: dict[str, Table] = {
    **{name: made for name, made in annotation_tables.TABLES.items() if name != "categories"},
    "calls": Table(_CALLS, calls, count=lambda of: Call.objects.filter(run__project=of).count()),
    "outcomes": Table(
        _OUTCOMES, outcomes, count=lambda of: Outcome.objects.filter(run__project=of).count()
    ),
}
