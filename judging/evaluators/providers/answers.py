"""The input and output of a call, the same for every protocol."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

_OPEN, _CLOSE = "<think>", "</think>"
# Some chat templates open the thinking in the prompt, so that a reply contains only its end.
_END_ALONE = re.compile(rf"^[ \t]*{_CLOSE}[ \t]*$", re.MULTILINE)
# "other": the provider named a reason that is neither a normal end nor one of these three, such as
# a call of a tool or an error on its side. "unknown": it named none, as some servers do.
Finish = Literal["stop", "length", "refused", "filtered", "other", "unknown"]


@dataclass(frozen=True, slots=True)
class Target:
    """The target of one call: base `address`, `key` ("" for none), timeout in seconds.

    The key is left out of the repr, so that a logged target does not reveal it.
    """

    address: str
    key: str = field(default="", repr=False)
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One raw answer.

    `text` is the text of the model, "" if there is none; if `finish` is "refused" or "filtered", it
    is the provider's message, if any. `model` is the name by which the provider calls the model
    that answered. `thinking` is what the model wrote before its reply, "" if that is unknown.

    Token counts are None if not reported. `tokens_cached` are the input tokens that the provider
    read from its cache, a part of `tokens_in`; `tokens_reasoning` are the tokens of the thinking, a
    part of `tokens_out`. `started` is an aware datetime in UTC;
    `seconds` is the time from sending the request to receiving the last byte. `remaining` are the
    remaining limits in the response headers, as `remaining_limits.parse_headers` returns them.
    """

    text: str
    finish: Finish
    model: str
    tokens_in: int | None
    tokens_out: int | None
    started: datetime
    seconds: float
    remaining: Mapping[str, Any] = field(default_factory=dict)
    thinking: str = ""
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None


class Prompt(Protocol):
    """A rendered prompt: the two texts of a chat, and the parts from which they were rendered."""

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def parts(self) -> Mapping[str, Any]: ...


def split_thinking(text: str) -> tuple[str, str]:
    """Return the thinking at the start of a text, and the reply without it.

    Servers that do not separate the two put the thinking between <think> tags, or end it with a
    line that has only the closing tag. If thinking that was opened has no end, all of the text is
    thinking, and the reply is "". A text without thinking is returned unchanged.
    """
    start = text.lstrip()
    if start.startswith(_OPEN):
        thinking, _, reply = start[len(_OPEN) :].partition(_CLOSE)
        return thinking.strip(), reply.lstrip()
    if _CLOSE in text and _OPEN not in text and (end := _END_ALONE.search(text)):
        return text[: end.start()].strip(), text[end.end() :].lstrip()
    return "", text
