"""Answers to single changes name them by number: the diff on which they were given stays in use."""

from typing import Any

import pytest
from django.utils import timezone

from annotation import tasktypes
from annotation.errors import Stale
from annotation.exporting import tables
from annotation.importing.label_rows import parse_labels
from annotation.importing.labels import store_labels
from annotation.items.diffing import difference, stored
from annotation.items.diffing.difference import FORMER_ALGORITHM
from annotation.labelling import drafts, queue, submissions
from annotation.models import Diff, Draft, Label, Membership, Revision
from formats.rows import Row
from tests.builders import make_item, make_member, make_project, take

pytestmark = pytest.mark.django_db

CHECK = {"1": "explained"}
FORMER = {"algorithm": FORMER_ALGORITHM, "segments": ["It has ", [["", "x"], ["", "y"]]]}


@pytest.fixture
def member() -> Membership:
    return make_member(make_project(claim_check=True, overlap=2))


def answers(**values: Any) -> dict[str, Any]:
    return {"choice": "valid", "claim_check": CHECK, **values}


def make_former(revision: Revision, *, pinned: bool = False) -> Diff:
    return Diff.objects.create(
        revision=revision,
        algorithm=FORMER_ALGORITHM,
        segments=FORMER,
        edit_size=0.25,
        place=0.5,
        pinned=pinned,
    )


def give(member: Membership, offer: queue.Offer | None = None, **said: Any) -> Label:
    """The member's label of what was offered, or of the next item."""
    return queue.store_label(member, (offer or take(member)).submission(said or answers()))


def send(member: Membership, offer: queue.Offer, diff: str, **values: Any) -> Label:
    """Send the offer from a page that showed the diff of this algorithm."""
    ticket = submissions.SubmissionToken(offer.slot.pk, member.pk, offer.revision.number, diff=diff)
    sent = submissions.Submission(
        submissions.issue_token(ticket), offer.name, offer.revision.number, answers(**values)
    )
    return queue.store_label(member, sent)


def test_the_first_answer_to_a_single_change_pins_the_diff(member: Membership) -> None:
    item, other = make_item(member.project), make_item(member.project)
    give(member)
    give(member, choice="valid")
    pinned = Diff.objects.get(pinned=True)
    assert (pinned.revision, pinned.algorithm) == (item.revision(), difference.ALGORITHM)
    assert not Diff.objects.filter(revision=other.revision(), pinned=True).exists()


def test_a_pinned_diff_is_shown_also_after_another_algorithm_came(member: Membership) -> None:
    item = make_item(member.project)
    make_former(item.revision(), pinned=True)
    shown = stored.load_difference(item.revision())
    assert shown is not None
    assert shown.algorithm == FORMER_ALGORITHM
    offer = take(member)
    assert offer.revision.stored_diff is not None
    assert offer.revision.stored_diff.algorithm == FORMER_ALGORITHM
    assert give(member, offer).answers["claim_check"] == CHECK
    assert Diff.objects.filter(pinned=True).count() == 1


def test_without_such_answers_the_diff_of_the_current_algorithm_is_shown(
    member: Membership,
) -> None:
    item = make_item(member.project)
    make_former(item.revision())
    shown = stored.load_difference(item.revision())
    assert shown is not None
    assert shown.algorithm == difference.ALGORITHM
    assert take(member).revision.stored_diff == Diff.objects.get(algorithm=difference.ALGORITHM)


def test_a_page_that_was_painted_before_the_update_is_refused_for_such_answers_alone(
    member: Membership,
) -> None:
    make_item(member.project)
    with pytest.raises(Stale, match="Check each change again"):
        send(member, take(member), FORMER_ALGORITHM)
    assert not Label.objects.exists()
    send(member, take(member), FORMER_ALGORITHM, claim_check=None)
    assert Label.objects.count() == 1


def test_a_key_of_before_the_update_names_the_former_algorithm(member: Membership) -> None:
    ticket = submissions.SubmissionToken(1, member.pk, 1, False)
    assert ticket.diff == FORMER_ALGORITHM


def test_a_draft_of_another_diff_keeps_all_but_the_answers_to_single_changes(
    member: Membership,
) -> None:
    make_item(member.project)
    task, offer = tasktypes.load_task_type(member.project), take(member)
    begun = {"choice": ["valid"], "claim_check.1": ["explained"]}
    drafts.save_draft(member, offer.submission(), {"answers": begun, "comment": "hm"})
    assert drafts.load_entries(member, offer, task).answers == answers()
    draft = Draft.objects.get()
    Draft.objects.update(data=draft.data | {submissions.DIFF: FORMER_ALGORITHM})
    found = drafts.load_entries(member, offer, task)
    assert (found.answers, found.comment) == ({"choice": "valid"}, "hm")


def test_a_label_of_older_texts_fills_no_single_change_of_the_new_ones(member: Membership) -> None:
    item = make_item(member.project)
    give(member)
    task = tasktypes.load_task_type(member.project)
    offer = queue.reopen_item(member, item.key)
    assert drafts.load_entries(member, offer, task).answers == answers()
    texts = {"perturbed": "Another text."}
    corrected = queue.store_correction(member, offer.submission(), texts)
    again = queue.Offer(
        corrected.slot, corrected.item, corrected.revision, "", "", previous=offer.previous
    )
    assert drafts.load_entries(member, again, task).answers == {"choice": "valid"}


def test_exported_labels_name_the_diff_of_such_answers(member: Membership) -> None:
    make_item(member.project)
    give(member)
    give(make_member(member.project), choice="valid")
    rows = list(tables.label_rows(member.project))
    assert [row["diff"] for row in rows] == [difference.ALGORITHM, None]


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        ({"diff": difference.ALGORITHM}, None),
        ({}, "is words-1, but the changes of this item are numbered by words-2"),
        ({"diff": "words-0"}, "is words-0, but"),
    ],
)
def test_imported_answers_to_single_changes_need_the_diff_that_is_shown(
    member: Membership, diff: dict[str, str], reason: str | None
) -> None:
    item = make_item(member.project)
    row = {"item": item.key, "rater": "ann", "time": "2026-01-01T10:00:00Z", **answers(), **diff}
    task = tasktypes.load_task_type(member.project)
    parsed = parse_labels([Row("f", 1, row)], task, now=timezone.now())
    report = store_labels(member.project, parsed, now=timezone.now())
    if reason is None:
        assert (report.new, Diff.objects.get(pinned=True).revision) == (1, item.revision())
    else:
        assert [(bad.field, reason in bad.reason) for bad in report.bad] == [("diff", True)]
        assert not Label.objects.exists()


def test_labels_that_are_imported_already_stay_unchanged_whatever_the_file_says(
    member: Membership,
) -> None:
    item = make_item(member.project)
    row = {"item": item.key, "rater": "ann", "time": "2026-01-01T10:00:00Z", **answers()}
    task = tasktypes.load_task_type(member.project)
    for diff in ({"diff": difference.ALGORITHM}, {}):
        parsed = parse_labels([Row("f", 1, row | diff)], task, now=timezone.now())
        report = store_labels(member.project, parsed, now=timezone.now())
    assert (report.unchanged, report.bad) == (1, [])
