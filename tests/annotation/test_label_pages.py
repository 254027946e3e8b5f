"""The label screen without a script: pages, forms and redirects, and the panel for htmx."""

import re
from datetime import timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.labelling import queue
from annotation.models import Label, Membership, Revision, Role, Slot
from tests.builders import PASSWORD, browser_of, make_item, make_member, make_project, say, take

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def url(name: str, member: Membership) -> str:
    return reverse(name, args=[member.project.slug])


def shown(offer: queue.Offer, **values: object) -> dict[str, object]:
    return {
        "key": offer.key,
        "item": offer.item.key,
        "revision": offer.revision.number,
        "seconds": "",
        "comment": "",
        **values,
    }


def body(response: HttpResponse) -> str:
    return response.content.decode()


@pytest.fixture
def member() -> Membership:
    return make_member(make_project())


def test_the_page_shows_all_that_a_person_needs_to_judge(member: Membership) -> None:
    make_item(member.project, "spider-1", texts={"claim": "Two legs fewer."})
    page = body(browser_of(member).get(url("label", member)))
    for needed in ("spider-1", "Number errors", "How many legs", "Two legs fewer.", "<del"):
        assert needed in page
    for key in "12345":
        assert f'aria-keyshortcuts="{key}"' in page


def test_a_label_leads_to_the_next_item_and_says_what_was_stored(member: Membership) -> None:
    make_item(member.project, "first")
    make_item(member.project, "second")
    client = browser_of(member)
    why = {"choice": "not-sure", "reason": "question-unclear"}
    data = shown(take(member), **why, comment="why?", seconds="4.5")
    page = body(client.post(url("label-submit", member), data, follow=True))
    assert "first is labelled: Not sure." in page
    assert 'data-item="second"' in page
    label = Label.objects.get()
    assert (label.choice, label.comment, label.seconds) == ("not-sure", "why?", 4.5)


def test_htmx_gets_the_panel_alone_with_the_next_item(member: Membership) -> None:
    make_item(member.project, "first")
    make_item(member.project, "second")
    data = shown(take(member), choice="valid")
    panel = body(browser_of(member).post(url("label-submit", member), data, headers=HTMX))
    assert panel.strip().startswith('<section id="panel"')
    assert 'data-said="first is labelled: Valid."' in panel
    assert 'data-item="second"' in panel


def test_the_same_submission_twice_is_stored_once(member: Membership) -> None:
    make_item(member.project)
    make_item(member.project)
    client, data = browser_of(member), shown(take(member), choice="valid")
    for _ in range(2):
        assert client.post(url("label-submit", member), data).status_code == 302
    assert Label.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_label_of_old_texts_is_refused_and_the_new_texts_are_shown(
    member: Membership, headers: dict[str, str]
) -> None:
    make_item(member.project, "spider-1")
    offer = take(member)
    client = browser_of(member)
    client.post(url("label-correct", member), shown(offer, text="A spider has nine legs."))
    response = client.post(
        url("label-submit", member), shown(offer, choice="valid"), headers=headers
    )
    assert response.status_code == 409
    assert "The item has changed." in body(response)
    assert 'data-revision="2"' in body(response)
    assert not Label.objects.exists()


@pytest.mark.parametrize(
    "wrong", [{"choice": "perfect"}, {"key": "forged"}, {"revision": "x"}, {"item": "other"}]
)
def test_a_submission_that_the_page_did_not_offer_is_refused(
    member: Membership, wrong: dict[str, str]
) -> None:
    make_item(member.project)
    data = shown(take(member), choice="valid") | wrong
    response = browser_of(member).post(url("label-submit", member), data)
    assert response.status_code == 422
    assert "This was not saved." in body(response)
    assert not Label.objects.exists()


def test_a_correction_is_a_new_revision_with_the_line_breaks_that_were_typed(
    member: Membership,
) -> None:
    make_item(member.project)
    data = shown(take(member), text="A spider\r\nhas nine legs.", note="count")
    page = body(browser_of(member).post(url("label-correct", member), data, follow=True))
    made = Revision.objects.get(number=2)
    assert made.texts["perturbed"] == "A spider\nhas nine legs."
    assert made.note == "count"
    assert 'data-revision="2"' in page


def test_a_correction_that_comes_too_late_is_given_back_to_its_author(member: Membership) -> None:
    make_item(member.project)
    offer = take(member)
    Slot.objects.update(held_until=timezone.now() - timedelta(minutes=1))
    take(make_member(member.project))
    data = shown(offer, text="A long text that took an hour.")
    response = browser_of(member).post(url("label-correct", member), data)
    assert response.status_code == 409
    assert "A long text that took an hour." in body(response)


def test_undo_shows_the_last_item_again(member: Membership) -> None:
    make_item(member.project, "first")
    make_item(member.project, "second")
    client = browser_of(member)
    say(member, take(member))
    panel = body(client.post(url("label-undo", member), headers=HTMX))
    assert 'data-item="first"' in panel
    assert "Undone. Label first again." in panel


def test_a_comment_on_a_label_that_is_refused_is_given_back_to_its_author(
    member: Membership,
) -> None:
    make_item(member.project)
    data = shown(take(member), choice="perfect", comment="Six is an error & a funny one.")
    page = body(browser_of(member).post(url("label-submit", member), data))
    assert "Six is an error &amp; a funny one." in page


