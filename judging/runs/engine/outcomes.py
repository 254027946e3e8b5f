"""Turn replies into readings and readings into outcomes, and build the next calls of chains.

Each sample of an outcome is a separate chain, with a single step for most strategies. A chain ends
with the reading of its last step, or at the first step that cannot be parsed. In the second case,
the cause of the failed step is the result of the sample.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db import connection
from django.db.models.functions import Length
from django.utils import timezone

from annotation.db import batches, bulk, sql, transactions
from annotation.models import Revision
from judging.models import Call, Outcome, Reading, Reply, Request, Run
from judging.runs import run_config
from judging.runs.engine import calls, rendering
from judging.runs.engine.calls import PlannedCall
from judging.runs.models import OutcomeQuerySet
from judging.strategies import Strategy
from judging.strategies.frames import CallSpec
from judging.strategies.replies import decisions, outputs
from judging.strategies.replies.outputs import ParsedReply

# The key in a run's pins under which the progress of a change of parser is stored, so that any
# worker can continue it.
PROGRESS_KEY = "rereading"
REPARSE_BATCH = 200


class CallRow(NamedTuple):
    """A call with its request's state and reply; the reply's columns are None without a reply.

    `shown` is the value of the reading that the call's prompt includes, `length` the number of the
    reply's characters.
    """

    outcome_id: int
    role: str
    order: int
    axis: str
    step: int
    sample: int
    supplement: int
    shown: Any
    request_id: int
    state: str
    cause: str
    reply_id: int | None
    finish: str | None
    length: int | None

    @property
    def spec(self) -> CallSpec:
        return CallSpec(self.role, self.order, self.axis, self.step)


# Load plain columns, since model objects of three tables took three times as long.
CALL_COLUMNS = (
    "outcome", "role", "order", "axis", "step", "sample", "supplement", "fed_by__value", "request",
    "request__state", "request__cause", "request__reply", "request__reply__finish",
    Length("request__reply__text"),
)  # fmt: skip
_CALLS = sql.PreparedRows(
    lambda ids: Call.objects.filter(outcome__among=ids).order_by("pk").values_list(*CALL_COLUMNS)
)
_STORED_READINGS = sql.PreparedRows(
    lambda replies, parser: Reading.objects.filter(reply__among=replies, parser=parser).values_list(
        "reply", "value", "path", "cause"
    )
)
_TEXTS = sql.PreparedRows(
    lambda replies: Reply.objects.filter(pk__among=replies).values_list("pk", "text")
)


@dataclass(frozen=True)
class ChainState:
    """The state of an outcome's chains. `said` has the readings of the last step of every sample;
    `further` has the calls to send next, each with the id of the reply on which it is based.
    `is_open` is True if some call has not ended. `again` has the readings of each supplement that
    asked again, in order."""

    said: dict[tuple[CallSpec, int], ParsedReply] = field(default_factory=dict)
    further: list[tuple[PlannedCall, int]] = field(default_factory=list)
    is_open: bool = False
    again: tuple[dict[tuple[CallSpec, int], ParsedReply], ...] = ()

    @property
    def is_over(self) -> bool:
        """True if the outcome can be decided; False before the first reading."""
        return bool(self.said) and not self.further and not self.is_open


def build_chain_state(
    strategy: Strategy,
    outcome: Outcome,
    asked: Sequence[CallRow],
    readings: Mapping[int, ParsedReply],
    stopped: Collection[int] = (),
) -> ChainState:
    """Build the state of an outcome's chains, with those of its supplements. `readings` has the
    reading of each ended call, by request. The supplements with the numbers in `stopped` go on no
    more, so those that lack a reading say nothing once none of their calls is in flight."""
    by_supplement: dict[int, list[CallRow]] = defaultdict(list)
    for call in asked:
        by_supplement[call.supplement].append(call)
    first = _build_chains(strategy, outcome, by_supplement.pop(0, []), readings)
    again = {
        number: _build_chains(strategy, outcome, by_supplement[number], readings)
        for number in sorted(by_supplement)
    }
    later = [
        one
        for number, one in again.items()
        if number not in stopped
        or one.said.keys() >= first.said.keys()
        or any(call.state == Request.State.LEASED for call in by_supplement[number])
    ]
    if not later:
        return first
    return ChainState(
        first.said,
        [*first.further, *(call for one in later for call in one.further)],
        first.is_open or any(one.is_open for one in later),
        tuple(one.said for one in later),
    )


def _build_chains(
    strategy: Strategy,
    outcome: Outcome,
    asked: Sequence[CallRow],
    readings: Mapping[int, ParsedReply],
) -> ChainState:
    state = ChainState()
    by_sample: dict[int, list[CallRow]] = defaultdict(list)
    for call in asked:
        by_sample[call.sample].append(call)
    for sample, chain in by_sample.items():
        step = max(call.step for call in chain)
        here = {call.spec: call for call in chain if call.step == step}
        heard = {spec: readings.get(call.request_id) for spec, call in here.items()}
        known = {spec: said for spec, said in heard.items() if said}
        if len(known) < len(here):
            state = replace(state, is_open=True)
        elif step == strategy.last_step:
            state.said.update({(spec, sample): said for spec, said in known.items()})
        elif broken := next((said for said in known.values() if said.value is None), None):
            state.said.update(_end_unreadable_chain(strategy, outcome, sample, broken))
        else:
            state.further.extend(_build_next_calls(strategy, outcome, chain, known))
    return state


def _end_unreadable_chain(
    strategy: Strategy, outcome: Outcome, sample: int, said: ParsedReply
) -> dict[tuple[CallSpec, int], ParsedReply]:
    """Set the result of the last step, which is never sent, to the cause of the step that could not
    be parsed."""
    last = calls.list_call_specs(strategy, outcome, strategy.last_step)
    return {(spec, sample): ParsedReply(None, cause=said.cause) for spec in last}


def _build_next_calls(
    strategy: Strategy,
    outcome: Outcome,
    chain: Sequence[CallRow],
    known: Mapping[CallSpec, ParsedReply],
) -> list[tuple[PlannedCall, int]]:
    """Build the calls of a chain's next step, each with the id of the reply whose reading it
    uses."""
    made = []
    for call in chain:
        if call.spec not in known or call.reply_id is None:
            continue
        before = [one for one in chain if (one.role, one.order) == (call.role, call.order)]
        more = {
            strategy.step(one.step - 1).name: rendering.format_value(one.shown)
            for one in before
            if one.step > 0
        }
        more[strategy.step(call.step).name] = rendering.format_value(known[call.spec].value)
        spec = replace(call.spec, step=call.step + 1)
        planned = PlannedCall(outcome, spec, call.sample, more, supplement=call.supplement)
        made.append((planned, call.reply_id))
    return made


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


def start_outcomes(run: Run, strategy: Strategy, batch: Sequence[Outcome]) -> list[int]:
    """Create the first calls of these outcomes; return the ids of those for which a reply is
    already stored, to be settled."""
    return calls.create_calls(run, strategy, calls.build_first_calls(run, strategy, batch))


def settle(outcome_ids: Iterable[int]) -> int:
    """Decide the pending outcomes whose calls are all answered or failed; return how many.

    Replies that the run's parser has not parsed yet are parsed first. If a chain continues, its
    next calls are created in a separate transaction. If this transaction fails, the outcome stays
    pending, and the next attempt to settle it creates the calls.
    """
    with transactions.transact():
        settled = _settle(Outcome.objects.pending().filter(pk__among=list(outcome_ids)))
    decided = sum(one.decided for one in settled)
    answered = [pk for one in settled if one.further for pk in _continue_chains(one)]
    return decided + settle(answered) if answered else decided


def settle_stopped(run: Run) -> None:
    """Drop what the cancelled supplements of a run have not sent, and decide the outcomes that wait
    for it."""
    stopped = run_config.list_stopped_supplements(run.pinned)
    run.calls.filter(supplement__in=stopped, request__state=Request.State.WAITING).delete()
    settle(run.outcomes.pending().order_by("pk").values_list("pk", flat=True))


def decide_again(outcome_ids: Iterable[int]) -> int:
    """Decide settled outcomes again, from the readings of their run's parser; return how many.

    Must run inside the caller's transaction. No call is created. A chain that ended early stays as
    it is, even if the step where it ended can be parsed now.
    """
    settled = _settle(Outcome.objects.settled().filter(pk__among=list(outcome_ids)))
    return sum(one.decided for one in settled)


def decide_remaining(run: Run) -> None:
    """Decide the outcomes that the new parser has not decided yet, batch by batch."""
    while _decide_next_batch(run):
        pass


def _decide_next_batch(run: Run) -> bool:
    """Decide one batch; return True if there may be more outcomes to decide."""
    with transactions.transact():
        held = Run.objects.select_for_update(no_key=True).only("pk", "pinned").get(pk=run.pk)
        if PROGRESS_KEY not in held.pinned:
            return False
        settled = run.outcomes.settled().filter(pk__gt=held.pinned[PROGRESS_KEY]).order_by("pk")
        batch = list(settled.values_list("pk", flat=True)[:REPARSE_BATCH])
        decide_again(batch)
        pinned = {name: value for name, value in held.pinned.items() if name != PROGRESS_KEY}
        run.pinned = {**pinned, PROGRESS_KEY: batch[-1]} if batch else pinned
        Run.objects.filter(pk=run.pk).update(pinned=run.pinned)
    return bool(batch)


def compute_decisions(
    run: Run, found: Sequence[Outcome]
) -> list[tuple[Outcome, decisions.Decision]]:
    """Compute the decisions on finished outcomes by the parser of `run`, which may differ from the
    stored run's parser.

    New readings are stored, but no outcome is changed.
    """
    strategy = run.pinned_strategy()
    with transactions.transact():
        states = _load_chain_states(run, strategy, found)
    return _decide_finished(strategy, found, states)


@dataclass(frozen=True)
class _SettledRun:
    """The number of outcomes of a run that were decided, and the next calls of its chains."""

    run: Run
    strategy: Strategy
    decided: int
    further: list[PlannedCall]


def _continue_chains(settled: _SettledRun) -> list[int]:
    """Create the next calls of chains; return the ids of the outcomes for which a reply is already
    stored."""
    again = {one.outcome.pk for one in settled.further if one.supplement}
    with transactions.transact():
        # A supplement may have been cancelled meanwhile, and its run may send calls later.
        going_on = Outcome.objects.pending().filter(pk__in=again).order_by("pk")
        still = set(going_on.select_for_update(no_key=True).values_list("pk", flat=True))
        wanted = [one for one in settled.further if not one.supplement or one.outcome.pk in still]
        return calls.create_calls(settled.run, settled.strategy, wanted)


def _settle(found: OutcomeQuerySet) -> list[_SettledRun]:
    by_run: dict[int, list[Outcome]] = defaultdict(list)
    # Lock the outcomes. Otherwise a retry that starts now would leave us with outdated data.
    for outcome in found.order_by("pk").select_for_update(no_key=True):
        by_run[outcome.run_id].append(outcome)
    runs = Run.objects.for_results().in_bulk(by_run)
    return [_settle_run(runs[run_id], outcomes) for run_id, outcomes in by_run.items()]


def _settle_run(run: Run, found: list[Outcome]) -> _SettledRun:
    strategy = run.pinned_strategy()
    states = _load_chain_states(run, strategy, found)
    decided = _decide_finished(strategy, found, states)
    for outcome, decision in decided:
        apply_decision(outcome, decision, strategy)
    store_decisions([outcome for outcome, _ in decided])
    further = [one for state in states.values() for one in state.further]
    # A cancelled run sends no more calls.
    wanted = _attach_readings(run, further) if run.state != Run.State.CANCELLED else []
    return _SettledRun(run, strategy, len(decided), wanted)


def _decide_finished(
    strategy: Strategy, found: Sequence[Outcome], states: Mapping[int, ChainState]
) -> list[tuple[Outcome, decisions.Decision]]:
    """Return the finished outcomes, each with its decision."""
    over = [outcome for outcome in found if states[outcome.pk].is_over]
    texts: dict[int, Any] = {}
    if strategy.generates:
        # Texts are long, and only generators need them, to compare generated texts with them.
        ids = list({outcome.revision_id for outcome in over})
        texts = dict(Revision.objects.filter(pk__among=ids).values_list("pk", "texts"))
    return [
        (one, _decide_once(strategy, states[one.pk], texts.get(one.revision_id))) for one in over
    ]


def _decide_once(strategy: Strategy, state: ChainState, texts: Any) -> decisions.Decision:
    """Decide by the last supplement that gave a usable reply, otherwise by the original replies."""
    for said in reversed(state.again):
        decision = decisions.decide(strategy, said, texts=texts)
        if decision.result != Outcome.Result.MISSING:
            return decision
    return decisions.decide(strategy, state.said, texts=texts)


def _load_chain_states(
    run: Run, strategy: Strategy, found: Sequence[Outcome]
) -> dict[int, ChainState]:
    asked = [CallRow(*row) for row in _CALLS.fetch(ids=[outcome.pk for outcome in found])]
    readings = _readings(run, strategy, asked)
    by_outcome: dict[int, list[CallRow]] = defaultdict(list)
    for call in asked:
        by_outcome[call.outcome_id].append(call)
    stopped = run_config.list_stopped_supplements(run.pinned)
    return {
        outcome.pk: build_chain_state(strategy, outcome, by_outcome[outcome.pk], readings, stopped)
        for outcome in found
    }


def _attach_readings(run: Run, further: Sequence[tuple[PlannedCall, int]]) -> list[PlannedCall]:
    """Return the calls with the ids of the readings that they use."""
    if not further:
        return []
    replies = [reply for _, reply in further]
    found = Reading.objects.filter(reply__in=replies, parser=run.parser)
    reading_of = dict(found.values_list("reply", "pk"))
    return [replace(one, fed_by=reading_of[reply]) for one, reply in further]


def apply_decision(outcome: Outcome, decision: decisions.Decision, strategy: Strategy) -> None:
    """Set a decision on an outcome, without saving it.

    The share is stored for repeats only: a vote gives a single verdict, even if it was close.
    """
    outcome.result, outcome.detail = decision.result, decision.detail
    outcome.cause, outcome.values = decision.cause, decision.values
    outcome.share = None if strategy.votes or strategy.fold else decision.share


def store_decisions(decided: Sequence[Outcome]) -> None:
    """Save decided outcomes, inside the caller's transaction."""
    rows = [
        (row.result, row.detail, row.cause, row.share, json.dumps(row.values), row.pk)
        for row in decided
    ]
    bulk.update(Outcome._meta.db_table, _OUTCOME_COLUMNS, rows)


