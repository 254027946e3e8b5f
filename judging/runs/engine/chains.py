"""Where an outcome stands: what its calls said, or what its chains ask next.

Each sample of an outcome is a chain of its own, of one step for most strategies. A chain ends
with the reading of its last step, or at the first step that cannot be read, which then is what
the sample says.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from judging.models import Outcome
from judging.runs.engine import calls, rendering
from judging.runs.engine.calls import PlannedCall
from judging.strategies import Strategy
from judging.strategies.frames import CallSpec
from judging.strategies.replies.outputs import ParsedReply


class CallRow(NamedTuple):
    """A call with what came of its request; the reply's columns are None without a reply.

    `shown` is the value of the reading that the call shows.
    """

    outcome_id: int
    role: str
    order: int
    axis: str
    step: int
    sample: int
    shown: Any
    request_id: int
    state: str
    cause: str
    reply_id: int | None
    text: str | None
    finish: str | None

    @property
    def spec(self) -> CallSpec:
        return CallSpec(self.role, self.order, self.axis, self.step)


# Plain columns: whole rows of three tables took three times as long.
CALL_COLUMNS = (
    "outcome", "role", "order", "axis", "step", "sample", "fed_by__value", "request",
    "request__state", "request__cause", "request__reply", "request__reply__text",
    "request__reply__finish",
)  # fmt: skip


@dataclass(frozen=True)
class ChainState:
    """`said` is what the last step of every sample says, and `further` the calls to make next,
    each with the reply that feeds it; `is_over` when nothing is open and nothing to be made."""

    said: dict[tuple[CallSpec, int], ParsedReply] = field(default_factory=dict)
    further: list[tuple[PlannedCall, int]] = field(default_factory=list)
    is_open: bool = False

    @property
    def is_over(self) -> bool:
        return bool(self.said) and not self.further and not self.is_open


def build_chain_state(
    strategy: Strategy,
    outcome: Outcome,
    asked: Sequence[CallRow],
    readings: Mapping[int, ParsedReply],
) -> ChainState:
    """Where an outcome stands with the readings, by request, of those of its calls that ended."""
    standing = ChainState()
    by_sample: dict[int, list[CallRow]] = defaultdict(list)
    for call in asked:
        by_sample[call.sample].append(call)
    for sample, chain in by_sample.items():
        step = max(call.step for call in chain)
        here = {call.spec: call for call in chain if call.step == step}
        heard = {spec: readings.get(call.request_id) for spec, call in here.items()}
        known = {spec: said for spec, said in heard.items() if said}
        if len(known) < len(here):
            standing = replace(standing, is_open=True)
        elif step == strategy.last_step:
            standing.said.update({(spec, sample): said for spec, said in known.items()})
        elif broken := next((said for said in known.values() if said.value is None), None):
            standing.said.update(_end_unreadable_chain(strategy, outcome, sample, broken))
        else:
            standing.further.extend(_build_next_calls(strategy, outcome, chain, known))
    return standing


def _end_unreadable_chain(
    strategy: Strategy, outcome: Outcome, sample: int, said: ParsedReply
) -> dict[tuple[CallSpec, int], ParsedReply]:
    """A step that could not be read stands for the last one, which is never asked."""
    last = calls.list_call_specs(strategy, outcome, strategy.last_step)
    return {(spec, sample): ParsedReply(None, cause=said.cause) for spec in last}


def _build_next_calls(
    strategy: Strategy,
    outcome: Outcome,
    chain: Sequence[CallRow],
    known: Mapping[CallSpec, ParsedReply],
) -> list[tuple[PlannedCall, int]]:
    """The calls of the next step of a chain, and the replies whose readings feed them."""
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
        made.append((PlannedCall(outcome, spec, call.sample, more), call.reply_id))
    return made
