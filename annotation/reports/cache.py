"""Figures that take long to compute are cached for a short time, so that reloads are fast."""

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
    """Figures and the time they were computed; `again` if not computed for this request."""

    value: T
    at: datetime
    again: bool = False


def get_or_compute(
    key: str, make: Callable[[], T], *, now: datetime, worth: float = SLOW_SECONDS
) -> CachedFigures[T]:
    """The result of `make`, cached for a minute if it took at least `worth` seconds.

    Faster results are never cached, so that small projects show every new label at once.
    """
    kept: CachedFigures[T] | None = process_cache.get(key)
    if kept is not None:
        return CachedFigures(kept.value, kept.at, again=True)
    begun = time.perf_counter()
    fresh = CachedFigures(make(), now)
    if time.perf_counter() - begun >= worth:
        process_cache.set(key, fresh, KEEP_SECONDS)
    return fresh
