"""Runs against each other, against counts and tests that were made by hand."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Item, Project
from judging.models import Run
from judging.results.tables import compare
from tests.judging.builders_decided import make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db

SAID = {"D": scores(9, 5), "U": scores(9, 9), "-": scores(9, None)}


def make_said(project: Project, items: list[Item], said: str) -> Run:
    return make_replied(project, "vanilla", zip(items, (SAID[one] for one in said), strict=True))


def test_two_runs_differ_over_the_items_that_both_parsed(project: Project) -> None:
    items = make_items(project, 13)
    calm = make_items(project, 2, "score-invariant")
    a = make_said(project, [*items, *calm], "DDDDDDDDUU-DDDD")
    b = make_said(project, [*items, *calm], "UUUUUUUDDUDD-UU")
    row, by_ability = compare.compare([a, b])
    assert (row["run_a"], row["run_b"], row["ability"]) == (1, 2, None)
    # Of ten items both parsed seven only a detects, one only b, one both and one neither; one is
    # missing in a, both detect the next, and one is missing in b.
    assert (row["total"], row["missing"], row["n"]) == (13, 2, 11)
    assert (row["only_a"], row["only_b"], row["difference"]) == (7, 1, 6 / 11)
    # Exact McNemar: 2 x (1 + 8) / 2^8
    assert row["p"] == row["p_holm"] == pytest.approx(18 / 256)
    assert row["low"] < 6 / 11 < row["high"]
    # Student's quantiles of 10 degrees of freedom: 2.228139 at 0.975, 0.879058 at 0.8.
    assert row["shows"] == pytest.approx((2.228139 + 0.879058) * row["standard_error"])
    assert (row["letters_a"], row["letters_b"]) == ("a", "a")
    # Among three pairs: 2.870 at 1 - 0.05 / 6.
    among_three = compare.compare([a, b, make_said(project, items, "D" * 13)])[0]
    assert among_three["shows"] == pytest.approx((2.870 + 0.879) * row["standard_error"], rel=1e-3)
    assert (by_ability["ability"], by_ability["p"]) == ("factual", row["p"])
    assert (by_ability["p_holm"], by_ability["q"]) == (None, row["p"])


def test_runs_that_differ_share_no_letter_and_p_is_adjusted_for_all_pairs(
    project: Project,
) -> None:
    items = make_items(project, 10)
    runs = [make_said(project, items, one * 10) for one in "DDU"]
    rows = compare.compare(runs)[:3]
    assert [(row["letters_a"], row["letters_b"]) for row in rows] == [
        ("a", "a"), ("a", "b"), ("a", "b"),
    ]  # fmt: skip
    # 2 / 2^10 for either pair that differs, three pairs.
    assert [row["p_holm"] for row in rows] == pytest.approx([1, 3 * 2 / 1024, 3 * 2 / 1024])


def test_p_is_exact_however_small_where_questions_have_several_items(project: Project) -> None:
    # Twenty questions of two items each.
    items = [one for n in range(20) for one in make_items(project, 2, cluster=f"question {n}")]
    a, b, c = (make_said(project, items, said * 20) for said in ("DD", "UU", "DU"))
    found = {(row["run_a"], row["run_b"]): row for row in compare.compare([a, b, c])[:3]}
    # Every question differs the same way: one pattern of signs of 2^20, and its mirror.
    for pair, row in found.items():
        assert (row["p"], row["test"]) == (pytest.approx(2**-19), "exact"), pair
        assert row["p_holm"] == pytest.approx(3 * 2**-19)


def test_items_of_one_cluster_flip_together(project: Project) -> None:
    items = make_items(project, 6, cluster="one") + make_items(project, 1)
    a, b = (make_said(project, items, said) for said in ("DDDDDDU", "UUUUUUU"))
    row, *_ = compare.compare([a, b])
    # One cluster differs, and could as well have differed the other way.
    assert row["p"] == 1


def test_items_that_repeat_another_one_are_compared_in_no_row(project: Project) -> None:
    (item,) = make_items(project, 1)
    items = [item, *make_items(project, 1, duplicate_of=item)]
    row, *_ = compare.compare([make_said(project, items, said) for said in ("DD", "DU")])
    assert (row["total"], row["difference"]) == (1, 0)


def test_runs_over_other_items_have_no_difference_but_a_reason(project: Project) -> None:
    one, other = make_items(project, 1), make_items(project, 1)
    row, *_ = compare.compare([make_said(project, one, "D"), make_said(project, other, "D")])
    assert (row["total"], row["n"], row["difference"], row["p"]) == (2, 0, None, None)
    assert row["reason"] == "no item that both parsed"


def test_one_run_alone_is_compared_with_nothing(project: Project) -> None:
    run = make_said(project, make_items(project, 1), "D")
    assert compare.compare([run]) == compare.compare([]) == []


def test_any_number_of_runs_are_one_query(
    project: Project, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    items = make_items(project, 3)
    for said in ("DDU", "UUD", "DUD"):
        make_said(project, items, said)
    runs = list(Run.objects.for_results())
    with django_assert_num_queries(1):
        compare.compare(runs)
