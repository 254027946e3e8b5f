"""What audits say of explanations, counted by run and verdict."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation.models import Project
from judging.models import Run
from judging.results.tables import audits
from tests.builders import make_project
from tests.judging.builders_decided import make_audit, make_replied, scores
from tests.judging.builders_judging import make_items

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    items = make_items(project, 1)
    return make_replied(project, "vanilla", [(items[0], scores(9, 5))])


def test_explanations_are_counted_by_verdict_and_worth(
    run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_audit(run, (True, "correct"), (True, "correct"), (True, ""), (False, "insufficient"))
    with django_assert_num_queries(1):
        right, wrong = audits.tabulate(run.project, [run])
    assert (right["verdict"], right["total"], right["missing"], right["correct"]) == (
        "right", 3, 1, 2,
    )  # fmt: skip
    assert (wrong["verdict"], wrong["total"], wrong["insufficient"]) == ("wrong", 1, 1)


def test_an_item_with_several_explanations_counts_once(run: Run) -> None:
    audit = make_audit(run, (True, "correct"), (False, "wrong"), (True, "correct"), (True, ""))
    first = audit.items.order_by("position").first()
    assert first
    # Three samples of one item: two right and one wrong; and another one.
    for item in audit.items.order_by("position")[1:3]:
        item.fields |= {"item": first.fields["item"], "sample": 2}
        item.save()
    right, wrong = audits.tabulate(run.project, [run])
    assert (wrong["total"], wrong["wrong"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert (right["total"], right["missing"]) == (pytest.approx(5 / 3), 1)
    assert right["correct"] == pytest.approx(2 / 3)
    assert right["total"] + wrong["total"] == pytest.approx(2)


def test_audits_of_other_runs_and_projects_are_no_part(run: Run) -> None:
    make_audit(run, (True, "correct"))
    [item] = make_items(make_project("other"), 1)
    other = make_replied(item.project, "vanilla", [(item, scores(9, 5))])
    assert (other.number, audits.tabulate(other.project, [other])) == (1, [])
    assert audits.tabulate(run.project, []) == []


def test_deleted_explanations_are_no_part(run: Run) -> None:
    audit = make_audit(run, (True, "correct"), (True, "wrong"))
    first = audit.items.order_by("position").first()
    assert first
    audit.items.filter(pk=first.pk).update(deleted_at=run.created_at)
    [row] = audits.tabulate(run.project, [run])
    assert (row["total"], row["correct"], row["wrong"]) == (1, 0, 1)
