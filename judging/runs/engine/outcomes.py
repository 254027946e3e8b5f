"""Replies become readings, readings become outcomes; the steps of a chain follow one another."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.utils import timezone

from annotation.db import bulk, transactions
from annotation.models import Revision
from judging.models import Call, Outcome, Reading, Run
from judging.runs.engine import calls, chains
from judging.runs.engine.calls import PlannedCall
from judging.runs.engine.chains import CallRow, ChainState
from judging.runs.models import OutcomeQuerySet
from judging.strategies import Strategy
from judging.strategies.replies import decisions, outputs

_OUTCOME_COLUMNS = {
    "result": "text",
    "detail": "text",
    "cause": "text",
    "share": "float8",
    "values": "jsonb",
}
_READING = {
    "reply_id": "bigint",
    "parser": "text",
    "value": "jsonb",
    "path": "text",
    "cause": "text",
    "explanation": "text",
    "created_at": "timestamptz",
}


def start_outcomes(run: Run, strategy: Strategy, batch: Sequence[Outcome]) -> None:
    """Make the first calls of these outcomes, and decide those whose replies are there already."""
    settle(calls.create_calls(run, strategy, calls.build_first_calls(run, strategy, batch)))


def settle(outcome_ids: Iterable[int]) -> int:
    """Decide those pending outcomes whose calls are all answered or failed; how many there were.

    Replies that the run's parser has not parsed yet are read first. Where a chain goes on, its next
    calls are made, in a transaction of their own: if that never comes, the outcome is as pending
    as before, and settling it again makes them.
    """
    with transactions.transact():
        settled = _settle(Outcome.objects.pending().filter(pk__among=list(outcome_ids)))
    decided = sum(one.decided for one in settled)
    ahead = (one for one in settled if one.further)
    answered = [
        pk for one in ahead for pk in calls.create_calls(one.run, one.strategy, one.further)
    ]
    return decided + settle(answered) if answered else decided


def decide_again(outcome_ids: Iterable[int]) -> int:
    """Decide settled outcomes anew, by what their run's parser reads; how many.

    Belongs inside the caller's transaction. No call is made: a chain that broke at a step which
    can be read now stays as it was.
    """
    settled = _settle(Outcome.objects.settled().filter(pk__among=list(outcome_ids)))
    return sum(one.decided for one in settled)


def compute_decisions(
    run: Run, found: Sequence[Outcome]
) -> list[tuple[Outcome, decisions.Decision]]:
    """What the run's parser, which need not be the stored one, makes of outcomes that are over.

    Its readings are stored if they were not there, and no outcome is changed.
    """
    strategy = run.asked()
    with transactions.transact():
        standings = _load_chain_states(run, strategy, found)
    return _decide_finished(strategy, found, standings)


@dataclass(frozen=True)
class _SettledRun:
    """How many outcomes of a run were decided, and the calls that its chains want next."""

    run: Run
    strategy: Strategy
    decided: int
    further: list[PlannedCall]


def _settle(found: OutcomeQuerySet) -> list[_SettledRun]:
    by_run: dict[int, list[Outcome]] = defaultdict(list)
    # Locked, so that what is read here is not older than a retry that begins now.
    for outcome in found.order_by("pk").select_for_update(no_key=True):
        by_run[outcome.run_id].append(outcome)
    runs = Run.objects.for_results().in_bulk(by_run)
    return [_settle_run(runs[run_id], outcomes) for run_id, outcomes in by_run.items()]


def _settle_run(run: Run, found: list[Outcome]) -> _SettledRun:
    strategy = run.asked()
    standings = _load_chain_states(run, strategy, found)
    decided = _decide_finished(strategy, found, standings)
    for outcome, decision in decided:
        apply_decision(outcome, decision, strategy)
    store_decisions([outcome for outcome, _ in decided])
    further = [one for standing in standings.values() for one in standing.further]
    # Nobody asks for a cancelled run any more.
    wanted = _attach_readings(run, further) if run.state != Run.State.CANCELLED else []
    return _SettledRun(run, strategy, len(decided), wanted)


def _decide_finished(
    strategy: Strategy, found: Sequence[Outcome], standings: Mapping[int, ChainState]
) -> list[tuple[Outcome, decisions.Decision]]:
    """The outcomes that are over, each with what its replies come to."""
    over = [outcome for outcome in found if standings[outcome.pk].is_over]
    texts: dict[int, Any] = {}
    if strategy.generates:
        # Texts are long, and only what is made from them is held against them.
        ids = list({outcome.revision_id for outcome in over})
        texts = dict(Revision.objects.filter(pk__among=ids).values_list("pk", "texts"))
    return [
        (one, decisions.decide(strategy, standings[one.pk].said, texts=texts.get(one.revision_id)))
        for one in over
    ]


def _load_chain_states(
    run: Run, strategy: Strategy, found: Sequence[Outcome]
) -> dict[int, ChainState]:
    made = Call.objects.filter(outcome__among=[outcome.pk for outcome in found]).order_by("pk")
    asked = [CallRow(*columns) for columns in made.values_list(*chains.CALL_COLUMNS)]
    readings = _readings(run, strategy, asked)
    by_outcome: dict[int, list[CallRow]] = defaultdict(list)
    for call in asked:
        by_outcome[call.outcome_id].append(call)
    return {
        outcome.pk: chains.build_chain_state(strategy, outcome, by_outcome[outcome.pk], readings)
        for outcome in found
    }


def _attach_readings(run: Run, further: Sequence[tuple[PlannedCall, int]]) -> list[PlannedCall]:
    """The calls with the readings that feed them."""
    if not further:
        return []
    replies = [reply for _, reply in further]
    found = Reading.objects.filter(reply__in=replies, parser=run.parser)
    reading_of = dict(found.values_list("reply", "pk"))
    return [replace(one, fed_by=reading_of[reply]) for one, reply in further]


def apply_decision(outcome: Outcome, decision: decisions.Decision, strategy: Strategy) -> None:
    """Put a decision on an outcome, which is not stored by that.

    The share counts for repeats alone: a vote is one verdict, however narrow.
    """
    outcome.result, outcome.detail = decision.result, decision.detail
    outcome.cause, outcome.values = decision.cause, decision.values
    outcome.share = None if strategy.votes or strategy.fold else decision.share


def store_decisions(decided: Sequence[Outcome]) -> None:
    """Store what was decided, inside the caller's transaction."""
    rows = [
        (row.result, row.detail, row.cause, row.share, json.dumps(row.values), row.pk)
        for row in decided
    ]
    bulk.update(Outcome._meta.db_table, _OUTCOME_COLUMNS, rows)


