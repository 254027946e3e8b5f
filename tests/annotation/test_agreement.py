"""Whose labels make the figures of agreement, what the figures are, and who sees them."""

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Count
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotation import tasktypes
from annotation.db.cache import process_cache
from annotation.importing import label_rows, labels
from annotation.labelling import answer_key, bulk_changes, control_items, queue
from annotation.models import (
    ApiToken,
    BulkChange,
    Item,
    Label,
    Mark,
    Membership,
    Project,
    Slot,
    Stage,
)
from annotation.reports import agreement, agreement_answers, category_board, grouping
from annotation.reports.agreement import Agreement, AgreementRow
from annotation.tasktypes import versions
from formats.rows import Row
from stats import bootstrap
from tests.builders import (
    TEXTS,
    Cast,
    cast,
    correct,
    make_item,
    make_known,
    make_member,
    make_project,
    make_resolution,
    make_revision,
    say,
    take,
)

pytestmark = pytest.mark.django_db

# Both valid 4 times, both invalid 3, valid and invalid twice, invalid and valid once.
TEN = [("valid", "valid")] * 4 + [("invalid", "invalid")] * 3
TEN += [("valid", "invalid")] * 2 + [("invalid", "valid")]
_numbers = count(101)  # beyond the slots that items come with


@pytest.fixture
def project() -> Project:
    return make_project("p", overlap=2)


def make_label(
    item: Item, member: Membership, answers: dict[str, Any] | str, **values: Any
) -> Label:
    """A counted label in a slot of its own, given now, at the work stage unless told."""
    number = next(_numbers)
    stage = values.setdefault("stage", Stage.LABEL)
    counted = values.setdefault("counted", True)
    if counted and values.get("current", True):
        values["slot"] = Slot.objects.create(
            project=item.project, item=item, stage=stage, number=number, position=item.position
        )
    else:
        values["counted"] = counted and values.get("slot") is not None
    answers = {"choice": answers} if isinstance(answers, str) else answers
    return Label.objects.create(
        project=item.project,
        item=item,
        revision=item.revision(),
        member=member,
        choice=str(next(iter(answers.values())))[:40],
        answers=answers,
        submission=f"s{number}",
        task_type=item.project.task_type,
        **values,
    )


def people_of(project: Project, *aliases: str) -> list[Membership]:
    return [make_member(project, alias=alias) for alias in aliases]


def give(
    project: Project, people: Sequence[Membership], rows: Sequence[Sequence[Any]], **values: Any
) -> list[Item]:
    """One item a row, labelled by each person who has an entry in it."""
    items = [make_item(project, **values) for _ in rows]
    for item, row in zip(items, rows, strict=True):
        for person, said in zip(people, row, strict=True):
            if said is not None:
                make_label(item, person, said)
    return items


def measured(project: Project, field: str = "choice", category: str = "") -> Agreement:
    question = next(one for one in agreement_answers.list_questions(project) if one.name == field)
    return agreement.measure_agreement(project, question, category)


def row(found: Agreement, measure: str, *people: str) -> AgreementRow:
    [one] = [r for r in found.rows if (r.measure, r.people) == (measure, people)]
    return one


# Figures


def test_figures_of_two_people_by_hand(project: Project) -> None:
    # 7 of 10 agree. By chance 6/10 x 5/10 + 4/10 x 5/10 = 1/2, kappa (0.7 - 0.5) / 0.5 = 0.4.
    # Fleiss and alpha take both together: 11 of 20 are valid, Pe = (11/20)^2 + (9/20)^2 = 0.505,
    # kappa (0.7 - 0.505) / 0.495 = 13/33; alpha = 1 - 19 x 6 / (2 x 11 x 9) = 14/33.
    # AC1: pi = 11/20, 9/20 of five choices: pe = 2 x 0.2475 / 4, (0.7 - 0.12375) / 0.87625.
    give(project, people_of(project, "ann", "ben"), TEN)
    found = measured(project)
    values = {name: row(found, name).value for name in ("percent", "cohen", "fleiss", "ac1")}
    assert values == pytest.approx(
        {"percent": 0.7, "cohen": 0.4, "fleiss": 13 / 33, "ac1": 0.57625 / 0.87625}
    )
    assert row(found, "alpha-nominal").value == pytest.approx(14 / 33)
    assert {r.n_items for r in found.rows_of(*agreement.MEASURES, people=0)} == {10}
    assert {r.n_raters for r in found.rows_of(*agreement.MEASURES, people=0)} == {2}
    assert row(found, "percent", "ann", "ben").value == 0.7
    assert row(found, "cohen", "ann", "ben").value == pytest.approx(0.4)
    assert [r.measure for r in found.rows_of(*agreement.MEASURES, people=0)] == [
        "percent", "cohen", "fleiss", "alpha-nominal", "ac1",
    ]  # fmt: skip


