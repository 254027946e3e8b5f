"""Tables of rows to export. `formats.writers` writes any of them in any format."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef

from annotation.db.batches import bulky_id_batches, id_batches
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
    said = ("request__reply__text", "request__reply__thinking")
    bulky = ("outcome__item__fields", "outcome__revision__texts", "outcome__values")
    found = Call.objects.order_by("outcome__item__position", "pk")
    whole = found.select_related(*named).defer(*bulky).prefetch_related("request__reply__readings")
    for run in Run.objects.in_project(project).for_results():
        for ids in bulky_id_batches(found.filter(run=run), *said):
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
    "fbi": "the archive of study 000, a zip with a table of items per category; only items "
    "labelled valid or score-invariant",
    "hub": "for the Hugging Face hub, a zip of Parquet files with a data card",
}
# What the columns hold, for the reference: those that mean the same in all tables, then the others
# by table. The texts of items are explained by their task types.
COMMON_MEANINGS = {
    "item": "key of the item",
    "key": "key of the item, which never changes",
    "revision": "number of the revision of its texts",
    "category": "category of the item",
    "ability": "group that the category belongs to; empty for duplicates",
    "source_ability": "ability of the answer that the item was made from",
    "cluster": "source question: items with the same value are not independent",
    "annotator": "alias of the member",
    "choice": "answer to the deciding question",
    "answers": "all answers by field, as stored",
    "comment": "comment that was stored together with it",
    "seconds": "labelling time in seconds, from showing the item to sending the label",
    "current": "false if a later one has replaced it, or if it was undone",
    "created_at": "when it was stored",
    "withdrawn_at": "when the member took it back",
    "ended_at": "when it ended; empty if it is current",
    "taxonomy": "list of categories of the project at that time",
    "taxonomy_version": "version of this list",
    "evaluator_seen": "true if an evaluator had already replied about the item",
    "digest": "SHA-256 of the texts",
    "texts": "all texts by name",
    "run": "number of the run",
    "endpoint": "name of the evaluator",
    "strategy": "name of the strategy",
    RUN_NAME: "name of the run, if it has one",
    "axis": "aspect of quality that was asked for; empty if the strategy has no axes",
}
_OWN_MEANINGS = {
    "items": {
        "origin": "how the item was made, for example `generated` or `perturber`",
        "purpose": "`test`, or `practice` (qualification) or `probe` (control item)",
        "parent": "key of the item that it was made from",
        "dose": "number of errors in the answer",
        "duplicate_of": "key of the earlier item with the same texts",
        "flags": "what the rules for generated items found, for example `claim`",
        "resolution": "final label; empty without one",
        "values": "final answer to each field, by name",
        "reason": "why annotators disagreed, as the adjudicator says",
        "comment": "comment on the final label",
        "source": "where the final label comes from: `labels`, `adjudicated`, `imported` or "
        "`known`",
        "rule": "aggregation or other rule that made the final label",
        "other_texts": "texts that only the task type of this project has",
        "fields": "all other columns of the imported file, and what generators say",
    },
    "labels": {
        "label": "name of the label, unique everywhere",
        "stage": "what the label is for: `label`, `blind` (first look), `verify`, "
        "`qualification`, `control`, `baseline` (human baseline) or `adjudicate`",
        "missing": "answers off their scale, by field, with cause and value",
        "counted": "true if it fills a slot of the item and its texts were not corrected since",
        "supersedes": "the label that it replaces",
        "task_type": "task type that asked",
        "task_type_version": "version of the task type",
        "guidelines": "version of the guidelines",
        "informed": "true if the annotator could already see another label or the final label",
        "slot_reason": "why the item needed this label beyond the usual number, for example "
        "`share` (double-annotated sample) or `disputed`",
        "diff": "algorithm that numbered the changes that the answers name",
        "first_shown": "the text of a pair that was shown as A",
        "surgicality": "share of the changed pieces that the claim explains, if there was a "
        "claim check",
    },
    "revisions": {
        "current": "true for the last revision of the item",
        "origin": "`import` or `correction`",
        "author": "alias of the member who made the correction",
        "note": "what was corrected, as the author says",
    },
    "resolutions": {
        "value": "final label",
        "values": "final answer to each field, by name",
        "source": "where it comes from: `labels`, `adjudicated`, `imported` or `known`",
        "rule": "aggregation or other rule that made it",
        "decided_by": "alias of the member who decided, if somebody did",
        "reason": "why annotators disagreed, as the adjudicator says",
        "current": "true for the final label that the item has now",
    },
    "comments": {"text": "the comment", "mentions": "aliases of the members that it mentions"},
    "marks": {
        "kind": "`skip`, `flag`, or `seen`: the member saw labels of others or the final label",
        "note": "text of a flag",
    },
    "baseline": {
        "resolution": "final label of the item; empty without one",
        "agrees": "true if the answer is the final label",
    },
    "practice": {
        "round": "number of the round of this annotator",
        "size": "number of items of the round",
        "needed": "pass mark: number of right answers needed",
        "answered": "number of items answered so far",
        "right": "number of right answers",
        "passed": "true if the round is finished and passed",
        "feedback": "feedback of a lead",
        "started_at": "when the round began",
        "finished_at": "when its last item was answered",
    },
    "probes": {
        "checks": "number of control items that the annotator labelled",
        "right": "number of these in which all fields with a known answer match",
        "share": "right divided by checks",
        "low": "lower end of the 95 % interval of this share",
        "high": "upper end of this interval",
        "reason": "why the share or its interval is empty",
        "corrected": "number of control items whose text the annotator corrected first; they are "
        "not in `checks`",
        "wrong": "keys of the items with a wrong answer",
    },
    "runs": {
        "tags": "tags of the run",
        "note": "note on the run's page",
        "kind": "`asked` (by Blindspot), `recorded` (imported replies) or `derived` (made from "
        "other runs)",
        "state": "`planning`, `running`, `paused`, `finished` or `cancelled`",
        "strategy_version": "version of the strategy",
        "samples": "number of samples per call",
        "is_part": "true if the run uses only part of the items that there were at its start",
        "occasion": "name of the occasion, if the run is a canary",
        "created_at": "when the run was created",
        "finished_at": "when it was finished",
        "archived_at": "when it was archived",
        "digest": "digest of everything that the run pins",
        "answered_by": "models that the replies name, with the number of their replies",
        "warnings": "warnings on the run's page",
    },
    "calls": {
        "role": "what is judged, for example `gold`, `perturbed` or `pair`",
        "order": "of a pair, 1 (gold answer first) or 2; otherwise 0",
        "step": "number of the step, from 0",
        "sample": "number of the sample, from 0",
        "request": "digest of all that was sent; calls with the same one share a reply",
        "state": "state of the request: `waiting`, `leased` (being sent), `answered` or `failed`",
        "attempts": "number of attempts to send it",
        "failure": "why there is no reply",
        "message": "error message of the provider",
        "finish": "how the reply ended: `stop` (complete), `length` (cut off), `refused`, "
        "`filtered`, `other` or `unknown`",
        "model": "model that the provider names",
        "text": "the reply, unchanged",
        "tokens_in": "tokens of the prompt",
        "tokens_out": "tokens of the reply",
        "tokens_cached": "part of the tokens in that the provider read from its cache",
        "tokens_reasoning": "part of the tokens out that the model used for reasoning",
        "thinking": "what the model wrote before its reply",
        "cost": "cost of the reply, which calls with the same request share",
        "currency": "currency of the cost",
        "asked_at": "when the request was sent",
        "seconds": "how long the reply took",
        "parser": "version of the parser that read the reply",
        "value": "value that it read; empty without one",
        "path": "where it found the value: `strict` (the whole reply), `fenced`, `embedded`, "
        "`repaired` or `pattern`",
        "cause": "why there is no value",
        "explanation": "explanation in the reply",
        "sends": "parameters of the request",
        "supplement": "0 for the run's own calls, otherwise the number of the time that unusable "
        "items were asked again",
        "drawn": "what a generator drew for the item",
    },
    "outcomes": {
        "score_invariant": "true for score-invariant items, where a detection is a false alarm",
        "result": "`detected`, `undetected`, `scored` (a number), `made` (a generated text), "
        "`missing` or `pending`",
        "detail": "how it was decided, for example `lower`, `equal` or `higher`",
        "cause": "why the outcome is missing",
        "values": "scores or verdicts that decided",
        "counted": "true if headline figures use it",
    },
}


def explain_column(table: str, column: str) -> str:
    """What a column of an exported table holds, in Markdown; "" for a text of the items."""
    return _OWN_MEANINGS.get(table, {}).get(column) or COMMON_MEANINGS.get(column, "")
