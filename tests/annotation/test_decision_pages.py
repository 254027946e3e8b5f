"""The pages of those who verify, decide, assign and compare, without a script."""

import re

import pytest
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotation.labelling import cases, comments, queue
from annotation.models import Comment, Item, Label, Mark, Resolution, Revision, Slot, Stage
from annotation.projects import encrypted_archives
from tests.annotation.spans import with_spans
from tests.builders import (
    Cast,
    browser_of,
    make_item,
    make_member,
    make_project,
    make_resolution,
    remove_question,
    say,
    take,
)

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def url(name: str, people: Cast, *args: str) -> str:
    return reverse(name, args=[people.project.slug, *args])


def body(response: HttpResponse, status: int = 200) -> str:
    assert response.status_code == status
    return response.content.decode()


def hidden(page: str, name: str, number: int = 0) -> str:
    return re.findall(rf'name="{name}" value="([^"]*)"', page)[number]


def use(people: Cast, **settings: object) -> None:
    for name, value in settings.items():
        setattr(people.project, name, value)
    people.project.save()


def disputed(people: Cast, key: str = "a/b") -> Item:
    item = make_item(people.project, key, slots=2)
    for choice in ("valid", "invalid"):
        member = make_member(people.project)
        say(member, take(member), choice, comment=f"<b>{choice}</b> it is", seconds=4.5)
    return item


def sent_by(page: str, form: str) -> dict[str, str]:
    """The hidden values of a page from this form on."""
    return dict(
        re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', page.partition(form)[2])
    )


# ----------------------------------------------------------------------------------- verify


def test_the_verify_page_shows_the_first_label_with_its_comment(people: Cast) -> None:
    use(people, verify=True)
    make_item(people.project)
    say(people.annotator, take(people.annotator), comment="Six for eight.")
    page = body(browser_of(people.adjudicator).get(url("verify", people)))
    for needed in ("Label by annotator", "Six for eight.", "Valid", 'aria-keyshortcuts="y"'):
        assert needed in page


def test_confirming_stores_it_and_goes_on(people: Cast) -> None:
    use(people, verify=True)
    make_item(people.project)
    say(people.annotator, take(people.annotator))
    client = browser_of(people.adjudicator)
    page = body(client.get(url("verify", people)))
    names = ("key", "item", "revision", "verdict-of")
    data = {name: hidden(page, name) for name in names} | {
        "verdict-confirm": "on",
        "seconds": "3.5",
    }
    page = body(client.post(url("verify-answer", people), data, follow=True))
    assert "you confirmed “Valid”" in page
    assert "Nothing to verify" in page
    assert Label.objects.get(stage=Stage.VERIFY).seconds == 3.5
    page = body(client.post(url("verify-undo", people), follow=True))
    assert "Undone. Verify" in page


def test_a_contest_without_a_comment_loses_nothing(people: Cast) -> None:
    use(people, verify=True)
    make_item(people.project)
    say(people.annotator, take(people.annotator))
    client = browser_of(people.adjudicator)
    page = body(client.get(url("verify", people)))
    data = {name: hidden(page, name) for name in ("key", "item", "revision", "verdict-of")}
    page = body(client.post(url("verify-answer", people), data | {"choice": "invalid"}), 422)
    assert "Write in the comment why" in page
    assert re.search(r'value="invalid" checked', page)
    data = {name: hidden(page, name) for name in ("key", "item", "revision", "verdict-of")}
    data |= {"choice": "invalid", "comment": "It is the same."}
    page = body(client.post(url("verify-answer", people), data, follow=True))
    assert "An adjudicator will decide" in page


@pytest.mark.parametrize("name", ["confirm", "of"])
def test_a_question_of_any_name_can_be_answered_in_a_contest(people: Cast, name: str) -> None:
    use(people, verify=True)
    field = f'\n[[fields]]\nname = "{name}"\nkind = "text"\ntitle = "Really?"\n'
    with_spans(people.project, field)
    make_item(people.project)
    author = make_member(people.project)
    say(author, take(author))
    client = browser_of(people.annotator)
    data = sent_by(body(client.get(url("verify", people))), "data-decision")
    data |= {"choice": "invalid", name: "Yes.", "comment": "It has six."}
    page = body(client.post(url("verify-answer", people), data, follow=True))
    assert "you contested the label" in page
    assert Label.objects.get(stage=Stage.VERIFY).answers == {"choice": "invalid", name: "Yes."}


