"""The items that people and evaluators rated, as a file and as a page of a few of them."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client

from annotation.models import Item, Membership, Project, Resolution
from judging.results.tables import rated_items
from judging.results.views import pages
from tests.builders import make_account
from tests.judging.builders_rated import runs_of
from tests.judging.test_people_page import make_rated

pytestmark = pytest.mark.django_db

# What the items of a pair share.
SHARED = ("run", "task", "metric", "people", "evaluator", "off_scale", "decided", "cause")


@pytest.fixture
def rated(tmp_path: Path) -> Project:
    return make_rated(tmp_path, "p", dozens=3)


def pair_items(project: Project, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that the page is made of, from those of the table `points`."""
    positions = dict(Item.objects.in_project(project).values_list("key", "position"))
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in points:
        key = tuple(row.get(name) for name in SHARED)
        pair = found.setdefault(key, {**row, "n": 0, "first": []})
        pair["n"] += 1
        mean = "nan" if row["mean"] is None else f"{row['mean']:.15g}"
        pair["first"].append((positions[row["item"]], f"{row['raters']}:{mean}"))
    written = [
        [f"{position}:{rest}" for position, rest in sorted(row["first"])] for row in found.values()
    ]
    return [
        {**row, "first": " ".join(lines)}
        for row, lines in zip(found.values(), written, strict=True)
    ]


def made(project: Project) -> list[dict[str, Any]]:
    return list(rated_items.tabulate_pairs_of_items(project, runs_of(project), ["task"]))


def shown(project: Project, query: str) -> tuple[list[tuple[str, ...]], str]:
    """The lines of the page, run, item and numbers of each, and its words."""
    asked = pages.parse_query(Membership(project=project), "people", QueryDict(query))
    content = asked.view.build(asked, pages.filter_tables(asked, [made(project)]))
    lines = [line for block in content.grid.blocks for line in block.lines]
    names = [one.title for one in content.grid.columns]
    kept = [names.index(name) for name in ("Run", "Item", "Metric", "People", "Evaluator")]
    return [tuple(line.cells[place].text for place in kept) for line in lines], content.words


def test_the_pairs_have_the_items_that_the_file_has(rated: Project) -> None:
    points = list(rated_items.tabulate_points(rated, runs_of(rated), ["task"]))
    names = (*SHARED, "n", "first")
    expected = [[row.get(name) for name in names] for row in pair_items(rated, points)]
    found = [[row[name] for name in names] for row in made(rated)]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert sum(row["n"] for row in made(rated)) == len(points) > len(found) > 20


def test_without_a_rated_item_there_are_no_pairs(rated: Project) -> None:
    Resolution.objects.of_project(rated).delete()
    assert made(rated) == []


def test_the_largest_differences_of_all_runs_come_first(
    rated: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "view=items&by=task&metric=relatedness"
    every, words = shown(rated, query)
    assert "Shown are" not in words
    assert len(every) > 40
    monkeypatch.setattr(rated_items, "MOST_LINES", 15)
    some, words = shown(rated, query)
    assert some == every[:15]
    assert f"Shown are 15 of {len(every)} lines." in words


def test_few_stored_items_are_those_with_the_largest_differences(
    rated: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = sum(row["n"] for row in made(rated))
    pairs = len(made(rated))
    monkeypatch.setattr(rated_items, "MOST_STORED", 1)
    assert {len(row["first"].split()) for row in made(rated)} == {1}
    monkeypatch.setattr(rated_items, "MOST_PAIRS", 0)
    monkeypatch.setattr(rated_items, "MOST_LINES", 2)
    fewer = made(rated)
    kept = [row for row in fewer if row["first"]]
    assert len(kept) < pairs
    assert sum(row["n"] for row in fewer) == total
    of_part: dict[tuple[Any, ...], list[float]] = {}
    for row in kept:
        apart = -1 if row["evaluator"] is None else abs(row["evaluator"] - row["people"])
        of_part.setdefault((row["run"], row["task"], row["metric"]), []).append(apart)
    assert all(len(one) <= 2 and one == sorted(one, reverse=True) for one in of_part.values())
    assert all(row["people"] is None for row in fewer if not row["first"])
    _, words = shown(rated, "view=items&by=task")
    assert f"Shown are 2 of {total} lines." in words


def test_a_page_of_items_names_the_file_of_all(rated: Project, client: Client) -> None:
    client.force_login(make_account("admin", is_superuser=True))
    page = client.get("/projects/p/results/people/?view=items&by=task").content.decode()
    assert set(re.findall(r"results/([a-z_]+)\.json", page)) == {"points"}
    assert "pairs_of_items" not in page
