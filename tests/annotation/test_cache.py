"""Counts that are not made again for each who looks."""

import itertools

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.db import project_counts
from annotation.models import Item, Project
from tests.builders import make_item, make_project

pytestmark = pytest.mark.django_db


def project_of(items: int) -> Project:
    """A project whose last item has this number; whether there are others is not asked."""
    project = make_project()
    if items:
        Item.objects.filter(pk=make_item(project).pk).update(position=items)
    return project


def looks(project: Project, number: int = 3) -> list[int]:
    """What somebody sees who looks so often at a count that rises each time it is made."""
    counts = itertools.count(1)
    return [
        project_counts.get_cached_count(project, "items", "admin", lambda: next(counts))
        for _ in range(number)
    ]


def test_a_count_of_a_large_project_is_made_once_for_all_who_look() -> None:
    assert looks(project_of(project_counts.LARGE_PROJECT)) == [1, 1, 1]


@pytest.mark.parametrize("items", [0, 1, project_counts.LARGE_PROJECT - 1])
def test_a_count_of_a_smaller_one_is_made_anew(items: int) -> None:
    assert looks(project_of(items)) == [1, 2, 3]


@pytest.mark.parametrize(("items", "seconds"), [(20_000, 4), (150_000, 30), (10_000_000, 60)])
def test_the_larger_the_project_the_longer_but_a_minute_at_most(
    items: int, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    monkeypatch.setattr(
        project_counts.process_cache, "set", lambda name, value, timeout: told.append(timeout)
    )
    looks(project_of(items), 1)
    assert told == [project_counts.MAX_CACHE_SECONDS, seconds]


def test_how_large_a_project_is_is_asked_once_for_many_looks() -> None:
    project = project_of(5)
    with CaptureQueriesContext(connection) as captured:
        looks(project, 20)
    assert len(captured) == 1
