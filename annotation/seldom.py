"""Counts of a whole project: not made again for each who looks, where making them takes a while,
and not at once for those who must not learn what moved them.

A count that rises with each label, but not with a silent check, would tell the one from the other.
So where checks are handed out, annotators see such counts as they were some minutes ago.
"""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar, cast

from annotation.memory import memory

if TYPE_CHECKING:
    from annotation.models import Project

RENEWED_AFTER = 180
"""Seconds in which a person labels a good many items, of which one may have been a check."""

DEAR = 0.005
"""Seconds; a count that took longer is remembered for so many times what it took."""
REMEMBERED, AT_MOST = 300, 60

T = TypeVar("T")


def counted(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """What `count` gives now, or for annotators of a project with checks gave some minutes ago."""
    if not project.probe_every or role != "annotator":
        return count()
    return _kept(f"seldom-{_name(project, what)}", count, lambda took: RENEWED_AFTER)


def remembered(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """The same, but where counting takes a while it may be some seconds old for all."""

    def kept() -> T:
        return _kept(f"counted-{_name(project, what)}", count, _seconds)

    return counted(project, what, role, kept)


def _name(project: "Project", what: str) -> str:
    return f"{what}-{project.pk}-{project.created_at.timestamp()}"


def _seconds(took: float) -> float:
    return min(REMEMBERED * took, AT_MOST) if took > DEAR else 0


def _kept(name: str, count: Callable[[], T], seconds: Callable[[float], float]) -> T:
    """What is remembered, or what `count` gives, to be remembered for so many `seconds`."""
    known = memory.get(name)
    if known is not None:
        return cast(T, known)
    begun = perf_counter()
    counts = count()
    if timeout := seconds(perf_counter() - begun):
        memory.set(name, counts, timeout=timeout)
    return counts
