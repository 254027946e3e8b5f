"""Progress of computing figures: reported by the code that computes, received by its caller."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Called with the step in words, the number of parts done, and their total.
ProgressCallback = Callable[[str, int, int], None]

_callback: ContextVar[ProgressCallback | None] = ContextVar("hears", default=None)


@contextmanager
def with_progress_callback(by: ProgressCallback) -> Iterator[None]:
    """Within the context, call `by` with the progress of every step; this may happen often."""
    token = _callback.set(by)
    try:
        yield
    finally:
        _callback.reset(token)


def report(step: str, done: int, total: int) -> None:
    """Report that `done` of `total` parts of a step, such as "comparing runs", are done."""
    hears = _callback.get()
    if hears:
        hears(step, done, total)


def split_if_watched(parts: Sequence[T], step: str) -> Iterator[Sequence[T]]:
    """Return all parts together, for a single query. If progress is reported, return one part at a
    time, since all parts together take long."""
    if _callback.get() is None:
        yield parts
    else:
        yield from ([part] for part in iterate(parts, step))


def iterate(parts: Sequence[T], step: str) -> Iterator[T]:
    """Yield the parts one by one, and report how many are done."""
    for done, part in enumerate(parts):
        report(step, done, len(parts))
        yield part
    report(step, len(parts), len(parts))
