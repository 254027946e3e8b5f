"""Counts of a whole project as they are shown to those who must not learn what moved them.

A count that rises with each label, but not with a silent check, would tell the one from the other.
So where checks are handed out, annotators see such counts as they were some minutes ago.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from django.core.cache import cache

if TYPE_CHECKING:
    from annotation.models import Project

RENEWED_AFTER = 180
"""Seconds in which a person labels a good many items, of which one may have been a check."""

T = TypeVar("T")


def counted(project: "Project", what: str, role: str, count: Callable[[], T]) -> T:
    """What `count` gives now, or for annotators of a project with checks gave some minutes ago."""
    if not project.probe_every or role != "annotator":
        return count()
    name = f"seldom-{what}-{project.pk}-{project.created_at.timestamp()}"
    known = cache.get(name)
    if known is None:
        cache.set(name, known := count(), timeout=RENEWED_AFTER)
    return cast(T, known)
