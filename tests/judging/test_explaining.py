"""What explanations add to scores, against counts that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project
from judging.models import Run
from judging.results.tables import explanations
from tests.judging.builders_decided import CUT, make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

BY = ("ability", "category")
FOUND, NOTHING = ('{"flag": true}',), ('{"flag": false}',)


@pytest.fixture
def items(project: Project) -> list[Item]:
    return make_items(project, 8)


@pytest.fixture
def base(project: Project, items: list[Item]) -> Run:
    """Two detected, four equal, one higher, one missing."""
    said = [(9, 5), (9, 5), (9, 9), (9, 9), (9, 9), (9, 9), (8, 9), (9, None)]
    return make_replied(project, "vanilla", zip(items, [scores(*s) for s in said], strict=True))


def check(base: Run, items: list[Item], *said: tuple[str, ...], of: str = "") -> Run:
    return make_replied(
        base.project,
        f"explanation-check{of}",
        zip(items, said, strict=True),
        sources=[base],
        base=base,
    )


def test_what_is_found_in_words_alone_is_taken_off_the_undetected(
    base: Run, items: list[Item]
) -> None:
    check(base, items[2:6], FOUND, FOUND, NOTHING, (CUT,))
    (row,) = explanations.tabulate([base], BY)
    assert (row["total"], row["missing"], row["parsed"]) == (8, 1, 7)
    assert (row["detected"], row["equal"], row["found"], row["unnoticed"]) == (2, 4, 2, 3)
    assert (row["checked"], row["unparsed"]) == (4, 1)
    assert (row["rate_after"], row["found_rate"]) == (3 / 7, 1 / 2)
    assert row["low"] < 3 / 7 < row["high"]
    assert row["false_credit"] is row["gold_checked"] is None
    assert row["rate_corrected"] is None
    assert row["rate_corrected_reason"] == "no check of gold answers"


def test_errors_found_in_gold_answers_are_false_credit(base: Run, items: list[Item]) -> None:
    check(base, items[2:6], FOUND, FOUND, NOTHING, NOTHING)
    check(base, items[2:6], FOUND, NOTHING, NOTHING, (CUT,), of="-gold")
    (row,) = explanations.tabulate([base], BY)
    # Half of four are named, but a third would be without an error: (1/2 - 1/3) / (2/3) = 1/4.
    assert (row["rate_after"], row["equal"]) == (3 / 7, 4)
    assert row["rate_corrected"] == pytest.approx((5 - 4 / 4) / 7)
    assert row["rate_corrected_low"] < row["rate_corrected"] < row["rate_corrected_high"]
    assert (row["gold_checked"], row["false_credit"]) == (3, pytest.approx(1 / 3))
    assert (row["check"], row["gold_check"]) == (2, 3)


def test_the_last_check_counts(base: Run, items: list[Item]) -> None:
    check(base, items[2:6], FOUND, FOUND, FOUND, FOUND)
    check(base, items[2:6], NOTHING, NOTHING, NOTHING, FOUND)
    (row,) = explanations.tabulate([base], BY)
    assert (row["check"], row["found"]) == (3, 1)


def test_a_check_of_a_part_gives_no_rate(base: Run, items: list[Item]) -> None:
    check(base, items[2:4], FOUND, NOTHING)
    (row,) = explanations.tabulate([base], BY)
    assert (row["found"], row["rate_after"], row["found_rate"]) == (1, None, None)
    assert row["reason"] == row["rate_corrected_reason"] == "2 of 4 checked"


def test_a_run_that_nobody_checked_has_no_row(base: Run) -> None:
    assert explanations.tabulate([base], BY) == []


def test_any_number_of_runs_are_three_queries(
    base: Run, items: list[Item], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    check(base, items[2:6], FOUND, FOUND, NOTHING, (CUT,))
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(3):
        explanations.tabulate(runs, BY)
