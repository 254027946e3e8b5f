"""Two responses are shown as A and B in an order that is drawn; labels name the response."""

from collections import Counter
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation import tasktypes
from annotation.errors import Stale
from annotation.exporting import tables
from annotation.importing.label_rows import parse_labels
from annotation.importing.labels import store_labels
from annotation.labelling import answer_key, drafts, pair_order, queue, submissions
from annotation.models import Item, Label, Membership, Project
from annotation.tasktypes import TaskType, validation
from formats.rows import BadRow, Row
from tests.builders import browser_of, make_item, make_member, make_project, take

pytestmark = pytest.mark.django_db

RESPONSES = ("response_1", "response_2")
TEXTS = {"prompt": "Name a river.", "response_1": "The Rhine.", "response_2": "The lake."}
SYSTEMS = {"system_1": "secret-alpha", "system_2": "secret-beta"}


def make_pair(project: Project, key: str = "", **values: Any) -> Item:
    return make_item(project, key, **{"texts": TEXTS, "category": "", "fields": SYSTEMS, **values})


@pytest.fixture
def member() -> Membership:
    return make_member(make_project(task_type="pairwise"))


def declared() -> TaskType:
    return tasktypes.parse_definition(tasktypes.load_definitions()["pairwise"])


def give(member: Membership, said: str, offer: queue.Offer | None = None) -> Label:
    return queue.store_label(member, (offer or take(member)).submission({"preference": said}))


def with_order(member: Membership, first: str) -> queue.Offer:
    """The offer of the first new item that the member sees in this order."""
    for _ in range(50):
        make_pair(member.project)
        offer = take(member)
        if offer.first == first:
            return offer
        queue.skip_item(member, offer.submission())
    raise AssertionError(f"in fifty items, {first} never came first")


def test_an_option_about_a_text_stands_at_its_place_and_keeps_its_value() -> None:
    for first, other in (RESPONSES, RESPONSES[::-1]):
        shown = declared().in_order(first)
        [field] = shown.fields
        assert [(o.value, o.title, o.key) for o in field.options] == [
            (first, "A is better", "1"),
            (other, "B is better", "2"),
            ("both_good", "Both are good", "3"),
            ("both_bad", "Both are bad", "4"),
        ]
        titles = [(text.name, text.title) for text in shown.texts]
        assert titles[:3] == [("prompt", "Prompt"), (first, "Response A"), (other, "Response B")]


def test_a_page_names_the_texts_by_their_side_in_every_word() -> None:
    shown = declared().in_order("response_2")
    words = [word for o in shown.fields[0].options for word in (o.title, o.help, *o.examples)]
    assert not [word for word in words if "Response" in word]
    assert "B leaves out half of the question, A answers all of it." in words
    assert shown.in_words_of_page("Response 1, not Response 12") == "B, not Response 12"
    assert shown.in_order("response_1").in_order("") == declared()


def test_half_of_all_pairs_is_turned_whoever_looks(member: Membership) -> None:
    other = make_member(member.project)
    task = tasktypes.load_task_type(member.project)
    items = [make_pair(member.project) for _ in range(200)]
    draws = {
        who: [pair_order.draw_first(task, who, item.slots.first()) for item in items]
        for who in (member, other)
    }
    for drawn in draws.values():
        # 100 of 200 are expected with a standard deviation of 7: five of them are 35.
        assert 65 <= Counter(drawn)["response_1"] <= 135
    same = sum(a == b for a, b in zip(*draws.values(), strict=True))
    assert 65 <= same <= 135


@pytest.mark.parametrize("first", RESPONSES)
def test_the_order_stays_over_reload_label_undo_and_a_second_visit(
    member: Membership, first: str
) -> None:
    offer = with_order(member, first)
    assert take(member).first == first
    assert give(member, "response_2").first_shown == first
    undone = queue.undo_label(member)
    assert undone is not None
    assert undone.first == first
    label = give(member, "both_bad", undone)
    again = queue.reopen_item(member, offer.item.key)
    assert (again.first, again.previous) == (first, label)
    assert give(member, "response_1", again).first_shown == first
    assert set(Label.objects.values_list("first_shown", flat=True)) == {first}


