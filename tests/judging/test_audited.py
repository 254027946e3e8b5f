"""What audits say of explanations, counted by run and verdict."""

import pytest
from pytest_django import DjangoAssertNumQueries

from annotation import tasktypes
from annotation.models import Account, Item, Project
from annotation.tasktypes import versions
from judging.models import Run
from judging.results import explanation_audits
from judging.results.tables import audits
from tests.builders import make_member, make_project
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
    with django_assert_num_queries(2):  # the audits, and their explanations
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


def test_who_leads_other_projects_says_nothing_about_the_runs_of_this_one(run: Run) -> None:
    audit = make_audit(run, (True, "correct"))
    stranger = make_member(audit, role="lead")
    outcomes = run.outcomes.all()
    for audited in (audits.tabulate, audits.tabulate_classes):
        assert list(audited(run.project, [run])) == []
    assert not explanation_audits.filter_outcomes(outcomes, "right").exists()
    assert stranger.account
    # Once that person leads this project as well, or is a site admin, it counts.
    own = make_member(run.project, role="lead", account=stranger.account)
    assert len(audits.tabulate(run.project, [run])) == 1
    own.active = False
    own.save()
    assert audits.tabulate(run.project, [run]) == []
    Account.objects.filter(pk=stranger.account.pk).update(is_superuser=True)
    assert len(audits.tabulate(run.project, [run])) == 1


def test_an_audit_whose_task_type_was_adapted_counts_still(run: Run) -> None:
    audit = make_audit(run, (True, "correct"))
    source = tasktypes.load_sources()["explanation-audit"].replace('"Correct"', '"All right"')
    lead = make_member(audit, role="lead", account=make_member(run.project, role="lead").account)
    adapted = versions.parse_source(audit, source)
    assert versions.save_version(audit, adapted, member=lead, shown=audit.task_type_id)
    assert audits.tabulate(run.project, [run])[0]["correct"] == 1


def test_deleted_explanations_are_no_part(run: Run) -> None:
    audit = make_audit(run, (True, "correct"), (True, "wrong"))
    first = audit.items.order_by("position").first()
    assert first
    audit.items.filter(pk=first.pk).update(deleted_at=run.created_at)
    [row] = audits.tabulate(run.project, [run])
    assert (row["total"], row["correct"], row["wrong"]) == (1, 0, 1)


def test_explanations_of_outcomes_that_figures_leave_out_are_no_part(project: Project) -> None:
    items = make_items(project, 4)
    run = make_replied(project, "vanilla", [(item, scores(9, 5)) for item in items])
    audit = make_audit(run, *[(True, "correct")] * 4)
    assert audits.tabulate(project, [run])[0]["total"] == 4
    Item.objects.filter(pk=items[0].pk).update(deleted_at=run.created_at)
    Item.objects.filter(pk=items[1].pk).update(purpose="probe")
    items[2].resolutions.update(value="score-invariant")
    assert audits.tabulate(project, [run])[0]["total"] == 1
    assert {row["n"] for row in audits.tabulate_classes(project, [run])} == {1}
    assert explanation_audits.filter_outcomes(run.outcomes.all(), "right").count() == 1
    audit.items.filter(fields__item=items[3].key).update(purpose="probe")
    assert audits.tabulate(project, [run]) == []


def test_classes_of_explanations_are_shares_of_all_that_are_judged(run: Run) -> None:
    make_audit(
        run, (True, "correct"), (True, "none"), (True, ""), (False, "wrong"), (False, "none")
    )
    rows = list(audits.tabulate_classes(run.project, [run]))
    assert {(row["total"], row["missing"], row["n"]) for row in rows} == {(5, 1, 4)}
    # The classes of the study, those without an item too; sorted as there.
    assert [(row["verdict"], row["quality"], row["count"], row["rate"]) for row in rows] == [
        ("right", "correct", 1, 0.25), ("right", "insufficient", 0, 0), ("right", "wrong", 0, 0),
        ("right", "none", 1, 0.25), ("wrong", "none", 1, 0.25), ("wrong", "insufficient", 0, 0),
        ("wrong", "wrong", 1, 0.25),
    ]  # fmt: skip
    # Wilson of 1 of 4: (1 + 1.92) / (4 + 3.84) -/+ 1.96 / 7.84 x root of (1 x 3 / 4 + .96) is
    # .3725 -/+ .3269.
    assert (rows[0]["low"], rows[0]["high"]) == pytest.approx((0.0456, 0.6994), abs=1e-4)


def test_a_correct_explanation_of_a_wrong_verdict_has_a_row_where_there_is_one(run: Run) -> None:
    make_audit(run, (True, "correct"), (False, "correct"))
    *_, last = audits.tabulate_classes(run.project, [run])
    assert (last["verdict"], last["quality"], last["rate"]) == ("wrong", "correct", 0.5)


def test_an_item_with_several_explanations_has_a_share_of_each_class(run: Run) -> None:
    audit = make_audit(run, (True, "correct"), (False, "wrong"), (True, "correct"), (True, ""))
    first = audit.items.order_by("position").first()
    assert first
    for item in audit.items.order_by("position")[1:4]:
        item.fields |= {"item": first.fields["item"], "sample": 2}
        item.save()
    rows = list(audits.tabulate_classes(run.project, [run]))
    found = {(row["verdict"], row["quality"]): row["count"] for row in rows}
    # Three of the four explanations of the item are judged.
    assert (rows[0]["total"], rows[0]["missing"], rows[0]["n"]) == (1, 0, 1)
    assert found["right", "correct"] == pytest.approx(2 / 3)
    assert found["wrong", "wrong"] == pytest.approx(1 / 3)
    assert (rows[0]["low"], rows[0]["reason"]) == (None, "one cluster")


def test_classes_of_runs_without_audits_are_none(run: Run) -> None:
    assert list(audits.tabulate_classes(run.project, [run])) == []
    make_audit(run, (True, ""))
    rows = list(audits.tabulate_classes(run.project, [run]))
    assert {(row["missing"], row["n"], row["rate"], row["reason"]) for row in rows} == {
        (1, 0, None, "no items")
    }
