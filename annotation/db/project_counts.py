"""Counts over a whole project: cached if counting takes long, and delayed for annotators if the
count could reveal what they must not know.

A count that rises with each label of a regular item, but not of a control item, would reveal the
control items. One that rises when a second person's answer equals a label that they do not see
would reveal the label, and they could undo their answer. In projects with control items or blind
verification, annotators therefore see counts that are some minutes old.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from annotation.db.cache import process_cache

if TYPE_CHECKING:
    from annotation.models import Project

ANNOTATOR_CACHE_SECONDS = 180
"""Long enough for a person to label many items, so that no change belongs to one of them."""

LARGE_PROJECT = 10_000
"""Items; counting in a smaller project takes some milliseconds, so its counts are not cached."""
ITEMS_PER_SECOND, MAX_CACHE_SECONDS = 5_000, 60
"""Counts of larger projects are cached for a second per `ITEMS_PER_SECOND` items, at most for
`MAX_CACHE_SECONDS`."""

T = TypeVar("T")


def get_delayed_count(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """Return the current value of `count`. Annotators in a project with control items or blind
    verification get a value that may be `ANNOTATOR_CACHE_SECONDS` old."""
    verifies_blind = project.verify and project.verify_blind
    if role != "annotator" or not (project.probe_every or verifies_blind):
        return count()
    return _get_or_count(
        f"seldom-{_cache_key(project, what)}", count, lambda: ANNOTATOR_CACHE_SECONDS
    )


def get_cached_count(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """Like `get_delayed_count`, but in a large project everyone gets a value that may be some
    seconds old."""

    def kept() -> T:
        return _get_or_count(
            f"counted-{_cache_key(project, what)}", count, lambda: _seconds(project)
        )

    return get_delayed_count(project, what, role, kept)


def _cache_key(project: "Project", what: str) -> str:
    return f"{what}-{project.pk}-{project.created_at.timestamp()}"


def _seconds(project: "Project") -> float:
    """Return how long counts of the project are cached. The size of the project is read once a
    minute."""
    # Positions start at 1, so the last position gives the number of items and is quick to find.
    positions = project.items.order_by("-position").values_list("position", flat=True)
    items = _get_or_count(
        _cache_key(project, "size"), lambda: positions.first() or 0, lambda: MAX_CACHE_SECONDS
    )
    return min(items / ITEMS_PER_SECOND, MAX_CACHE_SECONDS) if items >= LARGE_PROJECT else 0


def _get_or_count(name: str, count: Callable[[], T], seconds: Callable[[], float]) -> T:
    """Return the cached value; if there is none, call `count` and cache its value for `seconds`."""
    known = process_cache.get(name)
    if known is not None:
        return cast(T, known)
    counts = count()
    if timeout := seconds():
        process_cache.set(name, counts, timeout=timeout)
    return counts
