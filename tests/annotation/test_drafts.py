"""Drafts: what was begun is there again, for whom it was shown, and gone once it is sent."""

from dataclasses import replace

import pytest
from django.http import QueryDict

from annotation import tasktypes
from annotation.errors import Refused
from annotation.labelling import drafts, queue, submissions
from annotation.labelling.submissions import Submission
from annotation.models import Draft, Label, Membership, Project
from tests.builders import (
    adapt_task_type,
    browser_of,
    make_item,
    make_member,
    make_project,
    make_revision,
    say,
    take,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def member() -> Membership:
    return make_member(make_project())


def keep(member: Membership, offer: queue.Offer, **data: object) -> Draft | None:
    return drafts.save_draft(member, offer.submission(), data)


def kept() -> dict[str, object]:
    """What the one draft holds, without what it knows of its page."""
    own = (submissions.DIFF, submissions.PAGE)
    return {name: said for name, said in Draft.objects.get().data.items() if name not in own}


def start(member: Membership, offer: queue.Offer) -> drafts.FormEntries:
    return drafts.load_entries(member, offer, tasktypes.load_task_type(member.project))


def test_a_draft_is_kept_once_an_item_and_the_last_one_stands(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, comment="Half a")
    keep(member, offer, comment="Half a thought", answers={"choice": ["valid"]})
    assert kept() == {"comment": "Half a thought", "answers": {"choice": ["valid"]}}


def test_what_is_emptied_again_is_no_draft(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, comment="no")
    assert keep(member, offer, comment="", answers={"choice": [""]}) is None
    assert not Draft.objects.exists()


def test_a_draft_that_comes_after_its_label_is_passed_over(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    say(member, offer)
    assert keep(member, offer, comment="Half a thought") is None
    assert not Draft.objects.exists()


def test_of_a_draft_that_comes_after_its_label_a_correction_that_was_not_saved_is_kept(
    member: Membership,
) -> None:
    make_item(member.project)
    offer = take(member)
    say(member, offer, comment="Seven?")
    keep(member, offer, comment="Seven?", text="A spider has seven legs.", note="It has.")
    assert kept() == {"text": "A spider has seven legs.", "note": "It has."}


def test_a_draft_that_was_left_replaces_no_later_answers(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, answers={"choice": ["invalid"]})
    for data in ({"comment": "Half a thought"}, {"answers": {"choice": ["valid"]}}, {}):
        with pytest.raises(drafts.Outdated):
            drafts.save_draft(member, offer.submission(), data, "", is_left=True)
    assert kept() == {"answers": {"choice": ["invalid"]}}


def test_an_undone_label_is_in_the_form_again_beside_a_correction_that_was_not_saved(
    member: Membership,
) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, comment="Seven?", text="A spider has seven legs.")
    say(member, offer, "invalid", comment="Seven?")
    undone = browser_of(member).post(f"/projects/{member.project.slug}/label/undo/")
    assert undone.status_code == 302
    begun = start(member, take(member))
    assert (begun.answers, begun.comment) == ({"choice": "invalid"}, "Seven?")
    assert begun.text == "A spider has seven legs."


def test_a_label_is_in_the_form_again_beside_a_correction_that_was_not_saved(
    member: Membership,
) -> None:
    item = make_item(member.project)
    offer = take(member)
    keep(member, offer, comment="Seven?", text="A spider has seven legs.")
    say(member, offer, "invalid", comment="Seven?")
    begun = start(member, queue.reopen_item(member, item.key))
    assert (begun.answers, begun.comment) == ({"choice": "invalid"}, "Seven?")
    assert begun.text == "A spider has seven legs."


def test_nobody_opens_an_item_by_a_draft_of_what_was_not_shown(member: Membership) -> None:
    make_item(member.project)
    hidden = make_item(member.project)
    offer = take(member)
    with pytest.raises(Refused, match="The page showed another item"):
        drafts.save_draft(member, Submission(offer.key, hidden.key, 1), {"comment": "x"})
    with pytest.raises(Refused, match="belongs to another user"):
        keep(make_member(member.project), offer, comment="x")
    with pytest.raises(Refused, match="not valid"):
        drafts.save_draft(member, Submission("x", hidden.key, 1), {"comment": "x"})


def test_what_no_column_takes_is_left_out_and_what_is_too_long_refused(
    member: Membership,
) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, comment="a\0b\ud800c", text=["no text"], unknown="x")
    assert kept() == {"comment": "abc"}
    with pytest.raises(Refused, match="too long"):
        keep(member, offer, text="x" * drafts.MAX_LENGTH)


def test_more_drafts_than_there_is_room_for_are_refused_in_words(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 1)
    make_item(member.project)
    make_item(member.project)
    first, second = take(member), take(member, ahead=True)
    keep(member, first, comment="one")
    with pytest.raises(Refused, match="Finish or discard some"):
        keep(member, second, comment="two")
    keep(member, first, comment="one, longer")


