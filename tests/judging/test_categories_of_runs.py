"""Results of runs after the categories of their project changed."""

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.items import taxonomy
from annotation.labelling import bulk_changes
from annotation.models import Item, Membership, Role
from annotation.settings import categories
from judging.results.tables.left_out import tabulate_left_out
from tests.annotation.own_categories import with_own_categories
from tests.builders import browser_of, make_member, make_project
from tests.judging.builders_judging import make_items, make_judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> Membership:
    return make_member(with_own_categories(make_project("reviews")), Role.LEAD)


def judge(lead: Membership) -> None:
    items = make_items(lead.project, 4, category="rude", ability="tone")
    make_judged(lead.project, [(item, "detected") for item in items])


def rename(lead: Membership, name: str) -> None:
    project = lead.project
    values = {"name": name, "ability": "evidence"}
    changed, _ = categories.put(project.taxonomy.definition, "category", "rude", values)
    categories.save(project, changed, member=lead, shown=project.taxonomy_id, note="Renamed")


def shown(lead: Membership, query: str = "") -> str:
    address = reverse("results-page", args=[lead.project.slug, "by-category"])
    return browser_of(lead).get(address + query).content.decode()


def test_a_run_keeps_its_groups_and_has_the_names_and_words_of_today(lead: Membership) -> None:
    judge(lead)
    assert taxonomy.load_taxonomy(lead.project.runs.get()).category("rude").name == "Rude remark"
    rename(lead, "Unkind")
    changed = {**lead.project.taxonomy.definition, "group": "theme", "groups": "themes"}
    digest = lead.project.taxonomy_id
    categories.save(lead.project, changed, member=lead, shown=digest, note="Called them themes")
    page = shown(lead)
    assert "Rude remark" not in page
    assert "Tone of voice" in page
    assert "Unkind" in page
    assert "Theme and category" in page
    assert "The categories changed between these runs" not in page
    run = browser_of(lead).get(reverse("run", args=["reviews", 1])).content.decode()
    assert "they have changed since" in run


def test_runs_of_different_versions_are_told_apart(lead: Membership) -> None:
    judge(lead)
    rename(lead, "Unkind")
    judge(lead)
    page = shown(lead, "?run=1&run=2")
    assert "The categories changed between these runs" in page
    assert "Unkind" in page
    table = reverse("results-table", args=["reviews", "by-category"])
    printed = browser_of(lead).get(f"{table}?run=1&run=2").content.decode()
    assert "The categories changed between these runs" in printed


def test_items_that_were_moved_to_another_category_since_are_told(lead: Membership) -> None:
    judge(lead)
    project = lead.project
    words = "Moved to another category: "
    assert words not in shown(lead)
    moved = project.items.in_project(project).filter(key__in=["item-1", "item-2"])
    bulk_changes.change_items(lead, moved, "category", "made-up-citation", now=timezone.now())
    page = " ".join(shown(lead).split())
    assert f"{words}2 items after the start of run 1" in page
    table = reverse("results-table", args=[project.slug, "by-category"])
    assert f"{words}2 items after the start of run 1" in " ".join(
        browser_of(lead).get(table).content.decode().split()
    )
    [row] = tabulate_left_out(project.runs.for_results())
    assert (row["items"], row["other_revision"], row["regrouped"]) == (4, 0, 2)
    methods = browser_of(lead).get(reverse("results-methods", args=[project.slug]))
    assert "2 were moved to another category" in " ".join(methods.content.decode().split())


def test_a_category_that_costs_nothing_has_a_line_of_its_own(lead: Membership) -> None:
    """Two items of it, and one of another category that people labelled as score-invariant."""
    calm = make_items(
        lead.project, 2, "score-invariant", category="flattery", ability="tone",
        source_ability="tone",
    )  # fmt: skip
    relabelled = make_items(
        lead.project, 1, "score-invariant", category="rude", ability="tone", source_ability="tone"
    )
    run = make_judged(lead.project, [(item, "detected") for item in (*calm, *relabelled)])
    kept = run.outcomes.order_by("item__position").values_list("category", "ability", "invariant")
    assert list(kept) == [
        ("flattery", "score-invariant", True),
        ("flattery", "score-invariant", True),
        ("score-invariant", "score-invariant", True),
    ]
    page = " ".join(shown(lead).split())
    assert "Flattery" in page
    assert "of other categories" in page
    assert "made from Tone of voice" in page
    Item.objects.filter(category="flattery").update(category="rude")
    Item.objects.filter(pk=relabelled[0].pk).update(category="flattery")
    [row] = tabulate_left_out([run])
    assert row["regrouped"] == 3
    Item.objects.filter(pk=relabelled[0].pk).update(category="rude")
    [row] = tabulate_left_out([run])
    assert row["regrouped"] == 2  # as it is labelled, the third counts in no category of errors