@pytest.mark.parametrize("first", RESPONSES)
def test_the_label_names_the_response_and_the_page_the_side(member: Membership, first: str) -> None:
    offer = with_order(member, first)
    browser = browser_of(member)
    page = browser.get(reverse("label", args=[member.project.slug])).content.decode()
    shown = [f'data-text="{name}"' for name in (first, *{*RESPONSES} - {first})]
    assert page.index(shown[0]) < page.index(shown[1])
    assert f'value="{first}" data-key="1" data-title="A is better"' in page
    sent = {"key": offer.key, "item": offer.name, "revision": 1, "preference": first}
    address = reverse("label-submit", args=[member.project.slug])
    answer = browser.post(address, sent, follow=True).content.decode()
    assert f"{offer.item.key} is labelled: A is better." in answer
    label = Label.objects.get()
    assert (label.choice, label.answers, label.first_shown) == (first, {"preference": first}, first)
    mine = reverse("my-items", args=[member.project.slug]) + "?list=done"
    assert "A is better" in browser.get(mine).content.decode()


def test_an_answer_is_refused_if_the_page_showed_another_order(member: Membership) -> None:
    offer = with_order(member, "response_2")
    for first in ("response_1", ""):
        ticket = submissions.SubmissionToken(offer.slot.pk, member.pk, 1, diff="", first=first)
        key = submissions.issue_token(ticket)
        sent = submissions.Submission(key, offer.name, 1, {"preference": "response_1"})
        with pytest.raises(Stale, match="in another order"):
            queue.store_label(member, sent)
    assert not Label.objects.exists()


def test_a_draft_keeps_the_response(member: Membership) -> None:
    offer = with_order(member, "response_2")
    drafts.save_draft(member, offer.submission(), {"answers": {"preference": ["response_1"]}})
    page = browser_of(member).get(reverse("label", args=[member.project.slug])).content.decode()
    [chosen] = [part for part in page.split("<button")[1:] if " data-chosen" in part]
    assert 'value="response_1" data-key="2" data-title="B is better"' in chosen


def test_no_page_of_an_annotator_names_a_system(member: Membership) -> None:
    make_pair(member.project, "one")
    make_pair(member.project, "two")
    browser, slug = browser_of(member), member.project.slug
    pages = [
        browser.get(reverse("label", args=[slug])),
        browser.get(reverse("label-next", args=[slug])),
    ]
    offer = take(member)
    give(member, "response_1")
    pages += [
        browser.get(reverse(name, args=[slug]) + query)
        for name, query in (
            ("label", ""),
            ("label-siblings", f"?item={offer.item.key}"),
            ("my-items", "?list=done"),
            ("comments", f"?item={offer.item.key}"),
        )
    ]
    pages += [browser.post(reverse("api-next", args=[slug]))]
    for page in pages:
        assert page.status_code == 200
        assert "secret" not in page.content.decode()


def test_the_api_says_in_which_order_to_show_the_texts(member: Membership) -> None:
    offer = with_order(member, "response_2")
    browser, slug = browser_of(member), member.project.slug
    told = browser.post(reverse("api-next", args=[slug])).json()
    assert told["item"]["order"] == ["response_2", "response_1"]
    sent = {
        "key": told["key"],
        "item": offer.name,
        "revision": 1,
        "answers": {"preference": "response_2"},
    }
    made = browser.post(reverse("api-labels", args=[slug]), sent, content_type="application/json")
    assert made.status_code == 201
    assert Label.objects.get().first_shown == "response_2"
    lead = browser_of(make_member(member.project, role="lead"))
    [row] = lead.get(reverse("api-labels", args=[slug])).json()["results"]
    assert (row["choice"], row["first_shown"]) == ("response_2", "response_2")


def test_tasks_without_a_pair_have_no_order() -> None:
    member = make_member(make_project())
    make_item(member.project)
    assert take(member).first == ""
    told = browser_of(member).post(reverse("api-next", args=[member.project.slug])).json()
    assert told["item"]["order"] is None


