"""What a provider is told and what it gives back, the same for every protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "refused", "filtered", "other"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where one call goes: base `address`, `key` ("" for none), deadline in seconds.

    The key is left out of the representation, so that a logged target gives nothing away.
    """

    address: str
    key: str = field(default="", repr=False)
    timeout: float = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One raw answer.

    `text` is what the model wrote, "" if nothing; for `finish` "refused" and "filtered" the
    provider's words if it gave any. `model` is the provider's own name for what answered.
    Tokens are None when not reported. `started` is aware, UTC; `seconds` from sending to the
    last byte. `remaining` is what the reply's headers say is left of limits, as
    `remaining_limits.parse_headers` gives it.
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
    """A rendered prompt: the two texts of a chat, and the parts that they were made from."""

    @property
    def system(self) -> str: ...

    @property
    def user(self) -> str: ...

    @property
    def parts(self) -> Mapping[str, Any]: ...
