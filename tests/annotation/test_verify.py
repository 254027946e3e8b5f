"""The verify stage: a second person confirms what the labels say, or contests it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.errors import Refused, Stale, TooEarly
from annotation.labelling import comments, drafts, qualification, queue, verification
from annotation.labelling.verification import Verification
from annotation.models import (
    Item,
    Label,
    Mark,
    Membership,
    Project,
    Reason,
    Resolution,
    Slot,
    Stage,
)
from tests.builders import browser_of, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db


@pytest.fixture
def first() -> Membership:
    return make_member(make_project(verify=True))


@pytest.fixture
def second(first: Membership) -> Membership:
    return make_member(first.project)


def case(member: Membership) -> Verification:
    found = verification.take_next(member, now=timezone.now())
    assert isinstance(found, Verification), found
    return found


def send(
    call: Callable[..., Label], member: Membership, shown: Verification, **values: Any
) -> Label:
    sent = shown.offer.submission(**values)
    return call(member, sent, of=shown.of, now=timezone.now())


def labelled(member: Membership, choice: str = "valid", **values: object) -> Item:
    item = make_item(member.project, **values)
    say(member, take(member), choice, comment="Six for eight.")
    return item


def standing(item: Item) -> Resolution | None:
    return Resolution.objects.current().filter(item=item).first()


def states(item: Item, stage: str) -> list[str]:
    return list(Slot.objects.filter(item=item, stage=stage).values_list("state", flat=True))


def test_an_item_is_not_resolved_before_a_second_person_has_seen_it(first: Membership) -> None:
    item = labelled(first)
    assert standing(item) is None
    assert states(item, Stage.VERIFY) == ["open"]


def test_nobody_verifies_their_own_label(first: Membership) -> None:
    labelled(first)
    assert isinstance(verification.take_next(first, now=timezone.now()), queue.Waiting)


def test_an_error_of_another_category_is_verified_and_disagreed_about_by_nobody() -> None:
    """Its category stands in words, so that the field with the categories has no answer."""
    project = make_project(task_type="error-detection", verify=True)
    ann, ben = make_member(project), make_member(project)
    item = make_item(project, texts={"input": "2 + 2?", "response": "4, it be."})
    answers = {"verdict": "error", "other_type": "Grammar", "explanation": "It be."}
    queue.store_label(ann, take(ann).submission(answers))
    assert states(item, Stage.ADJUDICATE) == []
    shown = case(ben)
    assert shown.decided == answers
    send(verification.confirm, ben, shown)
    found = standing(item)
    assert found
    assert (found.value, found.values) == ("error", {"verdict": "error"})


def test_nobody_verifies_before_they_have_qualified(first: Membership, second: Membership) -> None:
    item = labelled(first)
    Project.objects.update(practice_items=1, practice_pass=1)
    second = Membership.objects.select_related("project").get(pk=second.pk)
    waiting = verification.take_next(second, now=timezone.now())
    assert isinstance(waiting, queue.Waiting)
    assert waiting.practising
    assert states(item, Stage.VERIFY) == ["open"]
    page = browser_of(second).get(reverse("verify", args=[second.project.slug])).content.decode()
    assert "Qualify first" in page
    assert item.key not in page
    qualification.waive(second, lead=make_member(second.project, role="lead"))
    second.refresh_from_db()
    assert case(second).offer.item == item


def test_the_second_person_sees_the_first_label_which_is_noted(
    first: Membership, second: Membership
) -> None:
    item = labelled(first)
    shown = case(second)
    assert (shown.first.choice, shown.first.comment) == ("valid", "Six for eight.")
    assert Mark.objects.of_member(second.pk, Mark.Kind.SEEN).of_item(item).exists()


def test_what_is_confirmed_is_resolved(first: Membership, second: Membership) -> None:
    item = labelled(first)
    label = send(verification.confirm, second, case(second))
    resolution = standing(item)
    assert resolution
    assert (resolution.value, resolution.rule, resolution.source) == ("valid", "verified", "labels")
    assert (label.stage, label.informed) == (Stage.VERIFY, True)


def test_what_is_contested_waits_for_a_decision(first: Membership, second: Membership) -> None:
    item = labelled(first)
    answers = {"choice": "invalid"}
    send(verification.contest, second, case(second), answers=answers, comment="It is the same.")
    assert standing(item) is None
    assert Slot.objects.get(stage=Stage.ADJUDICATE).reason == Reason.CONTESTED


@pytest.mark.parametrize(
    "answers, comment, needed",
    [
        ({"choice": "invalid"}, " ", "Write in the comment"),
        ({"choice": "valid"}, "No.", "equals the label"),
        ({}, "No.", "choose one"),
    ],
)
def test_a_contest_needs_another_answer_and_a_comment(
    first: Membership, second: Membership, answers: dict[str, object], comment: str, needed: str
) -> None:
    labelled(first)
    with pytest.raises(Refused, match=needed):
        send(verification.contest, second, case(second), answers=answers, comment=comment)


def test_a_label_that_changed_meanwhile_is_not_confirmed(
    first: Membership, second: Membership
) -> None:
    item = labelled(first)
    shown = case(second)
    say(first, queue.reopen_item(first, item.key), "invalid")
    with pytest.raises(Stale, match="The label has changed"):
        send(verification.confirm, second, shown)


POINTS = {"m3": 1, "m4": 1, "m5": 1}


@pytest.fixture
def scored() -> Project:
    """A project whose rule is the median, with an item that two people scored unlike each other."""
    project = make_project(task_type="rubric-scoring", verify=True, overlap=2)
    make_item(
        project, texts={"prompt": "An owl?", "gold": "A bird.", "response": "A bird of prey."}
    )
    for m1, m2 in ((0, 2), (2, 0)):
        score(make_member(project), m1=m1, m2=m2)
    return project


def score(member: Membership, **points: int) -> None:
    offer = queue.next_offer(member) if not Label.objects.filter(member=member) else None
    offer = offer or queue.reopen_item(member, Item.objects.get().key)
    assert isinstance(offer, queue.Offer)
    queue.store_label(member, offer.submission(answers=POINTS | points, comment="By the book."))


def test_a_result_between_two_options_is_contested_and_not_confirmed(scored: Project) -> None:
    for member, m1 in zip(scored.members.filter(role="annotator"), (0, 1), strict=True):
        score(member, m1=m1, m2=1)
    verifier = make_member(scored)
    client, path = browser_of(verifier), f"/projects/{scored.slug}/verify/"
    page = client.get(path).text
    assert "Nobody can give this result as an answer" in page
    assert "verdict-confirm" not in page
    assert client.post(f"/api/v1{path}next/").json()["can_confirm"] is False
    with pytest.raises(Refused, match="Contest it with the answer that is right"):
        send(verification.confirm, verifier, case(verifier))
    answers = POINTS | {"m1": 1, "m2": 1}
    send(verification.contest, verifier, case(verifier), answers=answers, comment="It is one.")
    assert Slot.objects.get(stage=Stage.ADJUDICATE).reason == Reason.CONTESTED


def test_a_result_that_lacks_words_is_confirmed_by_the_same_answer_in_full() -> None:
    project = make_project(task_type="error-detection", verify=True, overlap=3)
    item = make_item(project, texts={"input": "2 + 2 + 2?", "response": "5"})
    kinds = ["reasoning-correctness", "instruction-following", "context-faithfulness"]
    for left_out in kinds:
        member = make_member(project)
        offer = queue.next_offer(member)
        assert isinstance(offer, queue.Offer)
        said = [kind for kind in kinds if kind != left_out]
        answers = {"verdict": "error", "error_type": said, "explanation": "A sum."}
        queue.store_label(member, offer.submission(answers=answers))
    verifier = make_member(project)
    shown = case(verifier)
    assert (shown.is_label, shown.can_confirm) == (False, False)
    with pytest.raises(Refused, match="the same answer in full confirms it"):
        send(verification.confirm, verifier, shown)
    answers = {"verdict": "error", "error_type": kinds, "explanation": "All three."}
    send(verification.contest, verifier, shown, answers=answers, comment="In full.")
    resolution = standing(item)
    assert resolution
    assert (resolution.rule, sorted(resolution.values["error_type"])) == ("verified", sorted(kinds))


def test_values_in_another_order_are_the_same_answer() -> None:
    project = make_project(task_type="error-detection", verify=True, overlap=3)
    make_item(project, texts={"input": "2 + 2?", "response": "5"})
    kinds = ["reasoning-correctness", "instruction-following"]
    for said in (kinds[1:], kinds, kinds):
        member = make_member(project)
        offer = queue.next_offer(member)
        assert isinstance(offer, queue.Offer)
        answers = {"verdict": "error", "error_type": said, "explanation": "A sum."}
        queue.store_label(member, offer.submission(answers=answers))
    shown = case(make_member(project))
    assert (shown.is_label, shown.decided["error_type"]) == (True, kinds)


def test_a_result_that_is_nobody_s_answer_is_shown_as_it_is_confirmed(scored: Project) -> None:
    member = make_member(scored)
    client, path = browser_of(member), f"/projects/{scored.slug}/verify/"
    shown = client.get(path).text.partition('class="case-said"')[2].partition("</section>")[0]
    assert "Result of the labels" in shown
    assert "Label by" not in shown
    assert "By the book." not in shown
    assert [said.split()[0] for said in re.findall(r"<dd><b>(.*?)</b>", shown)] == list("11111")
    told = client.post(f"/api/v1{path}next/").json()["first"]
    assert (told["annotator"], told["answers"]) == ("", POINTS | {"m1": 1, "m2": 1})
    case_shown = case(member)
    assert told["submission"] == case_shown.of
    sent = case_shown.offer.submission()
    verification.confirm(member, sent, of=case_shown.of, now=timezone.now())
    assert Label.objects.get(stage=Stage.VERIFY).answers == told["answers"]


def test_a_result_that_changed_meanwhile_is_not_confirmed(scored: Project) -> None:
    member = make_member(scored)
    shown = case(member)
    score(Label.objects.order_by("pk")[1].member, m1=2, m2=2)
    assert (case(member).first, case(member).decided["m2"]) == (shown.first, 2)
    with pytest.raises(Stale, match="has changed"):
        verification.confirm(member, shown.offer.submission(), of=shown.of, now=timezone.now())


def test_a_label_that_was_taken_back_is_not_shown(first: Membership, second: Membership) -> None:
    item = labelled(first)
    case(second)
    queue.undo_label(first)
    assert isinstance(verification.take_next(second, now=timezone.now()), queue.Waiting)
    assert states(item, Stage.VERIFY) == ["closed"]


def test_labels_that_another_rule_gives_no_result_go_to_an_adjudicator(
    first: Membership, second: Membership
) -> None:
    """Otherwise the items would wait for nobody."""
    Project.objects.update(overlap=3)
    first.project.refresh_from_db()
    items = [make_item(first.project) for _ in range(2)]
    others = [make_member(first.project) for _ in range(2)]
    for member, choice in ((first, "valid"), (others[0], "valid"), (others[1], "invalid")):
        for _ in items:
            say(member, take(member), choice)
    assert [states(item, Stage.VERIFY) for item in items] == [["open"], ["open"]]
    Project.objects.update(rules={"choice": "unanimous"})
    second = Membership.objects.select_related("project").get(pk=second.pk)
    assert isinstance(verification.take_next(second, now=timezone.now()), queue.Waiting)
    for item in items:
        assert states(item, Stage.VERIFY) == ["closed"]
        assert Slot.objects.get(item=item, stage=Stage.ADJUDICATE).reason == Reason.DISPUTED


def test_a_label_that_changes_after_its_contest_is_verified_anew(
    first: Membership, second: Membership
) -> None:
    item = labelled(first)
    answers = {"choice": "invalid"}
    send(verification.contest, second, case(second), answers=answers, comment="It is the same.")
    say(first, queue.reopen_item(first, item.key), "invalid")
    assert states(item, Stage.VERIFY) == ["open"]
    assert states(item, Stage.ADJUDICATE) == ["closed"]
    third = make_member(first.project)
    send(verification.confirm, third, case(third))
    resolution = standing(item)
    assert resolution
    assert resolution.value == "invalid"


def test_a_confirmed_item_whose_label_changes_is_verified_anew(
    first: Membership, second: Membership
) -> None:
    item = labelled(first)
    send(verification.confirm, second, case(second))
    say(first, queue.reopen_item(first, item.key), "invalid")
    assert standing(item) is None
    assert states(item, Stage.VERIFY) == ["open"]


def test_after_undo_the_item_that_was_undone_comes_first(
    first: Membership, second: Membership
) -> None:
    """The next item is held by then, and was shown."""
    for _ in range(2):
        labelled(first)
    done = case(second)
    send(verification.confirm, second, done)
    after = case(second)
    assert after.offer.item != done.offer.item
    queue.undo_label(second, stage=Stage.VERIFY)
    assert case(second).offer.item == done.offer.item
    send(verification.confirm, second, case(second))
    assert case(second).offer.item == after.offer.item


def test_undoing_a_contest_takes_the_case_back(first: Membership, second: Membership) -> None:
    item = labelled(first)
    answers = {"choice": "invalid"}
    send(verification.contest, second, case(second), answers=answers, comment="It is the same.")
    queue.undo_label(second, stage=Stage.VERIFY)
    assert states(item, Stage.ADJUDICATE) == ["closed"]
    send(verification.confirm, second, case(second))
    assert standing(item)


def test_the_same_confirmation_twice_is_one(first: Membership, second: Membership) -> None:
    labelled(first)
    shown = case(second)
    once, twice = (
        send(verification.confirm, second, shown),
        send(verification.confirm, second, shown),
    )
    assert once.pk == twice.pk


def test_the_contest_rate_counts_items(first: Membership, second: Membership) -> None:
    # Two confirmed, one contested, each a cluster of its own: 1 of 3.
    for _ in range(3):
        labelled(first)
    for _ in range(2):
        send(verification.confirm, second, case(second))
    answers = {"choice": "invalid"}
    send(verification.contest, second, case(second), answers=answers, comment="No.")
    rate = verification.measure_contest_rate(first.project)
    assert (rate.verified, rate.contested, rate.share.value) == (3, 1, pytest.approx(1 / 3))
    Item.objects.filter(labels__choice="invalid").update(deleted_at=timezone.now())
    rate = verification.measure_contest_rate(first.project)
    assert (rate.verified, rate.contested) == (2, 0)


@pytest.fixture
def blind() -> Membership:
    project = make_project(verify=True, verify_blind=True)
    item = labelled(make_member(project, alias="Ann"))
    assert item.key
    return make_member(project, alias="Bob")


def answer(member: Membership, shown: Verification, choice: str, **values: Any) -> Label:
    sent = shown.offer.submission({"choice": choice}, **values)
    return verification.answer(member, sent, of=shown.of, confirming=True, now=timezone.now())


@pytest.mark.parametrize(("choice", "confirmed"), [("valid", True), ("invalid", False)])
def test_blind_the_same_answer_confirms_and_another_contests(
    blind: Membership, choice: str, confirmed: bool
) -> None:
    shown = case(blind)
    assert not Mark.objects.filter(kind=Mark.Kind.SEEN).exists()
    made = answer(blind, shown, choice)
    assert made.answers["choice"] == choice
    resolved = standing(shown.offer.item)
    assert (resolved is not None) == confirmed
    if resolved:
        assert (resolved.value, resolved.rule) == ("valid", "verified")
    else:
        assert states(shown.offer.item, Stage.ADJUDICATE) == ["open"]


def test_blind_the_page_does_not_tell_the_label(blind: Membership) -> None:
    client, path = browser_of(blind), f"/projects/{blind.project.slug}/verify/"
    page = client.get(path).content.decode()
    assert "You do not see the label" in page
    assert "Six for eight." not in page
    assert "Label by Ann" not in page
    assert 'name="verdict-confirm"' not in page
    sent = dict(re.findall(r'<input type="hidden" name="([\w-]+)" value="([^"]*)"', page))
    sent |= {"choice": "invalid", "verdict-confirm": "on"}
    said = client.post(f"{path}answer/", sent, follow=True).content.decode()
    assert "your answer is saved" in said


@pytest.mark.parametrize("choice", ["valid", "invalid"])
def test_blind_no_count_tells_what_became_of_an_answer(blind: Membership, choice: str) -> None:
    """Otherwise, whoever saw it could undo the answer and give the other one."""
    client, slug = browser_of(blind), blind.project.slug

    def counts() -> list[list[str]]:
        pages = ("/", f"/projects/{slug}/", f"/projects/{slug}/label/", f"/api/v1/projects/{slug}/")
        texts = (client.get(page).content.decode() for page in pages)
        return [re.findall(r'\d+ of \d+|value="\d+"|"resolved":\d+|\d+ wait', one) for one in texts]

    before = counts()
    answer(blind, case(blind), choice)
    assert counts() == before


def test_blind_the_api_does_not_tell_the_label(blind: Membership) -> None:
    path = f"/api/v1/projects/{blind.project.slug}/verify/next/"
    told = browser_of(blind).post(path).json()
    submission = told["first"].pop("submission")
    assert told["first"] == {"annotator": "", "choice": "", "answers": {}, "comment": ""}
    assert submission == case(blind).first.submission


def test_blind_nobody_reads_what_was_said_with_the_label_by_labelling_the_item_too(
    blind: Membership,
) -> None:
    shown = case(blind)
    key = shown.offer.item.key
    with pytest.raises(Refused, match="another user"):
        drafts.save_draft(blind, shown.offer.submission(), {"comment": "I look around."})
    for _ in range(2):
        with pytest.raises(Refused, match="not assigned to you"):
            queue.reopen_item(blind, key)
        with pytest.raises(TooEarly):
            comments.load_comments(blind, shown.offer.item, now=timezone.now())
        answer(blind, shown, "valid")
