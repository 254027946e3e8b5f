"""Figures that take long are kept for a moment, so that a page that is loaded again is there."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from annotation.memory import memory

T = TypeVar("T")

WORTH_SECONDS = 1.0
KEEP_SECONDS = 60


@dataclass(frozen=True)
class Kept(Generic[T]):
    """Figures and when they were made; `again` if they were not made for this request."""

    value: T
    at: datetime
    again: bool = False


def made(
    key: str, make: Callable[[], T], *, now: datetime, worth: float = WORTH_SECONDS
) -> Kept[T]:
    """What `make` gives; for a minute the same again, if it took at least `worth` seconds.

    What is made faster is never kept, so that small projects show every label at once.
    """
    kept: Kept[T] | None = memory.get(key)
    if kept is not None:
        return Kept(kept.value, kept.at, again=True)
    begun = time.perf_counter()
    fresh = Kept(make(), now)
    if time.perf_counter() - begun >= worth:
        memory.set(key, fresh, KEEP_SECONDS)
    return fresh
