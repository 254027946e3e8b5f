"""The decision on an item, and the causes for a missing one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

DETECTED, UNDETECTED, SCORED, MISSING = "detected", "undetected", "scored", "missing"
# The result of a generator if a text was generated.
MADE = "made"
# Nobody writes the same half line so often; a small model does, until it is stopped.
REPEATED_CHARACTERS, REPEATED_TIMES = 40, 4


class Cause(NamedTuple):
    """Why an outcome is missing. `in_reply`: the cause lies in the reply itself, so sending the
    request again would not help. `is_imported`: a file of imported replies can give this cause.
    `former` is the cause's name in older files and archives, "" if it was never renamed.
    """

    name: str
    meaning: str
    in_reply: bool = False
    is_imported: bool = False
    former: str = ""


ONE_ORDER = "one_order"
# All causes of a missing outcome. An item with several causes gets the first cause in this list, no
# matter which call had it. Causes in the reply come before failed requests. Causes that are not
# listed come last, sorted by name.
_CAUSES = (
    Cause("refused", "the evaluator refused, so there is no answer", True, True),
    Cause("filtered", "the provider blocked the reply, so there is no answer", True, True),
    Cause("truncated", "the reply was cut off; incomplete replies are not parsed", True, True),
    Cause(
        "interrupted",
        "the provider ended the reply early, for example to call a tool or after an error of its "
        "own; such replies are not parsed",
        True,
        True,
    ),
    Cause("empty", "the reply has no text", True, True),
    Cause(
        "off_scale",
        "the value is outside the scale or between its steps; values are never rounded",
        True,
        True,
    ),
    Cause("unparsable", "no valid answer was found", True, True),
    Cause("incomplete", "a required part, such as the claim, is missing or empty", True),
    Cause("swapped", "the claim or the rationale is in the place of the answer", True),
    Cause("echoed", "the reply repeats its source, apart from white space", True),
    Cause("language", "the reply seems to be in the wrong language", True),
    Cause(
        "unrelated",
        "fewer than a fifth of the perturbed answer's words are in the gold answer",
        True,
    ),
    Cause("rejected", "the provider rejected the request", is_imported=True),
    Cause(
        "rate_limited",
        "the provider accepted no more requests in this time",
        is_imported=True,
        former="rate-limited",
    ),
    Cause("timed_out", "no reply came in time", is_imported=True),
    Cause("unavailable", "the provider did not answer, or its reply broke off", is_imported=True),
    Cause(ONE_ORDER, "only one of the two orders has an answer"),
)
CAUSES = {one.name: one for one in _CAUSES}
FORMER_CAUSES = {one.former: name for name, one in CAUSES.items() if one.former}


@dataclass(frozen=True, slots=True)
class Decision:
    """A run's decision on one item, along one axis if its strategy has axes.

    A missing result has a `cause`, and its `detail` is "". Any other result has no cause, and a
    `detail`, which may be "" for a score. `values` is plain JSON; item_decisions says what it
    contains for each frame. `share` is the share of parsed repeats or members that detect; None if
    there is only a single one, or nothing to detect.
    """

    result: str
    detail: str = ""
    cause: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    share: float | None = None


def name_cause(cause: str) -> str:
    """Return the name of a cause within a sentence."""
    return "no answer in one of the two orders" if cause == ONE_ORDER else cause.replace("_", " ")


def describe_cause(cause: str) -> str:
    """Return the meaning of a cause; "" for a cause that is not listed."""
    return CAUSES[cause].meaning if cause in CAUSES else ""


class CutReply(Protocol):
    """What is known of a reply that may have been cut off."""

    @property
    def text(self) -> str: ...

    @property
    def finish(self) -> str: ...

    @property
    def tokens_out(self) -> int | None: ...

    @property
    def tokens_reasoning(self) -> int | None: ...

    @property
    def thinking(self) -> str | None: ...


def explain_cut(reply: CutReply) -> str:
    """Say why a reply was cut off, and what to do; "" for a reply that was not."""
    if reply.finish != "length":
        return ""
    used = f"{reply.tokens_out:,} tokens" if reply.tokens_out else "tokens"
    remedy = (
        "max_tokens includes the thinking: ask with a higher limit, or with less thinking (such as "
        "a lower reasoning effort)."
    )
    if not reply.thinking and not reply.tokens_reasoning:
        if _repeats_itself(reply.text):
            return (
                "The reply repeats itself up to the limit of tokens, so a higher max_tokens alone "
                "gives more of the same. If the evaluator accepts it, ask with a "
                "frequency_penalty, such as 1."
            )
        if reply.text.strip():
            return "The reply was cut off at the limit of tokens. Ask with a higher max_tokens."
        return f"The {used} were used up before the reply began. If the model thinks, {remedy}"
    if not reply.text.strip():
        return f"The thinking used up all {used}, so there is no reply. {remedy}"
    part = f"{reply.tokens_reasoning:,} of its {used}" if reply.tokens_reasoning else "some of them"
    return f"The reply was cut off at the limit of tokens; the thinking took {part}. {remedy}"


def _repeats_itself(text: str) -> bool:
    """True if the last words of a text occur in it several times."""
    end = text.strip()[-REPEATED_CHARACTERS:]
    return len(end) == REPEATED_CHARACTERS and text.count(end) >= REPEATED_TIMES


def list_reply_causes() -> list[str]:
    """Return the causes that lie in the reply itself; for these, no request is sent again."""
    return [name for name, one in CAUSES.items() if one.in_reply]


def list_causes_to_ask_again() -> list[str]:
    """Return the causes for which asking again with other parameters makes sense."""
    return [*list_reply_causes(), "timed_out", ONE_ORDER]


def first_cause(causes: Iterable[str]) -> str:
    """Return the cause that comes first in `CAUSES`, or "" if there are no causes."""
    return min(causes, key=lambda cause: (_rank_cause(cause), cause), default="")


def _rank_cause(cause: str) -> int:
    return [*CAUSES].index(cause) if cause in CAUSES else len(CAUSES)
