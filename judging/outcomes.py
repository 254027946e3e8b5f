"""Replies become readings, readings become outcomes."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from annotation import writing
from annotation.models import Item
from judging import decisions, outputs
from judging.frames import CallSpec
from judging.models import Call, Outcome, Reading, Run
from judging.strategies import Strategy


def settle(outcome_ids: Iterable[int]) -> int:
    """Decide those pending outcomes whose calls are all answered or failed; how many there were.

    Replies that the run's parser has not read yet are read first.
    """
    by_run: dict[int, list[Outcome]] = defaultdict(list)
    with writing.transact():
        pending = Outcome.objects.pending().filter(pk__in=list(outcome_ids)).order_by("pk")
        # Locked, so that what is read here is not older than a retry that begins now.
        for outcome in pending.select_for_update(no_key=True):
            by_run[outcome.run_id].append(outcome)
        runs = Run.objects.select_related("strategy").in_bulk(by_run)
        return sum(_settle_run(runs[run_id], found) for run_id, found in by_run.items())


def note_first_replies(request_ids: Iterable[int], now: datetime) -> None:
    """Mark the items that an evaluator's replies to these requests are about (design 3.6)."""
    asked = Item.objects.filter(outcomes__calls__request__in=list(request_ids))
    fresh = list(asked.filter(first_reply_at=None).order_by().values_list("pk", flat=True))
    if fresh:
        Item.objects.filter(pk__in=fresh).update(first_reply_at=now)


class _Asked(NamedTuple):
    """A call with what came of its request; the reply's columns are None without a reply."""

    outcome_id: int
    role: str
    order: int
    request_id: int
    state: str
    cause: str
    reply_id: int | None
    text: str | None
    finish: str | None


# Plain columns: whole rows of three tables took three times as long.
_COLUMNS = (
    "outcome", "role", "order", "request", "request__state", "request__cause",
    "request__reply", "request__reply__text", "request__reply__finish",
)  # fmt: skip


def _settle_run(run: Run, pending: list[Outcome]) -> int:
    strategy = run.strategy.strategy()
    found = Call.objects.filter(outcome__in=[outcome.pk for outcome in pending]).order_by("pk")
    calls = [_Asked(*columns) for columns in found.values_list(*_COLUMNS)]
    readings = _readings(run, strategy, calls)
    decided = list(_decided(strategy, pending, calls, readings))
    _store(decided)
    return len(decided)


def _store(decided: list[Outcome]) -> None:
    # One prepared statement for all rows: bulk_update's CASE took six times as long.
    table = Outcome._meta.db_table
    statement = (
        f'UPDATE {table} SET result = %s, detail = %s, cause = %s, "values" = %s WHERE id = %s'
    )
    rows = [(row.result, row.detail, row.cause, json.dumps(row.values), row.pk) for row in decided]
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def _decided(
    strategy: Strategy,
    pending: list[Outcome],
    calls: list[_Asked],
    readings: Mapping[int, outputs.Reading],
) -> Iterable[Outcome]:
    by_outcome: dict[int, dict[CallSpec, outputs.Reading | None]] = defaultdict(dict)
    for call in calls:
        said = readings.get(call.request_id)
        by_outcome[call.outcome_id][CallSpec(call.role, call.order)] = said
    for outcome in pending:
        said_of = by_outcome[outcome.pk]
        if said_of and all(said_of.values()):
            known = {spec: said for spec, said in said_of.items() if said}
            decision = decisions.decide(strategy.frame, strategy, known)
            outcome.result, outcome.detail = decision.result, decision.detail
            outcome.cause, outcome.values = decision.cause, decision.values
            yield outcome


def _readings(run: Run, strategy: Strategy, calls: list[_Asked]) -> dict[int, outputs.Reading]:
    """What each terminal request of the calls says, by request; a failed one says its cause."""
    said = {
        call.request_id: outputs.Reading(None, path="", cause=call.cause)
        for call in calls
        if call.state == "failed"
    }
    answered = {call.request_id: call for call in calls if call.state == "answered"}
    replies = [call.reply_id for call in answered.values()]
    stored = Reading.objects.filter(reply__in=replies, parser=run.parser)
    known = {row.reply_id: _from_row(row) for row in stored}
    known |= _read(run, strategy, [one for one in answered.values() if one.reply_id not in known])
    return said | {pk: known[call.reply_id] for pk, call in answered.items() if call.reply_id}


def _read(run: Run, strategy: Strategy, calls: Iterable[_Asked]) -> dict[int, outputs.Reading]:
    made = {
        call.reply_id: outputs.read(strategy, call.text or "", call.finish or "")
        for call in calls
        if call.reply_id
    }
    rows = (Reading(reply_id=pk, parser=run.parser, **_columns(said)) for pk, said in made.items())
    Reading.objects.bulk_create(rows, ignore_conflicts=True)
    return made


def _columns(reading: outputs.Reading) -> dict[str, Any]:
    return {
        "value": reading.value,
        "path": reading.path,
        "cause": reading.cause,
        "explanation": reading.explanation,
    }


def _from_row(row: Reading) -> outputs.Reading:
    return outputs.Reading(row.value, row.path, row.cause, row.explanation)
