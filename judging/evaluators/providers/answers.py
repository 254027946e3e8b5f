"""The input and output of a call, the same for every protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "refused", "filtered", "other"]


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
    that answered. Token counts are None if not reported. `started` is an aware datetime in UTC;
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


class Prompt(Protocol):
    """A rendered prompt: the two texts of a chat, and the parts from which they were rendered."""

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def parts(self) -> Mapping[str, Any]: ...