def test_a_contest_of_a_label_that_was_taken_back_is_shown_beside_the_next_item(
    people: Cast,
) -> None:
    use(people, verify=True)
    make_item(people.project)
    author = make_member(people.project)
    say(author, take(author))
    client = browser_of(people.annotator)
    data = sent_by(body(client.get(url("verify", people))), "data-decision")
    queue.undo_label(author)
    data |= {"choice": "invalid", "comment": "It has six."}
    assert "It has six." in body(client.post(url("verify-answer", people), data), 409)


# ----------------------------------------------------------------------------------- adjudicate


def test_the_list_tells_what_waits_and_why(people: Cast) -> None:
    disputed(people)
    page = body(browser_of(people.adjudicator).get(url("adjudicate", people)))
    assert "Annotators disagree" in page
    assert reverse("case", args=[people.project.slug, "a/b"]) in page


def test_the_last_decision_is_taken_back_from_the_list(people: Cast) -> None:
    item, client = disputed(people), browser_of(people.adjudicator)
    assert "no decision to undo" in body(client.post(url("adjudicate", people), follow=True))
    case = body(client.get(url("case", people, item.key)))
    data = {name: hidden(case, name) for name in ("key", "item", "revision")}
    data |= {"action": "decide", "choice": "invalid", "why-they-disagreed": "slip"}
    client.post(url("case", people, item.key), data)
    assert Resolution.objects.current().get(item=item).value == "invalid"
    assert "Undo your last" in body(client.get(url("adjudicate", people)))
    page = body(client.post(url("adjudicate", people), follow=True))
    assert "Decision on a/b undone." in page
    assert not Resolution.objects.current().filter(item=item).exists()
    assert Label.objects.get(stage=Stage.ADJUDICATE).withdrawn_at


def test_a_double_click_undoes_one_decision(people: Cast) -> None:
    client = browser_of(people.adjudicator)
    for key in ("a", "b"):
        item = disputed(people, key)
        page = body(client.get(url("case", people, key)))
        data = {name: hidden(page, name) for name in ("key", "item", "revision")}
        data |= {"action": "decide", "choice": "invalid", "why-they-disagreed": "slip"}
        client.post(url("case", people, key), data)
    undo = {"label": hidden(body(client.get(url("adjudicate", people))), "label")}
    for _ in range(2):
        assert client.post(url("adjudicate", people), undo)["Location"] == url("case", people, "b")
    assert Resolution.objects.current().get().item.key == "a"
    assert not Resolution.objects.current().filter(item=item).exists()