def test_figures_have_intervals_from_ten_clusters_on(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    items = give(project, people, TEN)
    alpha = row(measured(project), "alpha-nominal")
    assert alpha.low < alpha.value < alpha.high
    assert alpha.reason == "rough: under 20 clusters"
    items[0].cluster = items[1].cluster
    items[0].save()
    process_cache.clear()
    alpha = row(measured(project), "alpha-nominal")
    assert (alpha.low, alpha.high, alpha.reason) == (None, None, "under 10 clusters")
    assert row(measured(project), "percent").low is not None


def test_each_person_is_held_against_what_most_others_say(project: Project) -> None:
    # Ann, ben, cy; of the others of ann: valid + valid, valid + invalid (no majority), valid.
    rows = [("valid", "valid", "valid"), ("valid", "valid", "invalid"), ("invalid", "valid", None)]
    give(project, people_of(project, "ann", "ben", "cy"), rows)
    found = measured(project)
    rest = row(found, "against-rest", "ann")
    assert (rest.value, rest.n_items, rest.n_raters) == (0.5, 2, 3)
    assert row(found, "against-rest", "cy").value == 0.5


def test_who_said_what_where_another_did(project: Project) -> None:
    give(project, people_of(project, "ann", "ben"), TEN)
    found = measured(project)
    names = ("valid", "invalid", "score-invariant", "not-relevant", "not-sure")
    assert found.names == names
    assert [line[:2] for line in found.matrix("ann", "ben")[:2]] == [[4, 2], [1, 3]]
    assert [line[:2] for line in found.matrix("ben", "ann")[:2]] == [[4, 1], [2, 3]]
    assert sum(map(sum, found.matrix("ann", "ben"))) == 10


def test_an_answer_that_an_earlier_version_took_is_a_class_of_its_own(project: Project) -> None:
    give(project, people_of(project, "ann", "ben"), [("valid", "broken"), ("broken", "broken")])
    assert measured(project).names[-1] == "broken"
    assert row(measured(project), "percent").value == 0.5


def test_fleiss_takes_items_with_the_overlap_of_the_project(project: Project) -> None:
    rows = [("valid", "valid", "valid"), ("valid", "invalid", None), (None, "valid", "valid")]
    give(project, people_of(project, "ann", "ben", "cy"), rows)
    fleiss = row(measured(project), "fleiss")
    # Valid and invalid, valid and valid: P = 1/2, Pe = 9/16 + 1/16, (1/2 - 5/8) / (3/8) = -1/3.
    assert (fleiss.n_items, fleiss.n_raters) == (2, 2)
    assert fleiss.value == pytest.approx(-1 / 3)


def test_a_project_without_overlap_takes_the_number_of_labels_that_most_items_have() -> None:
    project = make_project("one", overlap=1)
    rows = [("valid", "valid", "valid"), ("valid", "invalid", "valid"), (None, "valid", "valid")]
    give(project, people_of(project, "ann", "ben", "cy"), rows)
    assert row(measured(project), "fleiss").n_raters == 3


# Scales and points


def test_a_scale_has_figures_with_and_without_order() -> None:
    # 11, 22, 33, 13, 21 of naturalness: kappa by hand in the tests of the measures.
    project = make_project("rated", task_type="rating", overlap=2)
    said = [({"naturalness": a}, {"naturalness": b}) for a, b in [(1, 1), (2, 2), (3, 3), (1, 3)]]
    said.append(({"naturalness": 2}, {"naturalness": 1}))
    give(project, people_of(project, "ann", "ben"), said)
    found = measured(project, "naturalness")
    assert row(found, "cohen-linear").value == pytest.approx(1 - 3 / (23 / 5))
    assert row(found, "cohen-quadratic").value == pytest.approx(1 - 5 / 7)
    assert row(found, "percent").value == pytest.approx(3 / 5)
    assert {r.measure for r in found.rows_of(*agreement.MEASURES, people=0)} == set(
        agreement.MEASURES
    ) - {*agreement.PASSAGE_MEASURES}
    assert measured(project, "relatedness").labels == 0


def test_answers_are_measured_on_the_scale_on_which_people_gave_them() -> None:
    project = make_project("rated", task_type="rating", overlap=2)
    said = [({"correctness": a}, {"correctness": b}) for a, b in [(1, 1), (2, 2), (3, 3), (1, 3)]]
    items = give(project, people_of(project, "ann", "ben"), said)
    before = measured(project, "correctness")
    source = versions.version_source(project.task_type).rstrip()
    further = (f'[[fields.choices]]\nvalue = {n}\ntitle = "{n}"' for n in (4, 5))
    adapted = versions.parse_source(project, "\n\n".join((source, *further)))
    lead = make_member(project, role="lead")
    assert versions.save_version(project, adapted, member=lead, shown=project.task_type_id)
    project.refresh_from_db()
    after = measured(project, "correctness")
    assert (after.rows, after.names) == (before.rows, ("1", "2", "3"))
    # Where it is not one scale, agreement by chance depends on the one that is taken.
    Label.objects.filter(item=items[0]).update(task_type=project.task_type)
    process_cache.clear()
    mixed = measured(project, "correctness")
    for name in ("ac1", "ac2"):
        assert (row(mixed, name).value, row(mixed, name).reason) == (None, agreement.SEVERAL_SCALES)
    assert row(mixed, "percent") == row(before, "percent")


def test_not_sure_is_a_class_without_order_and_missing_with_it() -> None:
    project = make_project("rated", task_type="rating", overlap=2)
    said = [({"naturalness": a}, {"naturalness": b}) for a, b in [(1, 1), ("not-sure", 2), (3, 2)]]
    give(project, people_of(project, "ann", "ben"), said)
    found = measured(project, "naturalness")
    assert (row(found, "percent").n_items, row(found, "alpha-ordinal").n_items) == (3, 2)
    assert row(found, "percent").value == pytest.approx(1 / 3)


def test_an_ordinal_choice_is_measured_by_the_order_of_its_options() -> None:
    question = agreement_answers.Question(
        "effect", "Effect", "ordinal", (("none", "None"), ("little", "A little"), ("lot", "A lot"))
    )
    said = [
        agreement_answers.PersonAnswers(1, "a", "ann", {"effect": "none"}),
        agreement_answers.PersonAnswers(1, "a", "ben", {"effect": "lot"}),
        agreement_answers.PersonAnswers(2, "b", "ann", {"effect": "not-sure"}),
    ]
    found = agreement_answers.build_matrix(question, said)
    assert found.ordered is not None
    assert found.ordered.codes.tolist() == [[0, 2], [-1, -1]]
    assert not found.has_numbers


def test_points_have_a_total_where_every_metric_has_its_points() -> None:
    project = make_project("scored", task_type="rubric-scoring", overlap=2)
    points = {"m1": 1, "m2": 2, "m3": 3, "m4": 1, "m5": 0}
    give(
        project,
        people_of(project, "ann", "ben"),
        [(points, points | {"m2": 1}), (points, {"m1": 1})],
    )
    assert measured(project, "total").names == ("6", "7")
    assert row(measured(project, "total"), "alpha-interval").n_items == 1
    assert row(measured(project, "m1"), "percent").value == 1
    kept = agreement_answers.load_label_answers(project, only="total")
    assert all(set(one.answers) == {"total"} for one in kept)
    assert {6, 7} <= {one.answers["total"] for one in kept}


def test_several_choices_at_once_agree_only_as_a_whole() -> None:
    question = agreement_answers.Question("types", "Types", "nominal", (("a", "A"), ("b", "B")))
    said = [agreement_answers.PersonAnswers(1, "x", "ann", {"types": ["a", "b"]})]
    said.append(agreement_answers.PersonAnswers(1, "x", "ben", {"types": ["a"]}))
    assert agreement_answers.build_matrix(question, said).names == ("a", "b", "a + b")


# Whose labels


def test_only_counted_labels_of_work_in_force_make_the_figures(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    [item] = give(project, people, [("valid", "invalid")])
    other = make_item(project)
    make_label(other, people[0], "valid", counted=False)
    for stage in (
        Stage.BASELINE,
        Stage.VERIFY,
        Stage.ADJUDICATE,
        Stage.QUALIFICATION,
        Stage.CONTROL,
    ):
        make_label(other, people[1], "valid", stage=stage)
    assert (measured(project).labels, measured(project).items) == (2, 1)
    item.deleted_at = timezone.now()
    item.save()
    assert measured(project).labels == 0


def test_an_earlier_label_that_is_stored_later_replaces_none(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    [item] = give(project, people, [("valid", "valid")])
    # As an import does with a row of the past, such as of a file that begins with the latest rows.
    before = timezone.now() - timedelta(days=30)
    make_label(item, people[0], "invalid", created_at=before, current=False, counted=False)
    assert (measured(project).labels, measured(project).items) == (2, 1)
    assert row(measured(project), "percent").value == 1


@pytest.mark.parametrize("first", [True, False])
def test_the_order_of_import_changes_no_figure(project: Project, first: bool) -> None:
    # Ann's own label counts, whether it comes before or after the one that she gave later,
    # when she had seen Ben's.
    make_item(project, "a")
    said = [("ann", "1", "valid", ""), ("ann", "3", "invalid", "yes"), ("ben", "2", "invalid", "")]
    rows = [
        {"item": "a", "rater": rater, "time": f"2026-01-0{day}T00:00:00Z", "choice": choice,
         "informed": informed}
        for rater, day, choice, informed in (said if first else reversed(said))
    ]  # fmt: skip
    task = tasktypes.load_task_type(project)
    given = (Row("labels.jsonl", line, one) for line, one in enumerate(rows, start=1))
    parsed = label_rows.parse_labels(given, task, now=timezone.now())
    assert labels.store_labels(project, parsed, now=timezone.now()).bad == []
    assert row(measured(project), "percent").value == 0
    [one] = grouping.list_groupings(project)[:1]
    assert category_board.compute_alphas(project, one)["number-errors"].n == 1


def test_no_label_of_texts_before_a_correction_counts(project: Project) -> None:
    ann, ben = people_of(project, "ann", "ben")
    item = make_item(project, "a")
    say(ann, take(ann), "invalid")
    Mark.objects.create(member=ann, item=item, kind=Mark.Kind.SEEN)
    say(ann, queue.reopen_item(ann, "a"), "invalid")
    correct(ben, take(ben))
    say(ben, take(ben), "valid")
    say(ann, queue.reopen_item(ann, "a"), "valid")
    assert measured(project).people == (("ben", 1),)
    [one] = grouping.list_groupings(project)[:1]
    assert category_board.compute_alphas(project, one)["number-errors"].n == 0
    older = Label.objects.filter(revision__number=1)
    assert not older.filter(counted=True).exists()


def test_no_figure_of_other_items_is_shown_from_the_cache(project: Project) -> None:
    lead = make_member(project, "lead")
    ann, ben = people_of(project, "ann", "ben")
    agreed, split, other = (make_item(project, key) for key in ("agreed", "split", "other"))
    # The ids of the labels of the first two items have the same sum.
    make_label(agreed, ann, "valid"), make_label(split, ann, "valid")
    make_label(split, ben, "invalid"), make_label(agreed, ben, "valid")
    make_label(other, ann, "valid"), make_label(other, ben, "valid")

    def change(item: Item, action: str, value: str = "") -> BulkChange:
        items = Item.objects.filter(pk=item.pk)
        return bulk_changes.change_items(lead, items, action, value, now=timezone.now()).change

    made = change(split, "exclude")
    assert row(measured(project), "percent").value == 1
    bulk_changes.undo_change(lead, made, now=timezone.now())
    change(agreed, "exclude")
    assert row(measured(project), "percent").value == 0.5
    assert row(measured(project, category="number-errors"), "percent").value == 0.5
    change(split, "category", "comprehensiveness")
    assert row(measured(project, category="number-errors"), "percent").value == 1


def test_a_label_given_after_seeing_others_gives_way_to_the_one_before(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    [item] = give(project, people, [("valid", "invalid")])
    before = Label.objects.get(member=people[0])
    before.give_way()
    make_label(item, people[0], "invalid", informed=True, supersedes=before)
    assert row(measured(project), "percent").value == 0
    # And with a changed mind of their own, without having seen anything, the later one holds.
    make_member(project, alias="cy")
    mine = Label.objects.get(member=people[1])
    mine.give_way()
    make_label(item, people[1], "valid", supersedes=mine)
    assert row(measured(project), "percent").value == 1


def test_who_saw_what_others_say_before_has_no_say(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    item = make_item(project)
    make_label(item, people[0], "valid")
    make_label(item, people[1], "valid", informed=True)
    assert (measured(project).labels, measured(project).items) == (1, 0)


def test_a_label_that_was_taken_back_has_no_say(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    give(project, people, [("valid", "invalid")])
    Label.objects.get(member=people[0]).withdraw(timezone.now())
    assert measured(project).people == (("ben", 1),)


def test_a_label_of_texts_that_were_corrected_since_has_no_say(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    [item] = give(project, people, [("valid", "valid")])
    old = Label.objects.get(member=people[0])
    old.give_way()
    newer = make_label(item, people[0], "invalid", supersedes=old)
    newer.stop_counting()
    assert measured(project).people == (("ben", 1),)
    newer.give_way()
    make_revision(item, {**TEXTS, "perturbed": "A spider has five legs."})
    make_label(item, people[0], "valid", informed=True, supersedes=newer)
    assert measured(project).people == (("ben", 1),)


def test_who_changed_a_label_that_then_stopped_counting_has_no_say(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    [item] = give(project, people, [("valid", "valid")])
    old = Label.objects.get(member=people[0])
    old.give_way()
    make_label(item, people[0], "invalid", informed=True, supersedes=old).stop_counting()
    assert measured(project).people == (("ben", 1),)


def test_labels_of_an_item_that_became_a_silent_check_have_no_say(project: Project) -> None:
    [item] = give(project, people_of(project, "ann", "ben"), [("valid", "valid")])
    make_resolution(item)
    answer_key.set_answer(project, item, "probe", {"choice": "valid"}, "It is.", None)
    assert measured(project).labels == 0


def test_a_category_narrows_the_items(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    give(project, people, TEN)
    give(project, people, [("valid", "valid")] * 3, category="grammar-errors")
    assert measured(project).items == 13
    assert row(measured(project, category="grammar-errors"), "percent").n_items == 3


# Silent checks


def test_each_person_is_held_against_what_was_known_to_be_right(project: Project) -> None:
    ann, ben = people_of(project, "ann", "ben")
    checks = [make_known(project, purpose="probe", right="invalid") for _ in range(3)]
    for item, said in zip(checks, ("invalid", "valid", "invalid"), strict=True):
        make_label(item, ann, said, stage=Stage.CONTROL)
    make_label(checks[0], ben, "valid", stage=Stage.CONTROL)
    found = measured(project)
    mine = row(found, "against-known", "ann")
    assert (mine.value, mine.n_items, mine.n_raters) == (pytest.approx(2 / 3), 3, 1)
    assert mine.low is not None
    assert row(found, "against-known", "ben").value == 0
    assert found.labels == 0


def test_a_known_answer_that_was_mended_decides_here_and_among_the_silent_checks(
    project: Project,
) -> None:
    [ann] = people_of(project, "ann")
    item = make_known(project, purpose="probe", right="invalid")
    make_label(item, ann, "valid", stage=Stage.CONTROL)
    assert row(measured(project), "against-known", "ann").value == 0
    later = timezone.now() + timedelta(minutes=1)
    answer_key.set_answer(project, item, "probe", {"choice": "valid"}, "It is.", None, now=later)
    assert row(measured(project), "against-known", "ann").value == 1
    assert [result.right for result in control_items.load_results(project)] == [1]


# Empty and constant


def test_without_labels_every_figure_is_undefined_and_says_why(project: Project) -> None:
    found = measured(project)
    assert {r.value for r in found.rows} == {None}
    assert all(r.reason for r in found.rows)
    assert (found.people, found.cells, found.items) == ((), (), 0)


def test_labels_all_the_same_leave_kappa_undefined(project: Project) -> None:
    give(project, people_of(project, "ann", "ben"), [("valid", "valid")] * 12)
    found = measured(project)
    for name in ("cohen", "fleiss", "alpha-nominal"):
        assert (row(found, name).value, row(found, name).reason) == (
            None,
            "all labels are the same",
        )
    assert row(found, "percent").value == row(found, "ac1").value == 1


# Kept


def test_a_state_of_the_labels_is_drawn_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = people_of(project, "ann", "ben")
    items = give(project, people, TEN)
    first = measured(project)
    monkeypatch.setattr(bootstrap, "estimate", lambda *args: pytest.fail("drawn again"))
    assert measured(project) == first
    monkeypatch.undo()
    Label.objects.filter(item=items[0]).first().withdraw(timezone.now())
    assert measured(project).items == 9


def test_the_same_labels_give_the_same_interval_anywhere(project: Project) -> None:
    # The same answers in a database with other numbers: only names and labels make the seed.
    give(project, people_of(project, "ann", "ben"), TEN)
    first = measured(project).rows
    Label.objects.all().delete()
    Slot.objects.all().delete()
    items = Item.objects.in_project(project)
    for item, said in zip(items, TEN, strict=True):
        for member, choice in zip(Membership.objects.order_by("alias"), said, strict=True):
            make_label(item, member, choice)
    process_cache.clear()
    assert measured(project).rows == first


def test_fleiss_is_not_taken_over_items_without_a_disagreement_alone(project: Project) -> None:
    project.disputed_overlap = 3
    project.save()
    people = people_of(project, "ann", "ben", "cid")
    for key in ("a", "b", "c"):
        make_item(project, key, slots=2)
    for member, choices in zip(people, (("valid", "invalid", "valid"),) * 3, strict=True):
        for choice in choices:
            member.refresh_from_db()
            offer = queue.next_offer(member)
            if isinstance(offer, queue.Offer):
                is_other = offer.item.key == "c" and member == people[1]
                say(member, offer, "invalid" if is_other else choice)
    counts = Label.objects.values_list("item__key").annotate(n=Count("pk")).order_by("item__key")
    assert dict(counts) == {"a": 2, "b": 2, "c": 3}
    found = measured(project)
    assert row(found, "percent").value < 1
    fleiss = row(found, "fleiss")
    assert (fleiss.value, fleiss.n_items, fleiss.reason) == (None, 2, agreement.MORE_IF_DISPUTED)


def test_figures_of_a_category_follow_the_items_that_move_into_it(project: Project) -> None:
    people = people_of(project, "ann", "ben")
    give(project, people, [("valid", "valid")] * 4)
    others = give(project, people, [("valid", "invalid")] * 4, category="entity")
    assert row(measured(project, category="number-errors"), "percent").n_items == 4
    Item.objects.filter(pk__in=[one.pk for one in others]).update(category="number-errors")
    found = row(measured(project, category="number-errors"), "percent")
    assert (found.n_items, found.value) == (8, 0.5)


def test_items_whose_labels_have_the_same_sum_are_not_taken_for_each_other(
    project: Project,
) -> None:
    ann, ben = people_of(project, "ann", "ben")
    one, other = give(project, [ann, ben], [(None, None)] * 2)
    for item, member, choice in (
        (one, ann, "valid"), (other, ann, "valid"), (other, ben, "valid"), (one, ben, "invalid"),
    ):  # fmt: skip
        make_label(item, member, choice)
    give(project, [ann, ben], [("valid", "valid")])
    values = []
    for item in (one, other):
        Item.objects.update(deleted_at=None)
        Item.objects.filter(pk=item.pk).update(deleted_at=timezone.now())
        values.append(row(measured(project), "percent").value)
    assert values == [1, 0.5]


# Page, API, command


@pytest.fixture
def people() -> Cast:
    people = cast()
    annotators = people_of(people.project, "ann", "<b>ben</b>")
    give(people.project, annotators, TEN)
    item = make_known(people.project, purpose="probe", right="invalid")
    make_label(item, annotators[0], "invalid", stage=Stage.CONTROL)
    return people


def page(people: Cast, query: str = "", client: Client | None = None) -> str:
    if client is None:
        client = Client()
        client.force_login(people.lead.account)
    response = client.get(reverse("agreement", args=[people.project.slug]) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_the_page_shows_every_figure_with_its_n_and_interval(people: Cast) -> None:
    shown = page(people)
    assert "70.0 %" in shown
    assert "0.400" in shown
    assert "&lt;b&gt;ben&lt;/b&gt;" in shown
    assert "<b>ben</b>" not in shown
    # Of ben's five valid ones, ann says valid of four.
    assert re.search(r'data-shade="4" data-kind="same"><a href="[^"]+">4<', shown)


@pytest.mark.parametrize(
    "query",
    ["?field=nothing", "?category=x&a=1&b=2", "?a=ann&b=ann", "?a=%00", "?row=%00&column=x"],
)
def test_nonsense_in_the_address_is_no_choice(people: Cast, query: str) -> None:
    shown = page(people, query)
    assert "70.0 %" in shown
    assert re.search("(ann in rows, .*ben.* in columns|ben.* in rows, ann in columns)", shown)


def test_the_page_compares_the_two_people_asked_for(people: Cast) -> None:
    shown = page(people, "?a=%3Cb%3Eben%3C%2Fb%3E&b=ann")
    assert "&lt;b&gt;ben&lt;/b&gt; in rows, ann in columns" in shown


def test_a_project_without_labels_says_what_agreement_needs() -> None:
    assert "No item has two labels" in page(cast())


def test_the_page_costs_the_same_however_many_labels(people: Cast) -> None:
    client = Client()
    client.force_login(people.lead.account)
    few = queries(people, client)
    assert (
        queries(people, client) == few - 5
    )  # labels, options, disputed ones, checks, known answers
    annotators = Membership.objects.filter(alias__in=["ann", "<b>ben</b>"])
    give(people.project, list(annotators), TEN)
    assert queries(people, client) == few


def queries(people: Cast, client: Client) -> int:
    with CaptureQueriesContext(connection) as caught:
        page(people, client=client)
    return len(caught)


def test_the_api_gives_what_the_page_shows(people: Cast) -> None:
    _, key = ApiToken.issue(people.lead.account, "test")
    address = reverse("api-agreement", args=[people.project.slug])
    client = Client(headers={"Authorization": f"Bearer {key}"})
    got = client.get(address, {"field": "choice"}).json()
    figures = {(r["measure"], r["people"]): r for r in got["figures"]}
    assert figures["cohen", ""]["value"] == pytest.approx(0.4)
    assert figures["against-known", "ann"]["value"] == 1
    assert sum(cell["n"] for cell in got["confusion"]) == 10
    refused = client.get(address, {"field": "colour"})
    assert refused.status_code == 400
    assert "choice" in refused.json()["detail"]


def test_the_command_prints_the_table_without_silent_checks(people: Cast, capsys: Any) -> None:
    call_command("results", "agreement", "--project", people.project.slug)
    table = json.loads(capsys.readouterr().out)
    assert table["columns"] == list(agreement.COLUMNS)
    assert {"cohen", "against-rest"} <= {r["measure"] for r in table["rows"]}
    assert "against-known" not in {r["measure"] for r in table["rows"]}
    call_command("results", "confusion", "--project", people.project.slug)
    cells = json.loads(capsys.readouterr().out)["rows"]
    assert sum(cell["n"] for cell in cells) == 10


def test_a_number_of_the_matrix_leads_to_its_items_and_that_is_noted(people: Cast) -> None:
    first, second = "ann", "<b>ben</b>"
    [question] = agreement_answers.list_questions(people.project)[:1]
    cells = agreement.measure_agreement(people.project, question).cells
    cell = next(one for one in cells if one.said == ("valid", "invalid"))
    a, b = cell.people
    query = urlencode({"a": a, "b": b, "row": "valid", "column": "invalid"})
    shown = page(people, f"?{query}")
    listed = re.findall(r'/items/([^/]+)/">', shown[shown.index('id="cell-title"') :])
    assert {a, b} == {first, second}
    assert len(listed) == cell.n > 0
    for key in listed:
        said = dict(Label.objects.filter(item__key=key).values_list("member__alias", "choice"))
        assert (said[a], said[b]) == ("valid", "invalid")
    marks = Mark.objects.of_member(people.lead.pk, Mark.Kind.SEEN)
    assert set(marks.values_list("item__key", flat=True)) == set(listed)
    assert 'id="cell-title"' not in page(people, "?a=ann")
