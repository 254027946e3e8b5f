"""The verdicts of recorded replies on each item: the stored verdicts, and the verdicts by our
parser.

Pure. Both verdicts are kept, but only one of them decides.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from formats.rows import BadRow
from judging.runs.recorded.transcripts import STORED, Transcript
from judging.runs.recorded.values import OFF_SCALE
from judging.strategies import Strategy, frames
from judging.strategies.frames import CallSpec
from judging.strategies.replies import decisions, outputs
from judging.strategies.replies.decisions import Decision
from judging.strategies.replies.outputs import ParsedReply

PARSED = "parsed"
DIFFERS_KEY = "differs"
VERDICT_CHOICES = (STORED, PARSED)
_RESULT_OF_VALUE = {"error": "detected", "no_error": "undetected"}

# Item key and axis; each such place has one outcome.
PlaceKey = tuple[str, str]


@dataclass(frozen=True)
class JudgedPlace:
    """All replies about one place, with the stored and the parsed verdict; a missing verdict is
    None.

    `decides` is the verdict that decides the outcome.
    """

    transcripts: tuple[Transcript, ...]
    stored: Decision | None
    parsed: Decision | None
    decides: Decision

    @property
    def differs(self) -> bool:
        """True if the stored verdict contradicts the parsed verdict; False if either is missing."""
        return bool(self.stored and self.parsed) and get_decision_value(
            self.stored
        ) != get_decision_value(self.parsed)

    @property
    def values(self) -> dict[str, Any]:
        """The values to store in the outcome: the values of the deciding verdict, and both
        verdicts."""
        both = {STORED: self.stored, PARSED: self.parsed}
        kept = {name: get_decision_value(one) for name, one in both.items() if one}
        flags: dict[str, Any] = {DIFFERS_KEY: True} if self.differs else {}
        if off := [
            _collect_off_scale(one) for one in self.transcripts if one.off_scale is not None
        ]:
            flags[OFF_SCALE] = off
        return self.decides.values | kept | flags


def _collect_off_scale(one: Transcript) -> dict[str, Any]:
    return {"role": one.spec.role, "sample": one.sample, "said": one.off_scale}


def get_decision_value(decision: Decision | None) -> Any:
    """Return a decision as one value, its detail or its scores; None for a missing decision."""
    if decision is None or decision.result == decisions.MISSING:
        return None
    return decision.detail or decision.values


def choose_verdicts(transcripts: Sequence[Transcript], wanted: str) -> str:
    """Choose the verdicts that decide: the wanted verdicts, by default the stored verdicts. If only
    one of the two exists, it decides."""
    if not any(one.stored or one.decided for one in transcripts):
        return PARSED
    if not any(one.text is not None for one in transcripts):
        return STORED
    return wanted or STORED


def judge_places(
    strategy: Strategy, transcripts: Sequence[Transcript], choice: str
) -> dict[PlaceKey, JudgedPlace | BadRow]:
    """Return the verdicts on every place, or the first problem in the rows of the place."""
    by_place: dict[PlaceKey, list[Transcript]] = defaultdict(list)
    for one in transcripts:
        by_place[one.item, one.spec.axis].append(one)
    most = 1 + max(one.sample for one in transcripts)
    return {
        place: next(_find_faults(strategy, found, most, choice), None)
        or _judge_place(strategy, found, choice)
        for place, found in by_place.items()
    }


def _find_faults(
    strategy: Strategy, found: Sequence[Transcript], samples: int, choice: str
) -> Iterator[BadRow]:
    seen: dict[tuple[CallSpec, int], Transcript] = {}
    for one in found:
        if earlier := seen.get((one.spec, one.sample)):
            where = f"{earlier.row.file}, line {earlier.row.line}"
            yield one.bad(
                "item", f"{one.item} already has this reply, in {where}. Keep one of them."
            )
        seen[one.spec, one.sample] = one
        if len({two.decided for two in found}) > 1:
            yield one.bad("decided", f"{one.item} has two different verdicts. Correct the rows.")
        if not one.cause and choice == STORED and one.stored is None and not one.decided:
            yield one.bad(
                "value", "is missing, but other rows have one. Add it, or use --verdicts parsed."
            )
        if not one.cause and choice == PARSED and one.text is None:
            yield one.bad(
                "text", "is missing, but other rows have one. Add it, or use --verdicts stored."
            )
    for wanted in _list_expected_calls(strategy, found, samples):
        if wanted not in seen:
            spec, sample = wanted
            lacks = f"{spec.role} {spec.order}, sample {sample}"
            yield found[0].bad(
                "item", f"{found[0].item} has no reply for {lacks}. Add it, or a row with a cause."
            )


def _list_expected_calls(
    strategy: Strategy, found: Sequence[Transcript], samples: int
) -> Iterator[tuple[CallSpec, int]]:
    """List the calls that each item needs, with the number of samples of the item that has most
    samples."""
    if found[0].decided and found[0].text is None:
        return
    for spec in frames.list_calls(strategy, axis=found[0].spec.axis, step=strategy.last_step):
        for sample in range(samples):
            yield spec, sample


def _judge_place(strategy: Strategy, found: Sequence[Transcript], choice: str) -> JudgedPlace:
    stored, parsed = _decide_stored(strategy, found), _decide_parsed(strategy, found)
    decides = stored if choice == STORED else parsed
    if decides is None:  # every reply of the item failed
        decides = stored or parsed or decisions.Decision(decisions.MISSING, cause=found[0].cause)
    return JudgedPlace(tuple(found), stored, parsed, decides)


def _decide_stored(strategy: Strategy, found: Sequence[Transcript]) -> Decision | None:
    if found[0].decided:
        return _build_voted_decision(found[0].decided[0])
    if not any(one.stored for one in found):
        return None
    return _decide(strategy, ((one, one.stored) for one in found))


def _decide_parsed(strategy: Strategy, found: Sequence[Transcript]) -> Decision | None:
    if all(one.text is None for one in found):
        return None
    return _decide(strategy, ((one, parse_transcript(strategy, one)) for one in found))


def parse_transcript(strategy: Strategy, one: Transcript) -> ParsedReply | None:
    """Read a reply with our parser; None if the text of the reply was not kept."""
    if one.text is None:
        return None
    return outputs.parse_reply(strategy, one.text, one.finish, spec=one.spec)


def _decide(strategy: Strategy, read: Iterable[tuple[Transcript, ParsedReply | None]]) -> Decision:
    readings = {
        (one.spec, one.sample): reading or ParsedReply(None, cause=one.cause or "unavailable")
        for one, reading in read
    }
    return decisions.decide(strategy, readings)


def _build_voted_decision(value: str | None) -> Decision:
    if value is None:
        return Decision(decisions.MISSING, cause="unparsable")
    return Decision(_RESULT_OF_VALUE[value], value)
