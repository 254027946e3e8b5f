"""Items that come in before the text that their task type awaits: nobody gets them until it is
there, and every page says so."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation import importing, tasktypes
from annotation.errors import Refused
from annotation.items import readiness
from annotation.labelling import answer_key, assignment, cases, queue
from annotation.models import Item, Membership, Project, Slot
from annotation.projects.views import home as home_page
from annotation.tasktypes import validation, versions
from formats.rows import Row
from tests.builders import make_member, make_project, make_revision, resize_all, take
from tests.judging.builders_judging import api_client

pytestmark = pytest.mark.django_db

PROMPT = {"prompt": "What does a capacitor do?"}
WHOLE = PROMPT | {"gold": "It stores charge."}


@pytest.fixture
def project() -> Project:
    return make_project(task_type="gold-verification")


@pytest.fixture
def lead(project: Project) -> Membership:
    return make_member(project, role="lead")


@pytest.fixture
def member(project: Project) -> Membership:
    return make_member(project)


def bring(project: Project, *rows: dict[str, Any], **how: Any) -> importing.ItemImportReport:
    named = [Row("f", number, {"key": f"p{number}", **row}) for number, row in enumerate(rows)]
    drafts = importing.parse_items(
        named, tasktypes.load_task_type(project), accept=how.get("accept", False)
    )
    return importing.store_items(project, drafts, **how)


def answer(item: Item, text: str = "It stores charge.") -> None:
    """What a run of a generator does: a revision that has the gold answer, and then places."""
    make_revision(item, item.revision().texts | {"gold": text})
    assignment.refill_slots(item, now=timezone.now())


def page(member: Membership, name: str, *args: str) -> str:
    assert member.account
    browser = Client()
    browser.force_login(member.account)
    return browser.get(reverse(name, args=args)).content.decode()


def test_prompts_without_a_gold_answer_get_no_places_and_the_others_do(project: Project) -> None:
    bring(project, PROMPT, WHOLE, PROMPT | {"gold": " "})
    assert [slot.item.key for slot in Slot.objects.all()] == ["p1"]
    assert "gold" not in Item.objects.get(key="p2").revision().texts
    assert readiness.count_waiting(project) == 2


def test_with_its_gold_answer_an_item_comes_to_people(project: Project, member: Membership) -> None:
    bring(project, PROMPT)
    assert isinstance(queue.next_offer(member), queue.Waiting)
    answer(Item.objects.get())
    assert take(member).item.key == "p0"
    assert readiness.count_waiting(project) == 0


def test_nothing_else_opens_places_of_an_item_that_waits(
    project: Project, lead: Membership, member: Membership
) -> None:
    bring(project, PROMPT)
    item, now = Item.objects.get(), timezone.now()
    assignment.refill_slots(item, now=now)
    project.overlap = 3
    assert resize_all(project) == 0
    assert assignment.reserve_slots(lead, [item], [member], now=now).reserved == 0
    with pytest.raises(Refused, match="has no 'Gold answer' yet"):
        cases.request_decision(lead, item, now=now)
    with pytest.raises(Refused, match="has no 'Gold answer' yet"):
        answer_key.set_answer(project, item, "practice", {"verdict": "right"}, "It is.", lead)
    assert not Slot.objects.exists()


def test_what_is_right_of_a_prompt_without_its_answer_is_not_taken(project: Project) -> None:
    practice = {"purpose": "practice", "known": "right", "explanation": "It is."}
    report = bring(project, PROMPT | practice, WHOLE | practice)
    assert (report.new, [bad.field for bad in report.bad]) == (1, ["gold"])
    decided = {"verdict": "right"}
    rows = PROMPT | decided | {"key": "a"}, WHOLE | decided | {"key": "b"}
    report = bring(project, *rows, accept=True)
    assert (report.new, [bad.field for bad in report.bad]) == (1, ["gold"])


def test_every_page_says_what_waits_and_for_what(
    project: Project, lead: Membership, member: Membership
) -> None:
    bring(project, *[PROMPT] * 10)
    told = "10 prompts wait for their gold answer."
    assert told in page(lead, "project", project.slug)
    empty = page(member, "label", project.slug)
    assert told in empty
    assert "Nothing is ready to be labelled yet" in empty
    home = page(member, "home")
    assert told in home
    assert "Label next item" not in home
    own = page(member, "project", project.slug)
    assert told in own
    assert "Label next item" not in own
    assert queue.load_progress(member).at_work == 0
    offered = api_client(member).post(f"/api/v1/projects/{project.slug}/queue/next/").json()
    assert offered["waiting"]["awaiting"] == 10
    assert member.account
    assert [one.at_work for one in home_page.list_overviews(member.account)] == [0]


def test_of_several_left_those_that_wait_are_told_apart(
    project: Project, member: Membership
) -> None:
    bring(project, PROMPT, WHOLE)
    queue.store_label(member, take(member).submission({"verdict": "right"}))
    project.overlap = 2
    project.save()
    resize_all(project)
    empty = page(member, "label", project.slug)
    assert "1 item needs another annotator." in empty
    assert "1 prompt waits for its gold answer." in empty


def test_correcting_the_awaited_text_is_a_revision_like_any_other(
    project: Project, member: Membership
) -> None:
    bring(project, WHOLE)
    offer = queue.store_correction(
        member, take(member).submission(), {"gold": "It stores electric charge."}
    )
    assert offer.revision.texts["gold"] == "It stores electric charge."
    with pytest.raises(Refused, match="empty"):
        queue.store_correction(member, offer.submission(), {"gold": " "})


def test_a_task_type_can_wait_only_for_a_text_that_items_may_lack() -> None:
    definition = tasktypes.load_definitions()["gold-verification"]
    for name, said in (("answer", "not a text of the item"), ("prompt", "required = false")):
        task = tasktypes.parse_definition({**definition, "awaits": name, "correctable": ""})
        [problem] = validation.find_problems(task)
        assert problem.place == ("awaits",)
        assert said in problem.text
    never = tasktypes.parse_definition({**definition, "awaits": ""})
    assert [problem.place for problem in validation.find_problems(never)] == [("correctable",)]


def test_what_items_wait_for_stays_once_there_are_items(project: Project) -> None:
    source = tasktypes.load_sources()["gold-verification"]
    without = source.replace('awaits = "gold"\n', "").replace('correctable = "gold"\n', "")
    assert versions.parse_source(project, without).task
    bring(project, PROMPT)
    [problem] = versions.parse_source(project, without).problems
    assert 'write awaits = "gold"' in problem.text


def test_pages_call_the_awaited_text_by_its_name_and_list_abilities(
    project: Project, lead: Membership, member: Membership
) -> None:
    bring(project, WHOLE | {"ability": "factual"}, PROMPT)
    assert ">Gold answer, corrected</label>" in page(member, "label", project.slug)
    listed = page(lead, "items", project.slug)
    assert "<td>Factual</td>" in listed
    assert "<td>No ability</td>" in listed
