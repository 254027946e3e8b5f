"""The board of making: what came of the items that were made here."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.generation import generated_items
from annotation.models import Item, Project
from annotation.reports import generation_board as board
from annotation.reports.generation_board import GenerationCounts, GenerationRow
from tests.builders import (
    make_item,
    make_member,
    make_project,
    make_resolution,
    make_slot,
    say,
    take,
)

pytestmark = pytest.mark.django_db

V1, V2 = {"generator": "generate-number-errors v1"}, {"generator": "generate-number-errors v2"}


@pytest.fixture
def project() -> Project:
    return make_project("fbi")


def generated(project: Project, number: int, **values: Any) -> list[Item]:
    values = {"origin": "generated", "fields": V1, "slots": 0, **values}
    return [make_item(project, **values) for _ in range(number)]


def only(project: Project) -> GenerationRow:
    [row] = board.measure_generation(project)
    return row


def counts(made: GenerationCounts) -> tuple[int, ...]:
    return made.items, made.waiting, made.with_people, made.held, made.turned_down, made.unseen


def test_every_made_item_waits_is_with_people_or_is_resolved(project: Project) -> None:
    waiting, placed, held, down, unseen = generated(project, 5)
    make_item(project, "imported")
    for item in (placed, held, down):
        make_slot(item)
    make_resolution(held, "valid", source="labels")
    make_resolution(down, "invalid", source="labels")
    make_resolution(unseen, "valid", rule=generated_items.ACCEPTED_UNREVIEWED)
    row = only(project)
    assert counts(row.whole) == (5, 1, 1, 1, 1, 1)
    assert (row.category, row.title, row.meant) == ("number-errors", "Number errors", "Valid")
    assert list(generated_items.waiting_items(project)) == [waiting]


def test_the_share_is_of_those_that_people_looked_at(project: Project) -> None:
    items = generated(project, 5)
    for item in items[:2]:
        make_resolution(item, "valid", source="labels")
    make_resolution(items[2], "invalid", source="labels")
    for item in items[3:]:
        make_resolution(item, "valid", rule=generated_items.ACCEPTED_UNREVIEWED)
    share = only(project).whole.share
    assert (share.value, share.n) == (2 / 3, 3)
    assert share.low is not None
    assert share.low < 2 / 3


def test_versions_of_an_instruction_stand_beside_each_other(project: Project) -> None:
    for item in generated(project, 4):
        make_resolution(item, "invalid", source="labels")
    for item in generated(project, 2, fields=V2):
        make_resolution(item, "valid", source="labels")
    first, second = only(project).parts
    assert (first.maker, first.share.value) == ("generate-number-errors v1", 0)
    assert (second.maker, second.share.value) == ("generate-number-errors v2", 1)


def test_what_should_cost_nothing_is_meant_to_be_score_invariant(project: Project) -> None:
    [item] = generated(project, 1, category="score-invariant", ability="score-invariant")
    make_resolution(item, "score-invariant", source="labels")
    row = only(project)
    assert (row.meant, row.whole.held) == ("Score-invariant", 1)


def test_categories_stand_in_the_order_of_the_taxonomy_and_perturbers_among_them(
    project: Project,
) -> None:
    generated(project, 1)
    generated(project, 1, category="spelling", origin="perturber", fields={"perturber": "spelling"})
    assert [(row.category, row.parts[0].maker) for row in board.measure_generation(project)] == [
        ("spelling", "spelling"),
        ("number-errors", "generate-number-errors v1"),
    ]


def test_flags_are_counted_and_how_many_of_those_that_wait_have_one(project: Project) -> None:
    generated(project, 2, flags=["claim", "bound"])
    [resolved] = generated(project, 1, flags=["claim"])
    make_resolution(resolved, "valid")
    generated(project, 1)
    row = only(project)
    assert row.flags == (
        ("claim", "Does not match the category", 3),
        ("bound", "Too many changes", 2),
    )
    assert (row.whole.waiting, row.whole.aside) == (3, 2)


def test_reasons_against_are_those_of_made_items_alone(project: Project) -> None:
    member = make_member(project)
    make_item(project, "imported")
    say(member, take(member), "not-sure")
    generated(project, 1)
    generated_items.release_waiting(project)
    say(member, take(member), "invalid")
    assert only(project).reasons == (("Invalid", 1),)


def test_prompts_whose_gold_answers_were_made_are_a_row_of_their_own() -> None:
    prompts = make_project("prompts", task_type="gold-verification")
    told = {"gold_generator": "generate-gold v1"}
    right, _ = generated(prompts, 2, category="", origin="", fields=told)
    make_item(prompts, category="", slots=0)
    make_resolution(right, "right", source="labels")
    row = only(prompts)
    assert (row.title, row.meant, row.whole.items, row.whole.held) == ("All", "Right", 2, 1)
    assert row.parts[0].maker == "generate-gold v1"


def test_where_nothing_was_made_there_is_no_board(project: Project) -> None:
    make_item(project)
    assert board.measure_generation(project) == []


def test_the_board_costs_the_same_however_much_was_made(
    project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for slug in ("number-errors", "spelling", "entity"):
        for item in generated(project, 5, category=slug):
            make_resolution(item, "invalid")
    with django_assert_max_num_queries(8):
        board.measure_generation(project)
