"""Counts of a whole project: not made again for each who looks, where making them takes a while,
and not at once for those who must not learn what moved them.

A count that rises with each label, but not with a silent check, would tell the one from the other.
So where checks are handed out, annotators see such counts as they were some minutes ago.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from annotation.db.cache import process_cache

if TYPE_CHECKING:
    from annotation.models import Project

ANNOTATOR_CACHE_SECONDS = 180
"""Seconds in which a person labels a good many items, of which one may have been a check."""

LARGE_PROJECT = 10_000
"""Items; counts of a project with fewer take some milliseconds, and are made at each look."""
ITEMS_PER_SECOND, MAX_CACHE_SECONDS = 5_000, 60
"""Those of a larger one are remembered for a second per so many items, and no longer than this."""

T = TypeVar("T")


def get_delayed_count(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """What `count` gives now, or for annotators of a project with checks gave some minutes ago."""
    if not project.probe_every or role != "annotator":
        return count()
    return _get_or_count(
        f"seldom-{_cache_key(project, what)}", count, lambda: ANNOTATOR_CACHE_SECONDS
    )


def get_cached_count(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """The same, but of a large project it may be some seconds old for all."""

    def kept() -> T:
        return _get_or_count(
            f"counted-{_cache_key(project, what)}", count, lambda: _seconds(project)
        )

    return get_delayed_count(project, what, role, kept)


def _cache_key(project: "Project", what: str) -> str:
    return f"{what}-{project.pk}-{project.created_at.timestamp()}"


def _seconds(project: "Project") -> float:
    """How long counts of the project are remembered; its size is looked up once a minute."""
    # Items are numbered from 1 on, so the last number is a number of items, and quickly found.
    positions = project.items.order_by("-position").values_list("position", flat=True)
    items = _get_or_count(
        _cache_key(project, "size"), lambda: positions.first() or 0, lambda: MAX_CACHE_SECONDS
    )
    return min(items / ITEMS_PER_SECOND, MAX_CACHE_SECONDS) if items >= LARGE_PROJECT else 0


def _get_or_count(name: str, count: Callable[[], T], seconds: Callable[[], float]) -> T:
    """What is remembered, or what `count` gives, to be remembered for so many `seconds`."""
    known = process_cache.get(name)
    if known is not None:
        return cast(T, known)
    counts = count()
    if timeout := seconds():
        process_cache.set(name, counts, timeout=timeout)
    return counts
