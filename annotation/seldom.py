"""Counts of a whole project: not made again for each who looks, where making them takes a while,
and not at once for those who must not learn what moved them.

A count that rises with each label, but not with a silent check, would tell the one from the other.
So where checks are handed out, annotators see such counts as they were some minutes ago.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from annotation.memory import memory

if TYPE_CHECKING:
    from annotation.models import Project

RENEWED_AFTER = 180
"""Seconds in which a person labels a good many items, of which one may have been a check."""

LARGE = 10_000
"""Items; counts of a project with fewer take some milliseconds, and are made at each look."""
A_SECOND, AT_MOST = 5_000, 60
"""Those of a larger one are remembered for a second per so many items, and no longer than this."""

T = TypeVar("T")


def counted(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """What `count` gives now, or for annotators of a project with checks gave some minutes ago."""
    if not project.probe_every or role != "annotator":
        return count()
    return _kept(f"seldom-{_name(project, what)}", count, lambda: RENEWED_AFTER)


def remembered(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """The same, but of a large project it may be some seconds old for all."""

    def kept() -> T:
        return _kept(f"counted-{_name(project, what)}", count, lambda: _seconds(project))

    return counted(project, what, role, kept)


def _name(project: "Project", what: str) -> str:
    return f"{what}-{project.pk}-{project.created_at.timestamp()}"


def _seconds(project: "Project") -> float:
    """How long counts of the project are remembered; its size is looked up once a minute."""
    # Items are numbered from 1 on, so the last number is a number of items, and quickly found.
    positions = project.items.order_by("-position").values_list("position", flat=True)
    items = _kept(_name(project, "size"), lambda: positions.first() or 0, lambda: AT_MOST)
    return min(items / A_SECOND, AT_MOST) if items >= LARGE else 0


def _kept(name: str, count: Callable[[], T], seconds: Callable[[], float]) -> T:
    """What is remembered, or what `count` gives, to be remembered for so many `seconds`."""
    known = memory.get(name)
    if known is not None:
        return cast(T, known)
    counts = count()
    if timeout := seconds():
        memory.set(name, counts, timeout=timeout)
    return counts
