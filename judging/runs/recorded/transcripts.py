"""Recorded replies of evaluators or people, parsed from rows of files; pure.

A row names the item and the call that it answers. It contains a text, a value that somebody else
read in the text, or the cause if there is no reply.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from formats.rows import BadRow, Row
from judging.evaluators.providers import openai_compatible
from judging.evaluators.providers.answers import split_thinking
from judging.evaluators.providers.errors import (
    EvaluatorError,
    Halting,
    Rejected,
    TimedOut,
    error_of_status,
    redact_message,
)
from judging.runs.recorded import values as recorded_values
from judging.runs.recorded.values import Numbers
from judging.strategies import Strategy, frames
from judging.strategies.frames import CallSpec
from judging.strategies.replies import outputs
from judging.strategies.replies.causes import CAUSES, FORMER_CAUSES
from judging.strategies.replies.outputs import ParsedReply

# The strategy for rows with a detector and a prompt, as in the published folders.
PUBLISHED_STRATEGIES = {
    "simple_prompt_baseline/baseline_errordetection_prompt_1": "detect-1a",
    "simple_prompt_baseline/baseline_errordetection_prompt_2": "detect-1b",
    "simple_prompt_baseline/baseline_errordetection_prompt_3": "detect-2a",
    "simple_prompt_baseline/baseline_errordetection_prompt_4": "detect-2b",
    "advanced_prompt_baseline/cot_instruction_prompt": "detect-steps",
    "self_consistency/baseline_errordetection_prompt_1": "detect-self-consistency",
    "majority_vote/majority_vote": "majority",
}
MAX_SAMPLES = 1000
STORED = "stored"

_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
# A request for which its batch had no time left has the status 0 or 408.
_TIMED_OUT = {0, 408}


class _FaultError(ValueError):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclass(frozen=True)
class Transcript:
    """One recorded reply, from one row.

    `text` is None if it was not kept. `stored` is the value that somebody else read in the text,
    None if the row has no value. A value off the scale is not a reading; it is kept in `off_scale`.
    If the reply is missing, there is a `cause` and no text. `revision` is the number of the
    revision of the item's texts that the reply is about, None if the row does not say. `decided` is
    the verdict over all replies about the item, as a tuple of length one, or () if the row has no
    such verdict.
    """

    row: Row
    item: str
    spec: CallSpec
    sample: int
    revision: int | None = None
    text: str | None = None
    finish: str = "stop"
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    thinking: str = ""
    stored: ParsedReply | None = None
    off_scale: Numbers | None = None
    cause: str = ""
    message: str = ""
    decided: tuple[str | None, ...] = ()

    @property
    def is_kept(self) -> bool:
        """True if there is a reply or a failure to store. A value without a text is stored in the
        outcome."""
        return self.text is not None or bool(self.cause and self.stored is None)

    def bad(self, field: str, reason: str) -> BadRow:
        """Build a `BadRow` with this row's file and line."""
        return self.row.bad(field, reason)


def parse_rows(rows: Iterable[Row | BadRow], strategy: Strategy) -> Iterator[Transcript | BadRow]:
    """Parse each row as a reply to the strategy, or return the reason why the row is not a
    reply."""
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            yield _parse_row(row, strategy)
        except _FaultError as fault:
            yield row.bad(fault.field, str(fault))


def _parse_row(row: Row, strategy: Strategy) -> Transcript:
    values = row.values
    if strategy.frame == "fold":
        return _parse_vote(row, strategy)
    told = Transcript(
        row=row,
        item=_item(values),
        spec=_spec(values, strategy),
        sample=_whole(values, "sample", MAX_SAMPLES),
        revision=_optional_whole(values, "revision"),
        decided=_parse_decided(values, "decided") if "decided" in values else (),
    )
    if told.decided and strategy.frame != "detection":
        raise _FaultError("decided", "is only for error detection. Give a value.")
    if "body" in values or "error" in values:
        return _parse_provider_reply(told, values)
    return _parse_result(told, values, strategy)


def _parse_result(told: Transcript, values: Mapping[str, Any], strategy: Strategy) -> Transcript:
    """Parse the row's columns: the reply, the value read in the reply, or the cause of a missing
    reply."""
    text, cause = values.get("text"), _cause(values)
    if not isinstance(text, str | None):
        raise _FaultError("text", "is not text. Put it in quotes, or leave it out.")
    thinking = values.get("thinking") or ""
    if not isinstance(thinking, str) or (thinking and text is None):
        raise _FaultError("thinking", "is not the text of a model's thinking beside its reply.")
    if text is not None and not thinking:
        thinking, text = split_thinking(text)
    told = replace(
        told,
        text=None if text is None else outputs.strip_unstorable(text),
        thinking=outputs.strip_unstorable(thinking),
        finish=_word(values, "finish") or "stop",
        model=_word(values, "model"),
        tokens_in=_optional_whole(values, "tokens_in"),
        tokens_out=_optional_whole(values, "tokens_out"),
        tokens_cached=_optional_whole(values, "tokens_cached"),
        tokens_reasoning=_optional_whole(values, "tokens_reasoning"),
        cause=cause if text is None else "",
        **_parse_stored(values, strategy, cause),
    )
    if told.text is None and told.stored is None and not (told.cause or told.decided):
        raise _FaultError("text", "is missing. Give a text, a value, values, or a cause.")
    return told