def test_the_list_costs_the_same_for_many_cases(
    people: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client, query = browser_of(people.adjudicator), django_assert_num_queries
    disputed(people, "1")
    with query(30, exact=False) as few:
        client.get(url("adjudicate", people))
    for number in range(2, 6):
        disputed(people, str(number))
    with query(len(few)):
        client.get(url("adjudicate", people))


def test_a_case_shows_all_that_people_said_and_no_markup_of_theirs(people: Cast) -> None:
    disputed(people)
    page = body(browser_of(people.adjudicator).get(url("case", people, "a/b")))
    for needed in ("4.5 s", "&lt;b&gt;invalid&lt;/b&gt; it is", "Why did annotators disagree?"):
        assert needed in page
    assert "<b>invalid</b> it is" not in page


def test_a_decision_is_stored_and_the_next_case_comes(people: Cast) -> None:
    first, second = disputed(people, "1"), disputed(people, "2")
    client = browser_of(people.adjudicator)
    page = body(client.get(url("case", people, "1")))
    data = {name: hidden(page, name) for name in ("key", "item", "revision")}
    data |= {"action": "decide", "choice": "valid"}
    page = body(client.post(url("case", people, "1"), data), 422)
    assert "Choose why, then decide" in page
    assert re.search(r'value="valid" checked', page)
    data |= {"key": hidden(page, "key"), "why-they-disagreed": "slip", "comment": "Look again."}
    response = client.post(url("case", people, "1"), data)
    assert response["Location"] == url("case", people, "2")
    resolution = Resolution.objects.current().get(item=first)
    assert (resolution.value, resolution.reason) == ("valid", "slip")
    assert resolution.comment == "Look again."
    assert not Resolution.objects.filter(item=second).exists()
    page = body(client.get(url("adjudicate", people)))
    assert "Latest decisions" in page
    assert "Somebody made a mistake" in page
    again = body(client.get(url("case", people, "1")))
    assert "Decided by adjudicator on" in again
    assert re.search(r'value="valid" checked', again)


def test_there_may_be_no_next_case(people: Cast) -> None:
    client = browser_of(people.adjudicator)
    page = body(client.get(url("adjudicate", people) + "?take=next", follow=True))
    assert "There is no case for you" in page


def test_a_lead_asks_for_a_decision_on_the_items_page(people: Cast) -> None:
    item = make_item(people.project, "a/b")
    client = browser_of(people.lead)
    assert "Request adjudication" in body(client.get(url("item", people, "a/b")))
    data = {"action": "ask", "back": "item"}
    response = client.post(url("case", people, "a/b"), data)
    assert response["Location"] == url("item", people, "a/b")
    assert [slot.item for slot in cases.waiting_slots(people.project)] == [item]
    client.get(url("case", people, "a/b"))
    client.post(url("case", people, "a/b"), {"action": "leave"})
    assert Slot.objects.get(stage=Stage.ADJUDICATE).state == "open"
    client.post(url("case", people, "a/b"), {"action": "withdraw"})
    assert not cases.waiting_slots(people.project).exists()


def test_what_somebody_wrote_about_a_case_that_others_decided_is_shown(people: Cast) -> None:
    disputed(people, "1")
    page, address = browser_of(people.adjudicator), url("case", people, "1")
    data = sent_by(body(page.get(address)), "data-decision")
    Slot.objects.filter(stage=Stage.ADJUDICATE).update(held_until=timezone.now())
    other = browser_of(make_member(people.project, "adjudicator"))
    answer = {"choice": "invalid", "why-they-disagreed": "ambiguous"}
    other.post(address, sent_by(body(other.get(address)), "data-decision") | answer)
    told = body(page.post(address, data | answer | {"comment": "Two read it so."}), 409)
    assert "Two read it so." in told
    mend = {"action": "mend", "revision": "1", "note": "Webs."}
    preview = body(page.post(address, mend | {"gold": "A spider has 8 legs."}))
    mend["preview"] = hidden(preview, "preview")
    other.post(address, mend | {"gold": "A spider has 8 legs."})
    told = body(page.post(address, mend | {"gold": "It has eight."}), 409)
    assert "It has eight." in told
    assert "Webs." in told


def test_what_was_written_in_a_field_is_shown_if_others_were_faster() -> None:
    project = make_project(task_type="error-detection", verify=True)
    author, other = make_member(project), make_member(project, "adjudicator")
    item = make_item(project, "1", texts={"input": "2 + 2?", "response": "5"})
    offer = take(author)
    queue.store_label(author, offer.submission({"verdict": "no_error"}))
    browser, answer = browser_of(other), {"verdict": "error", "error_type": "reasoning-correctness"}
    answer |= {"explanation": "It is four.", "comment": "Simple sums."}
    address = reverse("verify-answer", args=[project.slug])
    page = body(browser.get(reverse("verify", args=[project.slug])))
    queue.undo_label(author)
    told = body(browser.post(address, sent_by(page, "data-decision") | answer), 409)
    assert "It is four." in told
    lead = make_member(project, "lead")
    cases.request_decision(lead, item, now=timezone.now())
    address = reverse("case", args=[project.slug, "1"])
    page = body(browser.get(address))
    Slot.objects.filter(stage=Stage.ADJUDICATE).update(held_until=timezone.now())
    shown = cases.open_case(lead, item, now=timezone.now())
    assert shown.offer
    cases.decide(lead, shown.offer.submission({"verdict": "no_error"}), now=timezone.now())
    told = body(browser.post(address, sent_by(page, "data-decision") | answer), 409)
    assert "It is four." in told


def test_what_was_written_about_a_question_that_is_asked_no_more_is_shown() -> None:
    project = make_project("p", task_type="error-detection", verify=True)
    author, lead = make_member(project), make_member(project, "lead")
    verifier, judge = (browser_of(make_member(project, "lead")) for _ in range(2))
    item = make_item(project, "1", texts={"input": "2 + 2?", "response": "5"})
    queue.store_label(author, take(author).submission({"verdict": "no_error"}))
    verdict, case = reverse("verify-answer", args=["p"]), reverse("case", args=["p", "1"])
    verifying = body(verifier.get(reverse("verify", args=["p"])))
    cases.request_decision(lead, item, now=timezone.now())
    deciding = body(judge.get(case))
    remove_question(lead, "explanation")
    answer = {"action": "decide", "verdict": "error", "error_type": "reasoning-correctness"}
    answer |= {
        "explanation": "It is four.",
        "comment": "Simple sums.",
        "why-they-disagreed": "slip",
    }
    for browser, address, page in ((verifier, verdict, verifying), (judge, case, deciding)):
        labels = Label.objects.count()
        told = body(browser.post(address, sent_by(page, "data-decision") | answer), 409)
        assert "A lead has changed the questions" in told
        assert "It is four." in told
        assert Label.objects.count() == labels
        assert browser.post(address, sent_by(told, "data-decision") | answer).status_code == 302


def test_a_gold_answer_is_mended_on_the_page_of_the_case(people: Cast) -> None:
    make_item(people.project, "a", cluster="spider")
    make_item(
        people.project,
        "b",
        cluster="spider",
        texts={"perturbed": "A spider has eight legs. Or six."},
    )
    client = browser_of(people.adjudicator)
    page = body(client.get(url("case", people, "a")))
    assert "2 items of this question" in page
    gold = "A spider has eight legs.\r\nTwo are short."
    data = {"action": "mend", "revision": "1", "gold": gold, "note": "Short.", "carry": "on"}
    page = body(client.post(url("case", people, "a"), data))
    assert "Both answers: 1 item." in page
    assert "the item’s own change is at the same place: <code>b</code>." in page
    assert 'value="Short."' in page
    assert "Two are short." in page
    assert not Revision.objects.filter(number=2).exists()
    data["preview"] = hidden(page, "preview")
    # Another text than the one that was previewed is previewed first.
    body(client.post(url("case", people, "a"), data | {"gold": "Eight."}))
    assert not Revision.objects.filter(number=2).exists()
    page = body(client.post(url("case", people, "a"), data, follow=True))
    assert "is corrected in 2 items, with 1 perturbed answer." in page
    texts = Item.objects.get(key="a").revision().texts
    assert texts["gold"] == "A spider has eight legs.\nTwo are short."
    assert texts["perturbed"] == "A spider has six legs.\nTwo are short."
    page = body(client.post(url("case", people, "a"), data), 409)
    assert "texts have been corrected" in page


def test_a_case_of_an_unknown_item_or_action_is_refused(people: Cast) -> None:
    client = browser_of(people.adjudicator)
    assert client.get(url("case", people, "nothing")).status_code == 404
    make_item(people.project, "a")
    body(client.post(url("case", people, "a"), {"action": "drop table"}), 422)


def test_looking_at_an_item_with_its_labels_is_noted(people: Cast) -> None:
    item = make_item(people.project, "a")
    client = browser_of(people.adjudicator)
    client.get(url("item", people, "a"))
    seen = Mark.objects.of_member(people.adjudicator.pk, Mark.Kind.SEEN).of_item(item)
    assert not seen.exists()  # there was nothing to see
    say(people.annotator, take(people.annotator))
    client.get(url("item", people, "a"))
    assert seen.exists()


# ----------------------------------------------------------------------------------- assign


def test_items_are_kept_for_people_and_given_back(people: Cast) -> None:
    for key in ("a", "b", "c"):
        make_item(people.project, key)
    client = browser_of(people.lead)
    data = {"keys": "a\r\n b \r\nx", "people": "annotator"}
    page = body(client.post(url("assign", people), data | {"action": "show"}))
    assert "2 items match" in page
    assert "<code>x</code>" in page
    page = body(client.post(url("assign", people), data | {"action": "each"}, follow=True))
    assert "2 labels reserved" in page
    assert "2 items not opened yet" in page
    page = body(client.post(url("assign", people), {"back": "annotator"}, follow=True))
    assert "returned to the queue" in page
    assert client.post(url("assign", people), {"back": "nobody"}).status_code == 404


def test_items_can_come_first(people: Cast) -> None:
    make_item(people.project, "a"), make_item(people.project, "b")
    client = browser_of(people.lead)
    client.post(url("assign", people), {"keys": "b", "action": "urgent"})
    assert take(people.annotator).item.key == "b"


@pytest.mark.parametrize("data", [{"action": "each"}, {"action": "burn"}, {"people": "x"}])
def test_an_assignment_that_cannot_be_is_refused(people: Cast, data: dict[str, str]) -> None:
    body(browser_of(people.lead).post(url("assign", people), data), 422)


# ----------------------------------------------------------------------------------- baseline


def test_a_sample_is_drawn_filled_read_and_ended(people: Cast) -> None:
    make_resolution(make_item(people.project, slots=0))
    client = browser_of(people.lead)
    assert "There is no sample yet" in body(client.get(url("baseline", people)))
    data = {"size": "5", "by": ["category"], "raters": "2", "seed": "7"}
    page = body(client.post(url("baseline", people), data, follow=True))
    assert "number-errors 1 of 1" in page
    say(people.annotator, take(people.annotator), "valid")
    page = body(client.get(url("baseline", people)))
    assert "100.0 %" in page
    rows = body(client.get(url("baseline-rows", people))).splitlines()
    assert len(rows) == 2
    assert "annotator,valid,valid" in rows[1]
    page = body(client.post(url("baseline", people), {"end": "on"}, follow=True))
    assert "1 open label is cancelled" in page
    body(client.post(url("baseline", people), {"size": "0"}), 422)


def test_the_labels_of_a_sample_leave_no_sealed_project_unencrypted(people: Cast) -> None:
    make_resolution(make_item(people.project, slots=0))
    client = browser_of(people.lead)
    client.post(url("baseline", people), {"size": "5", "by": ["category"], "raters": "2"})
    encrypted_archives.seal_project(people.project)
    page = body(client.get(url("baseline-rows", people), follow=True))
    assert "you can only export its texts encrypted" in page


# ----------------------------------------------------------------------------------- comments


def test_comments_are_a_page_and_a_fragment(people: Cast) -> None:
    item = make_item(people.project, "a/b")
    say(people.annotator, take(people.annotator))
    client, address = browser_of(people.annotator), url("comments", people)
    page = body(client.post(address, {"item": "a/b", "text": "@lead <i>look</i>"}, follow=True))
    assert "@lead &lt;i&gt;look&lt;/i&gt;" in page
    fragment = body(client.get(f"{address}?item=a/b", headers=HTMX))
    assert fragment.lstrip().startswith('<section id="comments"')
    fragment = body(client.post(address, {"item": "a/b", "text": " "}, headers=HTMX), 422)
    assert "The comment is empty" in fragment
    fragment = body(client.post(address, {"item": "a/b", "withdraw": "1"}, headers=HTMX))
    assert "No comments yet" in fragment
    assert Comment.objects.get(item=item).withdrawn_at


def test_before_ones_own_label_there_is_nothing_to_read(people: Cast) -> None:
    item = make_item(people.project, "a/b")
    comments.add_comment(people.lead, item, "Secret.", now=timezone.now())
    client, address = browser_of(people.annotator), url("comments", people)
    page = body(client.get(f"{address}?item=a/b"))
    assert "after you have labelled the item" in page
    assert "Secret." not in page
    body(client.post(address, {"item": "a/b", "text": "Hello"}), 422)
    assert client.get(f"{address}?item=x").status_code == 404


def test_mentions_are_counted_on_every_page_until_they_are_read(people: Cast) -> None:
    item = make_item(people.project, "a/b")
    comments.add_comment(people.lead, item, "@annotator, secret.", now=timezone.now())
    client = browser_of(people.annotator)
    assert "1 mention<" in body(client.get(url("project", people)))
    page = body(client.get(url("mentions", people)))
    assert "an item that you have not labelled" in page
    assert "secret" not in page
    assert "a/b" not in page
    assert "1 mention<" not in body(client.get(url("project", people)))


def test_the_item_page_shows_its_comments(people: Cast) -> None:
    item = make_item(people.project, "a/b")
    comments.add_comment(people.lead, item, "An insect has six.", now=timezone.now())
    assert "An insect has six." in body(
        browser_of(people.researcher).get(url("item", people, "a/b"))
    )
