"""Detection and penalties by dose and by what people expect, against figures made by hand."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Label, Project
from judging.models import Run
from judging.results import counted, expected_effect
from judging.results.tables import doses
from tests.annotation.test_agreement import make_label
from tests.builders import make_member, make_project
from tests.judging.builders_decided import make_replied, scores, verdicts
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

CUT = scores(9, None)


def by(name: str, rows: Sequence[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    return {row[name]: row for row in rows}


def keys(browser: Client, narrowed: str) -> list[str]:
    page = browser.get(f"/projects/fbi/runs/1/?{narrowed}&counted=yes").content.decode()
    return re.findall(r'/items/(item-\d+)/[?"]', page)


def say(items: Sequence[Item], *said: str) -> None:
    """Each of so many people says of every item how much should be taken off."""
    for number, effect in enumerate(said):
        alias = f"person-{items[0].position}-{number}"
        person = make_member(items[0].project, alias=alias)
        for item in items:
            make_label(item, person, {"choice": "valid", "effect": effect})


@pytest.fixture
def ladder(project: Project) -> list[Item]:
    """Twelve items with one error and twelve with four, two a question; three without a dose."""
    single, many = make_items(project, 12, dose=1), make_items(project, 12, fields={"dose": "4"})
    for one, four in zip(single, many, strict=True):
        Item.objects.filter(pk=four.pk).update(cluster=one.cluster)
        four.cluster = one.cluster
    return [*single, *many, *make_items(project, 2), *make_items(project, 1, fields={"dose": "x"})]


@pytest.fixture
def run(project: Project, ladder: list[Item]) -> Run:
    """One error costs 1 in half of the items, four cost 4 in all but one that is cut."""
    said = [*[scores(9, 8), scores(9, 9)] * 6, *[scores(9, 5)] * 11, CUT, *[scores(9, 1)] * 3]
    return make_replied(project, "vanilla", zip(ladder, said, strict=True))


def test_each_dose_has_a_detection_rate_and_a_mean_penalty(run: Run) -> None:
    found = by("dose", doses.tabulate_doses([run], []))
    # What has no dose is on no rung.
    assert list(found) == [1, 4]
    one, four = found[1], found[4]
    assert (one["total"], one["missing"], one["parsed"], one["detected"]) == (12, 0, 12, 6)
    assert (one["detection"], one["penalty"], one["scored"]) == (0.5, 0.5, 12)
    assert (four["total"], four["missing"], four["clusters"]) == (12, 1, 11)
    assert (four["detection"], four["penalty"], four["scored"]) == (1, 4, 11)
    assert (one["bottom"], one["at_top"]) == (1, 10)


def test_rates_have_wilson_s_interval_and_penalties_that_of_the_bootstrap(run: Run) -> None:
    one = by("dose", doses.tabulate_doses([run], []))[1]
    # Wilson for 6 of 12: (.5 + 1.92 / 12 +- 1.96 sqrt(.25 / 12 + .96 / 144)) / (1 + 3.84 / 12).
    assert one["detection_low"] == pytest.approx(0.254, abs=1e-3)
    assert one["detection_high"] == pytest.approx(0.746, abs=1e-3)
    # About .5 +- 2.20 sqrt(.25 / 11).
    assert one["penalty_low"] == pytest.approx(0.168, abs=0.06)
    assert one["penalty_high"] == pytest.approx(0.832, abs=0.06)
    assert one["detection_reason"] is None
    assert one["penalty_reason"] == "rough: under 20 clusters"


def test_doses_over_few_questions_have_no_interval_of_a_mean(project: Project) -> None:
    items = make_items(project, 3, dose=2)
    run = make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items])
    [row] = doses.tabulate_doses([run], [])
    assert (row["penalty"], row["penalty_low"], row["penalty_reason"]) == (
        4, None, "under 10 clusters",
    )  # fmt: skip


def test_doses_are_grouped_by_fields_of_outcomes(project: Project) -> None:
    items = [
        *make_items(project, 2, dose=2),
        *make_items(project, 1, dose=2, category="spelling", ability="long-form"),
        *make_items(project, 1, dose=1),
    ]
    run = make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items])
    rows = doses.tabulate_doses([run], ["ability", "category"])
    assert [(row["category"], row["dose"], row["total"]) for row in rows] == [
        ("spelling", 2, 1), ("number-errors", 1, 1), ("number-errors", 2, 2),
    ]  # fmt: skip
    with pytest.raises(counted.UnknownField):
        doses.tabulate_doses([run], ["dose"])


def test_score_invariant_items_are_on_no_rung(project: Project) -> None:
    items = [*make_items(project, 1, dose=1), *make_items(project, 1, "score-invariant", dose=1)]
    run = make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items])
    [row] = doses.tabulate_doses([run], [])
    assert row["total"] == 1


def test_where_gold_is_not_scored_apart_there_is_no_penalty_but_a_reason(project: Project) -> None:
    items = make_items(project, 2, dose=1)
    pair = make_replied(project, "pairwise", [(item, verdicts("G")) for item in items])
    reference = make_replied(project, "reference", [(item, scores(7)) for item in items])
    found = doses.tabulate_doses([pair, reference], [])
    assert [row["run"] for row in found] == [pair.number, reference.number]
    for row in found:
        assert (row["detection"], row["penalty"], row["scored"], row["at_top"]) == (
            1,
            None,
            0,
            None,
        )
        assert row["penalty_reason"] == doses.NOT_SCORED_APART_REASON


def test_a_dose_of_which_nothing_is_parsed_says_so(project: Project) -> None:
    run = make_replied(project, "vanilla", [(make_items(project, 1, dose=1)[0], CUT)])
    [row] = doses.tabulate_doses([run], [])
    assert (row["total"], row["missing"], row["clusters"], row["detected"]) == (1, 1, 0, 0)
    assert (row["detection_reason"], row["penalty_reason"]) == ("no items", "no items")


def test_an_item_that_was_asked_repeatedly_has_its_mean_penalty(project: Project) -> None:
    [item] = make_items(project, 1, dose=1)
    run = make_replied(project, "vanilla", [(item, scores(9, 5, 9, 9))], samples=2)
    [row] = doses.tabulate_doses([run], [])
    assert (row["detected"], row["detection"], row["penalty"]) == (0.5, 0.5, 2)


@pytest.mark.parametrize(
    ("dose", "found"),
    [("1", range(1, 13)), ("4", range(13, 25)), ("2", []), ("1.5", []), ("99999", [])],
)
def test_items_are_found_by_their_dose(
    run: Run, browser: Client, dose: str, found: Sequence[int]
) -> None:
    assert keys(browser, f"dose={dose}") == [f"item-{n}" for n in found]


def test_any_number_of_runs_are_one_query(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_replied(run.project, "pairwise", [])
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(1):
        doses.tabulate_doses(runs, [])


# --- the trend ----------------------------------------------------------------------------------


def test_the_trend_is_the_slope_over_all_doses(run: Run) -> None:
    [row] = doses.tabulate_dose_trends([run], [])
    assert (row["total"], row["missing"], row["parsed"], row["scored"]) == (24, 1, 23, 23)
    assert (row["clusters"], row["doses"]) == (12, 2)
    # Detection is .5 with one error and 1 with four; the penalty .5 and 4.
    assert row["detection"] == pytest.approx(0.5 / 3)
    assert row["penalty"] == pytest.approx(3.5 / 3)
    assert row["detection_low"] < 0.5 / 3 < row["detection_high"]
    assert row["detection_p"] < 0.05
    assert (row["detection_reason"], row["penalty_reason"]) == ("rough: under 20 clusters",) * 2


def test_the_trend_is_of_each_group_and_says_why_there_is_none(project: Project) -> None:
    items = [
        *make_items(project, 2, dose=1),
        *make_items(project, 1, dose=2, category="spelling", ability="long-form"),
        *make_items(project, 2, dose=4),
        *make_items(project, 1, "score-invariant", dose=8),
        *make_items(project, 1),
    ]
    said = [scores(9, 9 - (item.dose or 0)) for item in items]
    apart = make_replied(project, "vanilla", zip(items, said, strict=True))
    rows = doses.tabulate_dose_trends([apart], ["category"])
    assert [(row["category"], row["total"], row["doses"]) for row in rows] == [
        ("spelling", 1, 1), ("number-errors", 4, 2),
    ]  # fmt: skip
    assert [(row["detection"], row["detection_reason"]) for row in rows] == [
        (None, "one dose"), (0, "all values are the same"),
    ]  # fmt: skip
    assert [(row["penalty"], row["penalty_reason"]) for row in rows] == [
        (None, "one dose"), (pytest.approx(1), "under 10 clusters"),
    ]  # fmt: skip
    with pytest.raises(counted.UnknownField):
        doses.tabulate_dose_trends([apart], ["dose"])


def test_where_gold_is_not_scored_apart_the_penalty_has_no_trend(project: Project) -> None:
    items = [*make_items(project, 1, dose=1), *make_items(project, 1, dose=2)]
    pair = make_replied(project, "pairwise", [(item, verdicts("G")) for item in items])
    [row] = doses.tabulate_dose_trends([pair], [])
    assert (row["penalty"], row["scored"]) == (None, 0)
    assert row["penalty_reason"] == doses.NOT_SCORED_APART_REASON


# --- what people expect -------------------------------------------------------------------------


@pytest.fixture
def expected(project: Project) -> Run:
    """Of two items a lot is expected, of two a little, of one people disagree, of one nobody said
    anything; two are score-invariant."""
    items = [*make_items(project, 6), *make_items(project, 2, "score-invariant")]
    say(items[:2], "lot")
    say(items[2:4], "little", "little", "none")
    say(items[4:5], "none", "lot")
    given = [(9, 1), (9, 5), (9, 8), (9, 9), (9, 7), (9, 8), (9, 9), (9, 8)]
    return make_replied(
        project, "vanilla", zip(items, [scores(*one) for one in given], strict=True)
    )


def test_given_penalties_stand_by_what_people_expect(project: Project, expected: Run) -> None:
    rows = doses.tabulate_penalties(project, [expected], [])
    assert [(row["expected"], row["parsed"], row["detection"], row["penalty"]) for row in rows] == [
        ("score-invariant", 2, 0.5, 0.5),
        ("little", 2, 0.5, 0.5),
        ("lot", 2, 1, 6),
        (expected_effect.DISAGREE, 1, 1, 2),
        (expected_effect.UNANSWERED, 1, 1, 1),
    ]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("lot", [1, 2]),
        ("little", [3, 4]),
        (expected_effect.DISAGREE, [5]),
        (expected_effect.UNANSWERED, [6]),
    ],
)
def test_items_are_found_by_what_people_expect(
    expected: Run, browser: Client, said: str, found: Sequence[int]
) -> None:
    assert keys(browser, f"expected={said}&items=errors") == [f"item-{n}" for n in found]


def test_only_counted_work_labels_say_what_is_expected(project: Project) -> None:
    [item] = make_items(project, 1)
    ann, bob = (make_member(project, alias=name) for name in ("ann", "bob"))
    make_label(item, ann, {"choice": "valid", "effect": "lot"}, counted=False)
    make_label(item, ann, {"choice": "valid", "effect": "lot"}, stage="verify")
    make_label(item, bob, {"choice": "valid"})
    assert expected_effect.load_expected_effects(project) == {}


def test_what_an_earlier_task_offered_comes_last(project: Project, expected: Run) -> None:
    lot = Label.objects.filter(item__key="item-1")
    lot.update(answers={"choice": "valid", "effect": "everything"})
    rows = doses.tabulate_penalties(project, [expected], [])
    assert [row["expected"] for row in rows][-1] == "everything"


def test_a_task_without_the_question_expects_nothing_in_particular() -> None:
    project = make_project("other", task_type="error-detection")
    run = make_replied(project, "vanilla", [(make_items(project, 1)[0], scores(9, 5))])
    [row] = doses.tabulate_penalties(project, [run], [])
    assert row["expected"] == expected_effect.UNANSWERED


def test_two_queries_tell_what_was_expected_and_given(
    project: Project, expected: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(2):
        doses.tabulate_penalties(project, runs, [])


# --- from the import ----------------------------------------------------------------------------


def test_doses_come_with_the_import_as_the_documents_have_it(
    project: Project, tmp_path: Path
) -> None:
    document = (settings.BASE_DIR / "docs/doses.md").read_text(encoding="utf-8")
    ladder = tmp_path / "ladder.csv"
    ladder.write_text(document.split("```csv\n")[1].split("```")[0], encoding="utf-8")
    call_command("import_items", ladder, project="fbi", format="csv", accept=True)
    items = list(Item.objects.in_project(project).order_by("position"))
    said = [scores(9, 8), scores(9, 5)]
    run = make_replied(project, "vanilla", zip(items, said, strict=True))
    found = doses.tabulate_doses([run], [])
    assert [(row["dose"], row["penalty"]) for row in found] == [(1, 1), (2, 4)]
    # Both are of one question.
    assert len({item.cluster for item in items}) == 1
