"""Tables of rows to export. `formats.writers` writes any of them in any format."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef

from annotation.db.batches import id_batches
from annotation.exporting import tables as annotation_tables
from annotation.exporting.tables import Table
from annotation.models import Project
from judging.models import Call, Outcome, Request, Run
from judging.results.columns import RUN_NAME
from judging.results.counted import run_columns
from judging.runs import warnings
from judging.runs.engine import rendering


def read_calls(project: Project) -> Iterator[dict[str, Any]]:
    """Every call of the project's runs, with its reply and the parsed reply."""
    named = ("outcome__item", "outcome__revision", "request__reply")
    bulky = ("outcome__item__fields", "outcome__revision__texts", "outcome__values")
    found = Call.objects.order_by("outcome__item__position", "pk")
    whole = found.select_related(*named).defer(*bulky).prefetch_related("request__reply__readings")
    for run in Run.objects.in_project(project).for_results():
        for ids in id_batches(found.filter(run=run)):
            for call in whole.filter(pk__among=ids):
                yield {**_call_row(run, call), **_reply_columns(run, call.request)}


def read_outcomes(project: Project) -> Iterator[dict[str, Any]]:
    """Every outcome of the project's judging runs, one per run, item and axis; figures use those
    that are `counted`."""
    counted = Outcome.objects.counted().main().filter(pk=OuterRef("pk"))
    found = Outcome.objects.order_by("item__position", "axis")
    whole = found.select_related("item", "revision").annotate(is_counted=Exists(counted))
    whole = whole.defer("item__fields", "revision__texts")
    runs = Run.objects.in_project(project).judging().select_related("strategy", "endpoint")
    for run in runs.order_by("number"):
        for ids in id_batches(found.filter(run=run)):
            yield from (_outcome_row(run, outcome) for outcome in whole.filter(pk__among=ids))


def read_runs(project: Project) -> Iterator[dict[str, Any]]:
    """Every run of the project, archived runs too, with its name, tags and note."""
    runs = list(Run.objects.in_project(project).for_results())
    facts_of = warnings.count_facts_of_runs(runs)
    for run in runs:
        facts = facts_of[run.pk]
        found = warnings.list_warnings(run.pinned["model"], facts)
        yield {
            **_run_columns(run),
            "tags": run.tags,
            "note": run.note or None,
            "kind": run.kind,
            "state": run.state,
            "strategy_version": run.strategy.number,
            "samples": run.samples,
            "is_part": run.is_part,
            "occasion": run.occasion or None,
            "created_at": run.created_at,
            "finished_at": run.finished_at,
            "archived_at": run.archived_at,
            "digest": run.digest,
            "answered_by": facts.models,
            "warnings": [warning.message for warning in found],
        }


def _run_columns(run: Run) -> dict[str, Any]:
    return {**run_columns(run), RUN_NAME: run.name or None}


def _outcome_row(run: Run, outcome: Any) -> dict[str, Any]:
    return {
        **_run_columns(run),
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
        "values": outcome.decided_values,
        "counted": outcome.is_counted,
    }


def _call_row(run: Run, call: Call) -> dict[str, Any]:
    request = call.request
    return {
        **_run_columns(run),
        "item": call.outcome.item.key,
        "revision": call.outcome.revision.number,
        "role": call.role,
        "order": call.order,
        "axis": call.axis,
        "step": call.step,
        "sample": call.sample,
        "supplement": call.supplement,
        "drawn": call.outcome.drawn,
        "request": request.digest,
        "state": request.state,
        "attempts": request.attempts,
        "failure": request.cause,
        "message": request.message,
        "sends": rendering.with_supplement(run, call.supplement).sends(),
    }


def _reply_columns(run: Run, request: Request) -> dict[str, Any]:
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
        "tokens_cached": reply.tokens_cached,
        "tokens_reasoning": reply.tokens_reasoning,
        "thinking": reply.thinking,
        "cost": reply.cost,
        "currency": settings.CURRENCY,
        "asked_at": reply.asked_at,
        "seconds": reply.seconds,
        "parser": run.parser,
        "value": reading and reading.value,
        "path": reading and reading.path,
        "cause": reading and reading.cause,
        "explanation": reading and reading.explanation,
    }


_CALL_COLUMNS = (
    "run", "endpoint", "strategy", "run_name", "item", "revision", "role", "order", "axis", "step",
    "sample", "request", "state", "attempts", "failure", "message", "finish", "model", "text",
    "tokens_in", "tokens_out", "cost", "asked_at", "seconds", "parser", "value", "path", "cause",
    "explanation", "sends", "tokens_cached", "tokens_reasoning", "thinking", "currency",
    "supplement", "drawn",
)  # fmt: skip
_OUTCOME_COLUMNS = (
    "run", "endpoint", "strategy", "run_name", "item", "revision", "ability", "category",
    "source_ability", "cluster", "score_invariant", "axis", "result", "detail", "cause", "values",
    "counted",
)  # fmt: skip
_RUN_COLUMNS = (
    "run", "endpoint", "strategy", "run_name", "tags", "note", "kind", "state", "strategy_version",
    "samples", "is_part", "occasion", "created_at", "finished_at", "archived_at", "digest",
    "answered_by", "warnings",
)  # fmt: skip

EXPORT_COLUMN_KINDS = {
    **annotation_tables.COLUMN_KINDS,
    **dict.fromkeys(
        (
            *("run", "order", "step", "sample", "attempts", "tokens_in", "tokens_out"),
            *("tokens_cached", "tokens_reasoning", "supplement"),
            *("strategy_version", "samples"),
        ),
        "int",
    ),
    "cost": "float",
    **dict.fromkeys(("score_invariant", "is_part"), "bool"),
    **dict.fromkeys(("asked_at", "finished_at", "archived_at"), "time"),
}
EXPORT_TABLES: dict[str, Table] = {
    **{name: made for name, made in annotation_tables.TABLES.items() if name != "categories"},
    "runs": Table(_RUN_COLUMNS, read_runs, count=lambda of: Run.objects.in_project(of).count()),
    "calls": Table(
        _CALL_COLUMNS, read_calls, count=lambda of: Call.objects.filter(run__project=of).count()
    ),
    "outcomes": Table(
        _OUTCOME_COLUMNS,
        read_outcomes,
        count=lambda of: Outcome.objects.filter(run__project=of).count(),
    ),
}
# What each table is, and each format whose name does not say it.
TABLE_HINTS = {
    "items": "items and their final labels",
    "labels": "all labels, including replaced ones",
    "revisions": "all revisions of the texts",
    "resolutions": "history of final labels",
    "comments": "comments on items, and who was mentioned",
    "marks": "who skipped or flagged an item, or saw others' labels",
    "baseline": "human baseline, compared with the final labels",
    "practice": "qualification rounds, and who passed",
    "probes": "results of each annotator on control items",
    "runs": "names, tags, notes and states of the runs",
    "calls": "prompts sent to evaluators, and their replies",
    "outcomes": "outcome of each item in each run",
}
FORMAT_HINTS = {
    "fbi": "the archive of study 000, a zip with a table of items per category",
    "hub": "for the Hugging Face hub, a zip of Parquet files with a data card",
}