def _readings(
    run: Run, strategy: Strategy, asked: Sequence[CallRow]
) -> dict[int, outputs.ParsedReply]:
    """Return the reading of each finished request of the calls, by request, without explanations,
    which decide nothing. A failed request has a reading with its cause."""
    said = {
        call.request_id: outputs.ParsedReply(None, path="", cause=call.cause)
        for call in asked
        if call.state == "failed"
    }
    answered = {call.request_id: call for call in asked if call.state == "answered"}
    replies = [call.reply_id for call in answered.values()]
    stored = _STORED_READINGS.fetch(replies=replies, parser=run.parser)
    known = {reply_id: outputs.ParsedReply(*row) for reply_id, *row in stored}
    known |= _parse_replies(
        run, strategy, [one for one in answered.values() if one.reply_id not in known]
    )
    return said | {pk: known[call.reply_id] for pk, call in answered.items() if call.reply_id}


def _parse_replies(
    run: Run, strategy: Strategy, asked: Iterable[CallRow]
) -> dict[int, outputs.ParsedReply]:
    """Parse replies and store their readings; return them by reply id, without explanations."""
    made: dict[int, outputs.ParsedReply] = {}
    by_reply = {call.reply_id: call for call in asked if call.reply_id}
    # Replies may have megabytes each.
    unread = batches.make_bulky_batches(
        by_reply.values(), REPARSE_BATCH, lambda call: call.length or 0
    )
    for batch in unread:
        parsed = {
            pk: outputs.parse_reply(
                strategy, text, by_reply[pk].finish or "", spec=by_reply[pk].spec
            )
            for pk, text in _TEXTS.fetch(replies=[call.reply_id for call in batch])
        }
        _store_readings(run.parser, parsed)
        made |= {pk: replace(one, explanation="") for pk, one in parsed.items()}
    return made


def _store_readings(parser: str, made: Mapping[int, outputs.ParsedReply]) -> None:
    """Store the readings of replies, by reply id; existing readings are kept."""
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    rows = [
        (pk, parser, _as_json(one.value), one.path, one.cause, one.explanation, now)
        for pk, one in made.items()
    ]
    bulk.insert(Reading._meta.db_table, _READING, rows)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)