def test_what_is_written_in_a_field_is_given_back_to_its_author_if_the_item_was_removed() -> None:
    member = make_member(make_project(task_type="error-detection"))
    item = make_item(member.project, texts={"input": "2 + 2?", "response": "5"})
    said = {"verdict": "error", "explanation": "It is four.", "comment": "Simple sums."}
    data = shown(take(member), **said, error_type="reasoning-correctness")
    item.deleted_at = timezone.now()
    item.save()
    page = body(browser_of(member).post(url("label-submit", member), data))
    assert "This item was removed from the project." in page
    for words in ("It is four.", "Simple sums."):
        assert words in page


def test_saving_the_text_unchanged_is_not_called_a_correction(member: Membership) -> None:
    make_item(member.project, "spider-1")
    offer = take(member)
    data = shown(offer, text=offer.revision.texts["perturbed"])
    page = body(browser_of(member).post(url("label-correct", member), data, follow=True))
    assert "The text of spider-1 is unchanged" in page


@pytest.mark.parametrize(
    ("age", "status"), [("60", 422), ("0.2", 200), ("NaN", 200), ("1e400", 200), ("", 200)]
)
def test_a_label_that_waited_in_the_browser_does_not_replace_a_later_one(
    member: Membership, age: str, status: int
) -> None:
    item = make_item(member.project)
    first = take(member)
    say(member, take(member), "invalid", now=timezone.now() - timedelta(seconds=30))
    headers = HTMX | {"Label-Age": age}
    answer = browser_of(member).post(
        url("label-submit", member), shown(first, choice="valid"), headers=headers
    )
    assert answer.status_code == status
    kept = "invalid" if status == 422 else "valid"
    assert Label.objects.get(item=item, current=True).choice == kept


def test_undo_with_nothing_to_undo_says_so(member: Membership) -> None:
    make_item(member.project)
    page = body(browser_of(member).post(url("label-undo", member), follow=True))
    assert "You have no label to undo" in page


def test_items_held_by_others_are_not_called_all_done(member: Membership) -> None:
    make_item(member.project)
    take(make_member(member.project))
    page = body(browser_of(member).get(url("label", member)))
    assert "1 item is reserved by others" in page
    assert re.search(r"the next reservation expires in\s+(29|30)\s+minutes", page)
    assert "Every item has its final label" not in page


def test_all_done_is_said_when_all_is_resolved(member: Membership) -> None:
    make_item(member.project)
    say(member, take(member))
    assert "Every item has its final label" in body(browser_of(member).get(url("label", member)))


@pytest.mark.parametrize("role", [Role.LEAD, Role.ANNOTATOR])
def test_who_has_labelled_all_and_may_run_evaluators_is_led_to_it(role: Role) -> None:
    member = make_member(make_project(), role=role)
    page = body(browser_of(member).get(url("label", member)))
    assert (url("imports", member) in page) == (role == Role.LEAD)
    make_item(member.project)
    say(member, take(member))
    page = body(browser_of(member).get(url("label", member)))
    assert (url("run-new", member) in page) == (role == Role.LEAD)


def test_what_only_others_can_still_label_is_not_called_done() -> None:
    member = make_member(make_project(overlap=2))
    make_item(member.project)
    say(member, take(member))
    page = body(browser_of(member).get(url("label", member)))
    assert "You are done" in page
    assert "<p>1 item needs another annotator.</p>" in page


def test_an_empty_project_says_that_it_is_empty(member: Membership) -> None:
    assert "There are no items yet" in body(browser_of(member).get(url("label", member)))


def test_the_view_of_the_differences_is_remembered(member: Membership) -> None:
    make_item(member.project)
    client = browser_of(member)
    client.get(url("label", member), {"view": "side"})
    page = body(client.get(url("label", member)))
    assert re.search(r'data-view="side" data-lasts[^>]* aria-current="true"', page)


def test_the_editor_opens_without_a_script(member: Membership) -> None:
    make_item(member.project)
    client = browser_of(member)
    assert re.search(r"data-editor\s+hidden", body(client.get(url("label", member))))
    assert not re.search(
        r"data-editor\s+hidden", body(client.get(url("label", member), {"edit": 1}))
    )


def test_markup_in_texts_stays_text(member: Membership) -> None:
    hostile = "</textarea><script>alert(1)</script>"
    make_item(member.project, texts=dict.fromkeys(("prompt", "perturbed", "claim"), hostile))
    assert "<script>alert" not in body(browser_of(member).get(url("label", member)))


@pytest.mark.parametrize("name", ["label-submit", "label-correct", "label-undo"])
def test_signing_in_again_after_a_submission_leads_to_the_item_and_stores_nothing(
    member: Membership, name: str
) -> None:
    make_item(member.project)
    say(member, take(member))
    sign_in = Client().post(url(name, member), shown(queue.undo_label(member))).headers["Location"]
    client = Client()
    page = client.post(
        sign_in, {"login": member.account.username, "password": PASSWORD}, follow=True
    )
    assert page.redirect_chain[-1] == (url("label", member), 302)
    assert Label.objects.get().withdrawn_at
    assert client.put(url(name, member)).status_code == 405


def test_the_category_is_not_named_where_the_task_has_none() -> None:
    member = make_member(make_project(task_type="rating"))
    texts = {"prompt": "Why?", "gold": ["So."], "response": "Since."}
    make_item(member.project, "spider-1", texts=texts)
    page = body(browser_of(member).get(url("label", member)))
    assert 'data-next="Now spider-1."' in page
    assert "Number errors" not in page