def _readings(
    run: Run, strategy: Strategy, asked: Sequence[CallRow]
) -> dict[int, outputs.ParsedReply]:
    """What each terminal request of the calls says, by request; a failed one says its cause."""
    said = {
        call.request_id: outputs.ParsedReply(None, path="", cause=call.cause)
        for call in asked
        if call.state == "failed"
    }
    answered = {call.request_id: call for call in asked if call.state == "answered"}
    replies = [call.reply_id for call in answered.values()]
    stored = Reading.objects.filter(reply__among=replies, parser=run.parser)
    known = {row.reply_id: _from_row(row) for row in stored}
    known |= _parse_replies(
        run, strategy, [one for one in answered.values() if one.reply_id not in known]
    )
    return said | {pk: known[call.reply_id] for pk, call in answered.items() if call.reply_id}


def _parse_replies(
    run: Run, strategy: Strategy, asked: Iterable[CallRow]
) -> dict[int, outputs.ParsedReply]:
    made = {
        call.reply_id: outputs.parse_reply(
            strategy, call.text or "", call.finish or "", spec=call.spec
        )
        for call in asked
        if call.reply_id
    }
    _store_readings(run.parser, made)
    return made


def _store_readings(parser: str, made: Mapping[int, outputs.ParsedReply]) -> None:
    """Keep what a parser made of replies, by their ids; one that is there already stays."""
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    rows = [
        (pk, parser, _as_json(one.value), one.path, one.cause, one.explanation, now)
        for pk, one in made.items()
    ]
    bulk.insert(Reading._meta.db_table, _READING, rows)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _from_row(row: Reading) -> outputs.ParsedReply:
    return outputs.ParsedReply(row.value, row.path, row.cause, row.explanation)
