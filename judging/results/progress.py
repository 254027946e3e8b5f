"""How far the making of figures is: told by whoever makes them, heard by whoever has them made."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# What is being done in words, how many are done, and of how many.
ProgressCallback = Callable[[str, int, int], None]

_callback: ContextVar[ProgressCallback | None] = ContextVar("hears", default=None)


@contextmanager
def with_progress_callback(by: ProgressCallback) -> Iterator[None]:
    """Within it `by` hears of every step; it may be called often."""
    token = _callback.set(by)
    try:
        yield
    finally:
        _callback.reset(token)


def report(step: str, done: int, total: int) -> None:
    """So many of so many are done of this step, such as "comparing runs"."""
    hears = _callback.get()
    if hears:
        hears(step, done, total)


def split_if_watched(parts: Sequence[T], step: str) -> Iterator[Sequence[T]]:
    """All parts at once, which is one query; but one after the other where somebody hears of it,
    since that is long."""
    if _callback.get() is None:
        yield parts
    else:
        yield from ([part] for part in iterate(parts, step))


def iterate(parts: Sequence[T], step: str) -> Iterator[T]:
    """The parts one after the other, telling how many are done."""
    for done, part in enumerate(parts):
        report(step, done, len(parts))
        yield part
    report(step, len(parts), len(parts))