def test_those_who_see_others_labels_see_the_texts_by_their_titles(member: Membership) -> None:
    project = member.project
    item = with_order(member, "response_2").item
    give(member, "response_2")
    lead = make_member(project, role="lead")
    browser = browser_of(lead)
    address = reverse("case", args=[project.slug, item.key])
    browser.post(address, {"action": "ask"})
    page = browser.get(address).content.decode()
    assert page.index('data-text="response_1"') < page.index('data-text="response_2"')
    assert "Response 2 is better" in page
    assert "A is better" not in page
    assert "with <code>response_2</code> as A" in page


def test_the_lesson_of_a_qualification_item_speaks_of_the_sides(member: Membership) -> None:
    project = member.project
    item, right = make_pair(project, slots=0), {"preference": "response_2"}
    answer_key.set_answer(project, item, "practice", right, "Only Response 2 names a lake.", None)
    project.practice_items, project.practice_pass = 1, 1
    project.save()
    offer = take(member)
    sent = {"key": offer.key, "item": offer.name, "revision": 1, "preference": "response_1"}
    address = reverse("label-submit", args=[project.slug])
    page = browser_of(member).post(address, sent).content.decode()
    side, other = ("B", "A") if offer.first == "response_1" else ("A", "B")
    assert f"Only {side} names a lake." in page
    assert f"(you chose {other} is better)" in page


def test_labels_are_exported_with_their_order_and_come_back(member: Membership) -> None:
    item = with_order(member, "response_2").item
    give(member, "response_1")
    [row] = tables.label_rows(member.project)
    assert (row["choice"], row["first_shown"]) == ("response_1", "response_2")

    other = make_project(task_type="pairwise")
    make_pair(other, item.key)
    told = {
        "item": row["item"],
        "rater": row["annotator"],
        "time": row["created_at"].isoformat(),
        "answers.preference": row["answers.preference"],
        "first_shown": row["first_shown"],
    }
    task = tasktypes.load_task_type(other)
    rows = list(parse_labels([Row("labels.csv", 2, told)], task, now=timezone.now()))
    store_labels(other, rows, as_members=False, now=timezone.now())
    [again] = tables.label_rows(other)
    same = ("item", "choice", "answers", "first_shown", "annotator", "created_at")
    assert [again[name] for name in same] == [row[name] for name in same]


@pytest.mark.parametrize(
    ("slug", "reason"),
    [
        ("pairwise", "is 'A'; write response_1 or response_2, or leave it out."),
        ("rating", "is 'A'; this task has no pair; leave it out."),
    ],
)
def test_an_order_that_cannot_be_is_not_imported(slug: str, reason: str) -> None:
    task = tasktypes.parse_definition(tasktypes.load_definitions()[slug])
    told = {"item": "x", "rater": "ada", "time": "2026-01-01", "first_shown": "A"}
    answers = {"preference": "both_bad"} if slug == "pairwise" else {
        "naturalness": 1, "relatedness": 1, "correctness": 1,
    }  # fmt: skip
    [bad] = parse_labels([Row("labels.csv", 2, told | answers)], task, now=timezone.now())
    assert isinstance(bad, BadRow)
    assert (bad.field, bad.reason) == ("first_shown", reason)


def text(name: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "title": name, "required": True, **values}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"pair": {"texts": ["response_1"], "systems": ["a", "b"]}}, "needs two different names"),
        ({"pair": {"texts": ["a", "b"], "systems": ["a", "a"]}}, "needs two different names"),
    ],
)
def test_a_pair_names_two_texts_and_two_fields(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(tasktypes.TaskTypeError, match=problem):
        tasktypes.parse_definition({**tasktypes.load_definitions()["pairwise"], **change})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"correctable": "response_1"}, "response_1: use required texts"),
        (
            {"texts": [text("response_1"), text("prompt"), text("response_2")]},
            "must follow each other",
        ),
        (
            {"pair": {"texts": ["response_1", "response_2"], "systems": ["prompt", "b"]}},
            "prompt is a text",
        ),
        (
            {"texts": [text("x"), text("y")], "pair": {"texts": ["x", "y"], "systems": ["a", "b"]}},
            "needs a choice with the value 'x'",
        ),
    ],
)
def test_a_pair_that_does_not_fit_is_refused(change: dict[str, Any], problem: str) -> None:
    definition = {**tasktypes.load_definitions()["pairwise"], **change}
    found = validation.find_problems(tasktypes.parse_definition(definition))
    assert any(problem in one.text for one in found), found