def test_long_drafts_are_refused_in_words_once_they_are_too_long_together(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_TOTAL_LENGTH", 1_000)
    make_item(member.project)
    make_item(member.project)
    first, second = take(member), take(member, ahead=True)
    keep(member, first, text="x" * 700)
    with pytest.raises(Refused, match="too long together"):
        keep(member, second, text="y" * 400)
    keep(member, first, text="x" * 750)
    keep(member, second, text="y" * 100)


def test_half_answers_stand_in_the_form_again(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, answers={"choice": ["not-sure"], "reason": ["gold-wrong"]}, comment="hm")
    found = start(member, offer)
    assert found.answers == {"choice": "not-sure", "reason": "gold-wrong"}
    assert found.comment == "hm"


def adapt(member: Membership, source: str) -> Membership:
    """The member, whose project has this task type from now on."""
    adapt_task_type(member, source)
    return Membership.objects.get(pk=member.pk)


@pytest.mark.parametrize("becomes", ["", "yesno", "span"])
def test_what_was_written_for_a_question_that_is_asked_no_more_is_shown_until_the_label(
    member: Membership, becomes: str
) -> None:
    item = make_item(member.project)
    source = tasktypes.load_sources()["perturbation-vetting"]

    def asking(kind: str) -> str:
        why = f'[[fields]]\nname = "why"\nkind = "{kind}"\ntitle = "Why so?"\nrequired = false\n'
        return source.replace("[blind]", f"{why}\n[blind]")

    member = adapt(member, asking("text"))
    keep(member, take(member), answers={"why": ["Eight legs."], "choice": ["valid"]})
    member = adapt(member, asking(becomes) if becomes else source)
    offer = take(member)
    assert start(member, offer).unasked == "Why so?\nEight legs."
    keep(member, offer, comment="hm")
    assert start(member, offer).unasked == "Why so?\nEight legs."
    page = browser_of(member).get(f"/projects/{member.project.slug}/label/").text
    assert "You wrote an answer to a question that is no longer asked." in page
    assert "Eight legs." in page
    say(member, offer)
    assert start(member, queue.reopen_item(member, item.key)).unasked == ""


def test_a_first_look_that_is_asked_for_meanwhile_leaves_what_was_begun_for_the_second(
    member: Membership,
) -> None:
    make_item(member.project)
    keep(member, take(member), answers={"choice": ["valid"]}, text="A spider has nine legs.")
    Project.objects.update(blind_first=True)
    member = Membership.objects.get(pk=member.pk)
    look = take(member)
    keep(member, look, answers={"error": ["yes"]}, comment="hm")
    begun = start(member, look)
    assert (begun.answers, begun.comment) == ({"error": "yes"}, "hm")
    queue.store_label(member, look.submission({"error": "no"}))
    begun = start(member, take(member))
    assert (begun.answers, begun.text) == ({"choice": "valid"}, "A spider has nine legs.")


def test_a_first_look_at_corrected_texts_leaves_a_correction_of_the_former_ones(
    member: Membership,
) -> None:
    Project.objects.update(claim_check=True)
    member = Membership.objects.get(pk=member.pk)
    item = make_item(member.project)
    claims = {"claim_check.1": ["explained"], "choice": ["valid"]}
    keep(member, take(member), answers=claims, text="A spider has nine.", note="count")
    make_revision(item, {"perturbed": "A spider has no legs."})
    Project.objects.update(blind_first=True)
    member = Membership.objects.get(pk=member.pk)
    look = take(member)
    keep(member, look, answers={"error": ["yes"]}, comment="hm")
    assert start(member, look).answers == {"error": "yes"}
    queue.store_label(member, look.submission({"error": "no"}))
    begun = start(member, take(member))
    assert (begun.stale_text, begun.text) == ("A spider has nine.\n\ncount", "")
    assert begun.answers == {"choice": "valid"}


def test_a_refused_label_of_corrected_texts_brings_back_no_answers_about_former_changes(
    member: Membership,
) -> None:
    Project.objects.update(claim_check=True)
    member = Membership.objects.get(pk=member.pk)
    item = make_item(member.project)
    keep(member, take(member), answers={"claim_check.1": ["explained"], "choice": ["valid"]})
    make_revision(item, {"perturbed": "A spider has no legs."})
    offer = take(member)
    sent = QueryDict(mutable=True)
    sent.update({"key": offer.key, "item": offer.name, "revision": "2", "comment": "hm"})
    sent["begun-with"] = Draft.objects.get().version
    assert drafts.save_refused_form(member, sent)
    assert start(member, offer).answers == {"choice": "valid"}


def test_of_several_choices_one_that_is_offered_no_more_leaves_with_the_others() -> None:
    member = make_member(make_project(task_type="error-detection"))
    make_item(member.project, texts={"input": "2 + 2", "response": "5"})
    offer = take(member)
    keep(member, offer, answers={"error_type": ["reasoning-correctness", "gone"]})
    keep(member, offer, comment="hm")
    assert kept() == {"comment": "hm"}


def test_a_correction_of_texts_that_changed_since_is_shown_apart(member: Membership) -> None:
    item = make_item(member.project)
    keep(member, take(member), text="A spider has nine legs.", note="count", comment="hm")
    make_revision(item, {"prompt": "?", "gold": "8", "perturbed": "7"})
    found = start(member, take(member))
    assert (found.text, found.note) == ("", "")
    assert found.stale_text == "A spider has nine legs."
    assert found.comment == "hm"


def test_a_correction_of_earlier_texts_stays_until_the_item_is_labelled(member: Membership) -> None:
    item = make_item(member.project)
    keep(member, take(member), text="A spider has nine legs.", note="count")
    make_revision(item, {"prompt": "?", "gold": "8", "perturbed": "7"})
    offer = take(member)
    for comment in ("h", "hm"):
        keep(member, offer, comment=comment)
    found = start(member, offer)
    assert (found.text, found.comment) == ("", "hm")
    assert found.stale_text == "A spider has nine legs.\n\ncount"
    say(member, offer)
    assert not Draft.objects.exists()


def test_a_refused_form_makes_no_correction_of_the_present_texts(member: Membership) -> None:
    item = make_item(member.project)
    keep(member, take(member), text="A spider has nine legs.", note="count")
    make_revision(item, {"prompt": "?", "gold": "8", "perturbed": "7"})
    offer = take(member)
    sent = QueryDict(mutable=True)
    sent.update({"key": offer.key, "item": offer.item.key, "revision": "2", "comment": "hm"})
    sent["begun-with"] = Draft.objects.get().version
    assert drafts.save_refused_form(member, sent)
    found = start(member, offer)
    assert (found.text, found.note, found.comment) == ("", "", "hm")
    assert found.stale_text == "A spider has nine legs.\n\ncount"


def test_a_correction_that_was_stored_is_not_told_as_begun(member: Membership) -> None:
    item = make_item(member.project)
    keep(member, take(member), text="A spider has nine legs.")
    make_revision(item, {"prompt": "?", "gold": "8", "perturbed": "A spider has nine legs."})
    assert start(member, take(member)).stale_text == ""


def test_after_a_correction_the_comment_is_of_the_new_revision(member: Membership) -> None:
    item = make_item(member.project)
    offer = take(member)
    keep(member, offer, text="A spider has nine legs.", comment="hm")
    drafts.move_to_revision(member, item, 2, offer.submission())
    draft = Draft.objects.get()
    assert (kept(), draft.revision) == ({"comment": "hm"}, 2)


def test_what_was_begun_on_another_page_outlives_a_label_and_a_correction_that_lack_it(
    member: Membership,
) -> None:
    item = make_item(member.project)
    earlier, later = take(member), take(member)
    keep(member, later, text="A spider has nine legs.", comment="Seven legs?")
    drafts.move_to_revision(member, item, 2, earlier.submission())
    assert kept() == {"text": "A spider has nine legs.", "comment": "Seven legs?"}
    say(member, earlier)
    assert kept() == {"text": "A spider has nine legs.", "comment": "Seven legs?"}


def test_a_draft_that_a_page_showed_is_gone_with_its_label(member: Membership) -> None:
    make_item(member.project)
    draft = keep(member, take(member), comment="Seven legs?")
    assert draft
    label = take(member).submission({"choice": "valid"}, "Seven legs")
    queue.store_label(member, replace(label, begun_with=(draft.version,)))
    assert not Draft.objects.exists()


def test_what_an_undone_label_said_comes_back_but_never_over_a_draft(member: Membership) -> None:
    make_item(member.project)
    say(member, take(member), comment="One leg too few.")
    label = Label.objects.get()
    drafts.restore_from_label(member, label, drafts.to_form_data(label.answers))
    assert Draft.objects.get().data["comment"] == "One leg too few."
    Draft.objects.update(data={"comment": "something newer"})
    drafts.restore_from_label(member, label, drafts.to_form_data(label.answers))
    assert kept() == {"comment": "something newer"}


def test_stored_answers_are_spelt_as_a_form_sends_them() -> None:
    answers = {"types": ["a", "b"], "error": True, "score": 2, "checked": {"3": "explained"}}
    assert drafts.to_form_data(answers) == {
        "types": ["a", "b"],
        "error": ["yes"],
        "score": ["2"],
        "checked.3": ["explained"],
    }


def test_a_refused_form_leaves_what_was_written_on_another_page_since(member: Membership) -> None:
    make_item(member.project)
    shown = take(member)
    keep(member, take(member), comment="from the tablet")
    page = {"key": shown.key, "item": shown.name, "revision": 1, "comment": "from the desk"}
    told = browser_of(member).post(f"/projects/{member.project.slug}/label/submit/", page)
    assert told.status_code == 422
    assert kept() == {"comment": "from the tablet"}
    assert told.text.count("from the desk") == told.text.count("from the tablet") == 1


def test_a_refused_form_is_kept_beside_what_the_draft_held(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    keep(member, offer, comment="hm")
    sent = QueryDict(mutable=True)
    sent.update({"key": offer.key, "item": offer.item.key, "revision": "1"})
    sent.update({"text": "nine", "csrfmiddlewaretoken": "x"})
    assert drafts.save_refused_form(member, sent)
    assert kept() == {"comment": "hm", "text": "nine"}
    sent["revision"] = "none"
    assert not drafts.save_refused_form(member, sent)
