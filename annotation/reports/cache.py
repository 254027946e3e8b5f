"""Figures that take long are kept for a moment, so that a page that is loaded again is there."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from annotation.db.cache import process_cache

T = TypeVar("T")

SLOW_SECONDS = 1.0
KEEP_SECONDS = 60


@dataclass(frozen=True)
class CachedFigures(Generic[T]):
    """Figures and when they were made; `again` if they were not made for this request."""

    value: T
    at: datetime
    again: bool = False


def get_or_compute(
    key: str, make: Callable[[], T], *, now: datetime, worth: float = SLOW_SECONDS
) -> CachedFigures[T]:
    """What `make` gives; for a minute the same again, if it took at least `worth` seconds.

    What is made faster is never kept, so that small projects show every label at once.
    """
    kept: CachedFigures[T] | None = process_cache.get(key)
    if kept is not None:
        return CachedFigures(kept.value, kept.at, again=True)
    begun = time.perf_counter()
    fresh = CachedFigures(make(), now)
    if time.perf_counter() - begun >= worth:
        process_cache.set(key, fresh, KEEP_SECONDS)
    return fresh