def _item(values: Mapping[str, Any]) -> str:
    key = values.get("item", values.get("key"))
    if not isinstance(key, str) or not key:
        raise _FaultError("item", "is missing. Give the key of the item.")
    return key


def _spec(values: Mapping[str, Any], strategy: Strategy) -> CallSpec:
    """Return the call of the deciding step. If this step has only one call, a row need not name the
    call."""
    axis = _word(values, "axis")
    axes = [one.slug for one in strategy.axes]
    if axis not in (axes or [""]):
        given = f"is {axis!r}" if axis else "is missing"
        raise _FaultError("axis", f"{given}; the strategy has {', '.join(axes) or 'none'}.")
    known = frames.list_calls(strategy, axis=axis, step=strategy.last_step)
    if not known:
        return CallSpec("")
    role, order = _word(values, "role"), _whole(values, "order", 9)
    if not role and len(known) == 1:
        return known[0]
    spec = CallSpec(role, order, axis, strategy.last_step)
    if spec not in known:
        listed = ", ".join(f"{one.role} {one.order}" for one in known)
        raise _FaultError("role", f"and order are {role!r} {order}; the strategy asks {listed}.")
    return spec


def _parse_provider_reply(told: Transcript, values: Mapping[str, Any]) -> Transcript:
    """Parse the reply of a provider, in the format of a batch output file."""
    if "error" in values:
        cause = _cause_of_status(values["status"])
        return replace(told, cause=cause, message=redact_message(str(values["error"])))
    try:
        said = openai_compatible.parse_recorded(values["body"], _UNKNOWN_TIME)
    except EvaluatorError as error:
        raise _FaultError("response.body", f"{error} Give the batch's output file.") from error
    return replace(
        told,
        text=outputs.strip_unstorable(said.text),
        finish=said.finish,
        model=said.model,
        tokens_in=said.tokens_in,
        tokens_out=said.tokens_out,
        tokens_cached=said.tokens_cached,
        tokens_reasoning=said.tokens_reasoning,
        thinking=outputs.strip_unstorable(said.thinking),
    )


def _cause_of_status(status: int) -> str:
    """The cause as of a call of our own. It is too late for a person to act and ask again, so a
    status that would pause a run (401, 402, 403) counts as rejected."""
    if status in _TIMED_OUT:
        return TimedOut.cause
    error = error_of_status(status, "", "")
    return Rejected.cause if isinstance(error, Halting) else error.cause


def _parse_vote(row: Row, strategy: Strategy) -> Transcript:
    """Parse the result of a vote, without the replies."""
    values = row.values
    if strategy.fold != "majority":
        raise _FaultError(
            "value",
            f"cannot be recorded for {strategy.slug}. Import its members, then run it --over them.",
        )
    if "text" in values:
        raise _FaultError("text", "is one reply, but a vote needs several. Leave it out.")
    decided = _parse_decided(values, "decided" if "decided" in values else "value")
    return Transcript(
        row=row,
        item=_item(values),
        spec=CallSpec(""),
        sample=0,
        revision=_optional_whole(values, "revision"),
        decided=decided,
    )


def _parse_decided(values: Mapping[str, Any], name: str) -> tuple[str | None, ...]:
    decided = values.get(name, "")
    if decided not in ("error", "no_error", None):
        raise _FaultError(name, f"is {str(decided)[:40]!r}. Give error, no_error or null.")
    return (decided,)


def _parse_stored(values: Mapping[str, Any], strategy: Strategy, cause: str) -> dict[str, Any]:
    """Parse the value that somebody else read in the reply, or the values by metric."""
    name = "values" if "values" in values else "value"
    if name not in values:
        return {}
    if values[name] is None:
        return {"stored": ParsedReply(None, cause=cause or "unparsable")}
    found = recorded_values.parse_value(values[name], strategy)
    if found is None:
        shown = f"is {str(values[name])[:60]!r}, which {strategy.slug} never gives"
        raise _FaultError(
            name, f"{shown}. Give {recorded_values.describe_values(strategy)}, or null."
        )
    path = STORED if found.reading.value is not None else ""
    return {"stored": replace(found.reading, path=path), "off_scale": found.off_scale}


def _cause(values: Mapping[str, Any]) -> str:
    cause = _word(values, "cause")
    cause = FORMER_CAUSES.get(cause, cause)
    allowed = [name for name, one in CAUSES.items() if one.is_imported]
    if cause and cause not in allowed:
        raise _FaultError("cause", f"is {cause[:40]!r}; causes are {', '.join(allowed)}.")
    return cause


def _word(values: Mapping[str, Any], name: str) -> str:
    word = values.get(name)
    if word is None:
        return ""
    if not isinstance(word, str) or len(word) > 200:
        raise _FaultError(name, "is not a text of at most 200 characters.")
    return word


def _whole(values: Mapping[str, Any], name: str, most: int) -> int:
    number = values.get(name)
    if number is None:
        return 0
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < most:
        raise _FaultError(
            name, f"is {str(number)[:40]!r}; give a whole number from 0 to {most - 1}."
        )
    return number


def _optional_whole(values: Mapping[str, Any], name: str) -> int | None:
    return None if values.get(name) is None else _whole(values, name, 2**31)
